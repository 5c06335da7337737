package checkfile

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/blkhash/blkhash/go"
)

// An Entry is a checksum and the name of the file that it belongs to.
type Entry struct {
	// Name is the name of the file without escapes. Its bytes are not decoded. It is empty only with a tag, and never
	// holds NUL.
	Name string
	// Digest is the checksum.
	Digest []byte
	// Tag says what the checksum is of. A line without a tag has none.
	Tag *Tag
	// Algorithm is the digest that a line without a tag names: ALGORITHM:HEX  NAME. It is empty for other lines.
	Algorithm blkhash.Algorithm
}

// A Style is how a line is written. The zero value is as in blksum without options. What an entry records is always
// written: its tag, or else its algorithm.
type Style struct {
	// Binary marks the name with an asterisk, where no tag and no algorithm is written.
	Binary bool
	// Base64 writes the checksum in base64.
	Base64 bool
	// Zero ends the line with NUL and escapes nothing. Such lines do not belong in check files.
	Zero bool
}

// NewEntry returns an entry with a tag.
func NewEntry(name string, digest []byte, t Tag) Entry {
	return Entry{Name: name, Digest: digest, Tag: &t}
}

// Check returns an error if a check file cannot have a line of this entry.
func (e Entry) Check() error {
	size := len(e.Digest)
	switch {
	case e.Tag != nil:
		if err := e.Tag.Check(); err != nil {
			return err
		}
		size = e.Tag.Parameters.WithDefaults().Algorithm.Size()
	case e.Name == "":
		return errors.New("checkfile: a line without a tag has no empty name")
	case e.Algorithm != "":
		if err := (blkhash.Parameters{Algorithm: e.Algorithm}).Check(); err != nil {
			return err
		}
		size = e.Algorithm.Size()
	case len(digestsOfSize(size)) == 0:
		return fmt.Errorf("checkfile: checksum of %d bytes, and no digest is that long", size)
	}
	switch {
	case len(e.Digest) == 0 || len(e.Digest) != size:
		return fmt.Errorf("checkfile: checksum of %d bytes, and not of %d", len(e.Digest), size)
	case strings.IndexByte(e.Name, 0) >= 0:
		return errors.New("checkfile: a name in a line holds no NUL")
	case len(e.AppendLine(nil, Style{})) > maxLine:
		return fmt.Errorf("checkfile: a line has up to %d bytes", maxLine)
	}
	return nil
}

// AppendLine appends the line with its end to b, as blksum writes it. [Entry.Check] tells whether it can be read again.
func (e Entry) AppendLine(b []byte, s Style) []byte {
	name := e.Name
	if !s.Zero {
		var escaped bool
		if name, escaped = escape(name); escaped {
			b = append(b, '\\')
		}
	}
	if e.Tag != nil {
		b = append(append(e.Tag.append(b), " ("...), name...)
		b = appendDigest(append(b, ") = "...), e.Digest, s)
	} else {
		separator := "  "
		switch {
		case e.Algorithm != "":
			b = append(append(b, e.Algorithm...), ':')
		case s.Binary:
			separator = " *"
		}
		b = append(append(appendDigest(b, e.Digest, s), separator...), name...)
	}
	if s.Zero {
		return append(b, 0)
	}
	return append(b, '\n')
}

// String returns the line in the default style, without its end.
func (e Entry) String() string {
	return strings.TrimSuffix(string(e.AppendLine(nil, Style{})), "\n")
}

// Value returns the checksum for [Expect].
func (e Entry) Value() Value {
	return Value{Digest: e.Digest, Algorithm: e.Algorithm, Tag: e.Tag, Name: e.Name}
}

func appendDigest(b, digest []byte, s Style) []byte {
	if s.Base64 {
		return base64.StdEncoding.AppendEncode(b, digest)
	}
	return hex.AppendEncode(b, digest)
}
