package checkfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

const (
	// headSize is the size of what decides whether a file is text, the size of a header of tar.
	headSize = 512
	// maxNonsense is the number of bytes without a well-formed line after which a file is not a check file. It may be a
	// disk.
	maxNonsense = 16 << 20
	bufferSize  = 32 << 10
	// maxMalformed bounds the memory that a file of malformed lines takes.
	maxMalformed = 1000
)

// ErrNotCheckFile is the error for a file that is no list: one with a NUL byte in its first 512 bytes, one that begins
// like an image, one without a well-formed line (of which the first 16 MiB are read), and one with a line of more than
// 16 MiB.
var ErrNotCheckFile = errors.New("checkfile: not a check file")

// Read returns the entries of a check file, which may be UTF-16 after a byte order mark. A malformed line is the error
// [*MalformedError], and the lines after it follow. Other errors end the iteration. Comments and empty lines are left
// out.
//
// The end of a file without a well-formed line is [ErrNotCheckFile].
func Read(r io.Reader) iter.Seq2[Entry, error] {
	return new(Parser).Read(r)
}

// ReadAll returns the entries of a check file, and its first 1000 malformed lines. The error is the first malformed
// line that begins with BLKSUM-, if there is no other one: its checksum cannot be checked. The entries are valid even
// then.
func ReadAll(r io.Reader) ([]Entry, []*MalformedError, error) {
	return new(Parser).ReadAll(r)
}

// ReadAll is [ReadAll] with this parser.
func (p *Parser) ReadAll(r io.Reader) ([]Entry, []*MalformedError, error) {
	var (
		entries []Entry
		lines   []*MalformedError
		unread  error
	)
	for entry, err := range p.Read(r) {
		var line *MalformedError
		switch {
		case err == nil:
			entries = append(entries, entry)
		case errors.As(err, &line):
			if len(lines) < maxMalformed {
				lines = append(lines, line)
			}
			if line.ImageTag && unread == nil {
				unread = line
			}
		default:
			return entries, lines, err
		}
	}
	return entries, lines, unread
}

// Read is [Read] with this parser.
func (p *Parser) Read(r io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		buffered := newText(r)
		p.Begin()
		if err := checkHead(buffered); err != nil {
			yield(Entry{}, err)
			return
		}
		var (
			line    []byte
			found   bool
			read    int64
			wrapped = func(err error) error { return fmt.Errorf("checkfile: read error: %w", err) }
		)
		for number := 1; found || read <= maxNonsense; number++ {
			var length int64
			var err error
			line, length, err = readLine(buffered, line[:0])
			if err != nil {
				yield(Entry{}, wrapped(err))
				return
			}
			if length == 0 {
				break
			}
			if found && length > maxNonsense {
				yield(Entry{}, fmt.Errorf("%w: line %d is too long", ErrNotCheckFile, number))
				return
			}
			read += length
			entry, err := p.Parse(line)
			switch {
			case err != nil:
				err.(*MalformedError).Line = number
				if !yield(Entry{}, err) {
					return
				}
			case entry != nil:
				found = true
				if !yield(*entry, nil) {
					return
				}
			}
		}
		if !found {
			yield(Entry{}, fmt.Errorf("%w: it has no well-formed line", ErrNotCheckFile))
		}
	}
}

// checkHead returns an error if a file begins like an image or an archive. An archive may hold a check file, whose
// lines are of its members.
func checkHead(r *bufio.Reader) error {
	head, err := r.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("checkfile: read error: %w", err)
	}
	hasNUL := bytes.IndexByte(head, 0) >= 0
	isArchive := isTar(head)
	// A description of a disk may begin with long comments.
	if more, err := r.Peek(r.Buffered()); err == nil {
		head = more
	}
	switch format := probe(head); {
	case format != "":
		return fmt.Errorf("%w: it begins like a %s image", ErrNotCheckFile, format)
	case hasNUL && isArchive:
		return fmt.Errorf("%w: it is a tar archive", ErrNotCheckFile)
	case hasNUL:
		return fmt.Errorf("%w: it has NUL bytes", ErrNotCheckFile)
	}
	return nil
}

// readLine appends a line with its newline to line, and returns its length, 0 at the end of the file. It keeps only
// what shows that a line is too long, and does not read a line of more than maxNonsense to its end.
func readLine(r *bufio.Reader, line []byte) ([]byte, int64, error) {
	length := int64(0)
	for length <= maxNonsense {
		part, err := r.ReadSlice('\n')
		length += int64(len(part))
		line = append(line, part[:min(len(part), maxLine+1-len(line))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil || errors.Is(err, io.EOF):
			return line, length, nil
		default:
			return line, length, err
		}
	}
	return line, length, nil
}
