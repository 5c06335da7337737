package checkfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/blkhash/blkhash/go"
)

// A Value is a checksum that an image is expected to have.
type Value struct {
	// Digest is the checksum, as long as some digest.
	Digest []byte
	// Algorithm is the digest that the text names. It may be empty.
	Algorithm blkhash.Algorithm
	// Parts is the number of parts of an object in S3, whose digests were hashed. It is 0 for other values.
	Parts int
	// Tag is the tag of a line, which says all. Other values have none.
	Tag *Tag
	// Name is the name in a line. A search does not use it.
	Name string
}

// maxParts is the maximum number of parts of an object in S3.
const maxParts = 10_000

// ParseValue reads a checksum as `blksum --expect` does:
//
//   - HEX, or BASE64 in either alphabet with or without its padding
//   - ALGORITHM:HEX, ALGORITHM=HEX, or the same in base64
//   - sha256-BASE64, sha384-BASE64 or sha512-BASE64, as in Subresource Integrity
//   - BASE64-N or HEX-N, as S3 writes it for an object of N parts
//   - a line of a check file
//
// Blanks around it, and double quotes around all but a line, do not count.
func ParseValue(text string) (Value, error) {
	text = strings.TrimRight(text, asciiSpace)
	if !utf8.ValidString(text) {
		return Value{}, errNoValue
	}
	if strings.IndexByte(text, '\n') >= 0 {
		return Value{}, errors.New("checkfile: a value is one line")
	}
	v, err := parsePlain(text)
	if err == nil {
		return v, nil
	}
	entry, malformed := ParseLine([]byte(text))
	if malformed != nil || entry == nil {
		return Value{}, err
	}
	if _, err := parsePlain(entry.Name); err == nil {
		return Value{}, errors.New("checkfile: two values in one text")
	}
	return entry.Value(), nil
}

var errNoValue = errors.New("checkfile: no checksum, which is HEX, BASE64, ALGORITHM:HEX or a line of a check file")

// parsePlain reads a value that is no line.
func parsePlain(text string) (Value, error) {
	text = strings.Trim(text, asciiSpace)
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		if quoted, ok = strings.CutSuffix(quoted, `"`); ok {
			text = quoted
		}
	}
	if text == "" {
		return Value{}, errors.New("checkfile: empty value")
	}
	if i := strings.IndexAny(text, ":="); i >= 0 {
		if a, err := blkhash.ParseAlgorithm(text[:i]); err == nil {
			return valueOf(a, strings.TrimLeft(text[i+1:], " \t"), decodeAny)
		}
	}
	if name, rest, ok := strings.Cut(text, "-"); ok && slices.Contains(integrity, blkhash.Algorithm(name)) {
		return valueOf(blkhash.Algorithm(name), rest, decodeAnyBase64)
	}
	digest, ok := decodeAny(text)
	if ok && len(digestsOfSize(len(digest))) > 0 {
		return Value{Digest: digest}, nil
	}
	if v, ok := parseParts(text); ok {
		return v, nil
	}
	switch {
	case isHex(text) && len(text)%2 == 1:
		return Value{}, fmt.Errorf("checkfile: value of %d hexadecimal digits, and every byte has two", len(text))
	case ok:
		return Value{}, fmt.Errorf("checkfile: value of %d bytes, and no digest is that long", len(digest))
	}
	return Value{}, errNoValue
}

// parseParts reads a value with the number of parts after a dash.
func parseParts(text string) (Value, bool) {
	digits, count, ok := cutLast(text)
	parts, err := strconv.ParseUint(count, 10, 32)
	if !ok || err != nil || count[0] == '0' || parts > maxParts {
		return Value{}, false
	}
	digest, ok := decodeAny(digits)
	if !ok || len(digestsOfSize(len(digest))) == 0 {
		return Value{}, false
	}
	return Value{Digest: digest, Parts: int(parts)}, true
}

// valueOf returns a value of an algorithm.
func valueOf(a blkhash.Algorithm, text string, decode func(string) ([]byte, bool)) (Value, error) {
	digest, ok := decode(text)
	if !ok {
		return Value{}, errNoValue
	}
	v := Value{Digest: digest, Algorithm: a}
	return v, v.Check()
}

// Check returns an error if no digest has the length of the checksum, or the named one has another length.
func (v Value) Check() error {
	length := len(v.Digest)
	if v.Tag != nil {
		return NewEntry(v.Name, v.Digest, *v.Tag).Check()
	}
	if v.Parts < 0 || v.Parts > maxParts {
		return fmt.Errorf("checkfile: value of %d parts: S3 has up to %d", v.Parts, maxParts)
	}
	if v.Algorithm != "" {
		if err := (blkhash.Parameters{Algorithm: v.Algorithm}).Check(); err != nil {
			return err
		}
		if size := v.Algorithm.Size(); length != size || length == 0 {
			return fmt.Errorf("checkfile: value of %d bytes, and %s has %d", length, v.Algorithm, size)
		}
		return nil
	}
	if len(digestsOfSize(length)) == 0 {
		return fmt.Errorf("checkfile: value of %d bytes, and no digest is that long", length)
	}
	return nil
}

// integrity are the digests of Subresource Integrity (W3C).
var integrity = []blkhash.Algorithm{blkhash.SHA256, blkhash.SHA384, blkhash.SHA512}
