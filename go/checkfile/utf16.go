package checkfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// newText returns a reader of text. Text in UTF-16 after a byte order mark, which PowerShell writes, becomes UTF-8.
// Everything else stays as it is: names are bytes.
func newText(r io.Reader) *bufio.Reader {
	buffered := bufio.NewReaderSize(r, bufferSize)
	// An error comes again when the reader is read.
	mark, _ := buffered.Peek(2)
	var order binary.ByteOrder
	switch string(mark) {
	case "\xff\xfe":
		order = binary.LittleEndian
	case "\xfe\xff":
		order = binary.BigEndian
	default:
		return buffered
	}
	_, _ = buffered.Discard(len(mark))
	return bufio.NewReaderSize(&utf16Reader{r: buffered, order: order}, bufferSize)
}

// utf16Reader decodes UTF-16. What is no character becomes U+FFFD.
type utf16Reader struct {
	r     *bufio.Reader
	order binary.ByteOrder
	// text has what was decoded and not read.
	text []byte
	// next is the unit after one that is not half of a pair, if hasNext.
	next    uint16
	hasNext bool
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.text) < utf8.UTFMax {
		c, err := u.char()
		if err != nil {
			if len(u.text) > 0 && errors.Is(err, io.EOF) {
				break
			}
			return 0, err
		}
		u.text = utf8.AppendRune(u.text, c)
	}
	n := copy(p, u.text)
	u.text = u.text[n:]
	return n, nil
}

func (u *utf16Reader) char() (rune, error) {
	first, err := u.unit()
	if err != nil || !utf16.IsSurrogate(rune(first)) {
		return rune(first), err
	}
	second, err := u.unit()
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	c := utf16.DecodeRune(rune(first), rune(second))
	if c == utf8.RuneError && err == nil {
		u.next, u.hasNext = second, true
	}
	return c, nil
}

func (u *utf16Reader) unit() (uint16, error) {
	if u.hasNext {
		u.hasNext = false
		return u.next, nil
	}
	var pair [2]byte
	switch _, err := io.ReadFull(u.r, pair[:]); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return utf8.RuneError, nil
	case err != nil:
		return 0, err
	}
	return u.order.Uint16(pair[:]), nil
}
