package checkfile

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/blkhash/blkhash/go"
)

const (
	// maxLine is the maximum length of a line with its end: the longest path with every byte escaped, tag and digest.
	maxLine = 16 << 10
	// minAny is the minimum length of a digest in a line that does not name it: a text may begin with a word that looks
	// like a shorter one.
	minAny = 16
)

// A Parser reads lines of check files. The zero value reads them as `blksum -c` does. One parser is for all check files
// of a job: the first line without a tag decides whether one or two characters precede the names in such lines.
type Parser struct {
	// Algorithm is the only digest of lines without a tag, as with `blksum -c -d`. Without it, they may have any digest
	// of 16 bytes or more.
	Algorithm blkhash.Algorithm
	// Bytes is set if lines without a tag have digests of the bytes of the files, as with `blksum -c -B`. Their entries
	// have a plain tag. Their algorithm is sha256 by default.
	Bytes bool
	// Stdin is set if the lines come from standard input. The name "-", which means standard input, is malformed then.
	Stdin bool

	separator separator
	list      list
}

// list is what the first line of a file says about it.
type list int

const (
	unknownList list = iota
	plainList
	// sfvList is a list of CRC-32 (.sfv): it begins with a comment after a semicolon.
	sfvList
)

// separator is what precedes the name in lines without a tag. A file never mixes the forms: a name with a leading blank
// could be made to mean another one.
type separator int

const (
	unknownSeparator separator = iota
	blank
	blankAndMode
)

// MalformedError is the error for a line that has none of the forms.
type MalformedError struct {
	// Line is the number of the line, from 1. It is 0 if only one line was parsed.
	Line int
	// Reason says what is wrong. It holds nothing of the line.
	Reason string
	// ImageTag is set if the line begins with BLKSUM-. It has a checksum of a later version, or a damaged one, that is
	// not checked: a check fails then, where it continues after other malformed lines.
	ImageTag bool
}

func (m *MalformedError) Error() string {
	if m.Line == 0 {
		return "checkfile: malformed line: " + m.Reason
	}
	return fmt.Sprintf("checkfile: malformed line %d: %s", m.Line, m.Reason)
}

// ParseLine reads one line alone, with or without its end. It returns nil for a comment or an empty line, and
// [*MalformedError] if the line has none of the forms.
func ParseLine(line []byte) (*Entry, error) {
	return new(Parser).Parse(line)
}

// Begin begins another file, as [Parser.Read] does. The first line without a tag decides the form of all others, also
// in later files.
func (p *Parser) Begin() {
	p.list = unknownList
}

// Parse reads a line as [ParseLine] does, in the form that the lines before it had.
func (p *Parser) Parse(line []byte) (*Entry, error) {
	isLong := len(line) > maxLine
	line = bytes.TrimPrefix(line, []byte(byteOrderMark))
	switch {
	case len(line) > 0 && line[0] == '#':
		return nil, nil
	case len(line) > 0 && line[0] == ';' && !isLong && p.list != plainList:
		p.list = sfvList
		return nil, nil
	case isLong:
		return nil, malformed(line, tooLong)
	}
	text := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if len(text) == 0 {
		return nil, nil
	}
	if p.list == unknownList {
		p.list = plainList
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, malformed(line, hasNUL)
	}
	entry, reason := p.parse(string(text))
	if reason != "" && p.list == sfvList {
		if entry, ok := parseSFV(string(text)); ok {
			return entry, nil
		}
	}
	if reason != "" {
		return nil, malformed(line, reason)
	}
	return entry, nil
}

func (p *Parser) parse(line string) (entry *Entry, reason string) {
	line = trimBlanks(line)
	line, escaped := strings.CutPrefix(line, `\`)
	e := &Entry{}
	if tag, rest, ok := cutTag(line); ok {
		e.Tag = &tag
		if e.Name, e.Digest, reason = parseTagged(rest, tag.Parameters.Algorithm.Size()); reason != "" {
			return nil, reason
		}
	} else if reason = p.parseUntagged(e, line); reason != "" {
		return nil, reason
	}
	if escaped {
		var ok bool
		if e.Name, ok = unescape(e.Name); !ok {
			return nil, badEscape
		}
	}
	if p.Stdin && e.Name == "-" {
		return nil, stdinName
	}
	return e, ""
}

// parseSFV reads a line of a list of CRC-32, `NAME HEX`.
func parseSFV(line string) (*Entry, bool) {
	end := strings.LastIndexAny(line, " \t")
	if end < 0 || !isHex(line[end+1:]) {
		return nil, false
	}
	name := strings.TrimRight(line[:end], " \t")
	digest, ok := decodeHex(line[end+1:])
	if !ok || len(digest) != blkhash.CRC32.Size() || name == "" {
		return nil, false
	}
	e := NewEntry(name, digest, PlainTag(blkhash.CRC32))
	return &e, true
}

// cutTag returns the tag before the first parenthesis, and the text after the parenthesis. Blanks may be between both.
func cutTag(line string) (t Tag, rest string, ok bool) {
	text, rest, ok := strings.Cut(line, "(")
	if !ok {
		return Tag{}, "", false
	}
	t, err := ParseTag(strings.TrimRight(text, " \t"))
	return t, rest, err == nil
}

// parseTagged reads `NAME) = HEX` from the right, because the name may hold anything.
func parseTagged(rest string, size int) (name string, digest []byte, reason string) {
	end := strings.LastIndexByte(rest, ')')
	if end < 0 {
		return "", nil, noEnd
	}
	digits, ok := strings.CutPrefix(trimBlanks(rest[end+1:]), "=")
	if !ok {
		return "", nil, noEquals
	}
	digest, ok = decodePadded(trimBlanks(digits))
	switch {
	case !ok:
		return "", nil, noDigest
	case len(digest) != size:
		return "", nil, otherLength
	}
	return rest[:end], digest, ""
}

// parseUntagged reads `VALUE  NAME`, `VALUE *NAME` or `VALUE NAME`. In front of the value may be the name of its digest.
func (p *Parser) parseUntagged(e *Entry, line string) (reason string) {
	line, ok := cutAlgorithm(e, line)
	if !ok {
		return noForm
	}
	end := strings.IndexAny(line, " \t")
	value, name := line, ""
	if end >= 0 {
		value, name = line[:end], line[end+1:]
	}
	// Only a line that starts with a checksum may decide how later lines are read.
	if reason = p.parseDigest(e, value); reason != "" {
		return reason
	}
	switch {
	case name == "":
		return noName
	case len(name) > 1 && (name[0] == ' ' || name[0] == '*'):
		if p.separator == unknownSeparator {
			p.separator = blankAndMode
		}
	case p.separator == blankAndMode:
		return oneBlank
	default:
		p.separator = blank
	}
	if p.separator == blankAndMode {
		name = name[1:]
	}
	e.Name = name
	if p.Bytes {
		t := PlainTag(p.algorithm())
		e.Tag, e.Algorithm = &t, ""
	}
	return ""
}

// cutAlgorithm reads the digest that a line without a tag names, and returns the text from the value on. Blanks may be
// after the colon. It returns false if the first word has another name and a colon.
func cutAlgorithm(e *Entry, line string) (rest string, ok bool) {
	word := line
	if end := strings.IndexAny(line, " \t"); end >= 0 {
		word = line[:end]
	}
	name, _, ok := strings.Cut(word, ":")
	if !ok {
		return line, true
	}
	a, err := blkhash.ParseAlgorithm(name)
	if err != nil {
		if a, ok = parsePlainTag(name); !ok {
			return line, false
		}
	}
	e.Algorithm = a
	return trimBlanks(line[len(name)+1:]), true
}

// parseDigest reads HEX or BASE64, if lines without a tag may have such a digest. After the name of its digest it is
// any BASE64.
func (p *Parser) parseDigest(e *Entry, text string) (reason string) {
	decode := decodePadded
	if e.Algorithm != "" {
		decode = decodeAny
	}
	digest, ok := decode(text)
	e.Digest = digest
	isAny := p.Algorithm == "" && !p.Bytes
	switch {
	// A word may be base64 by chance.
	case !ok || len(digest) == 0 || !isHex(text) && len(digestsOfSize(len(digest))) == 0:
		return noForm
	case e.Algorithm != "" && len(digest) != e.Algorithm.Size():
		return otherLength
	case e.Algorithm != "" && (isAny || e.Algorithm == p.algorithm()):
	case e.Algorithm != "":
		return otherDigest
	case isAny && len(digest) >= minAny && len(digestsOfSize(len(digest))) > 0:
	case len(digest) != p.algorithm().Size():
		return otherLength
	}
	return ""
}

func (p *Parser) algorithm() blkhash.Algorithm {
	if p.Algorithm == "" {
		return blkhash.SHA256
	}
	return p.Algorithm
}

func malformed(line []byte, reason string) *MalformedError {
	m := &MalformedError{Reason: reason}
	text := bytes.TrimPrefix(bytes.TrimLeft(line, asciiSpace), []byte(`\`))
	if bytes.HasPrefix(text, []byte(prefix)) {
		m.ImageTag = true
		m.Reason = imageTag + reason
	}
	return m
}

func trimBlanks(text string) string {
	return strings.TrimLeft(text, " \t")
}

// byteOrderMark is what editors of Windows write at the beginning of a file in UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

const asciiSpace = " \t\n\f\r"

// The reasons why a line is malformed.
const (
	tooLong     = "more than 16 KiB"
	hasNUL      = "a NUL byte"
	badEscape   = "a backslash in an escaped name that begins no escape"
	stdinName   = "the name of standard input, in standard input"
	noEnd       = "no parenthesis after the name"
	noEquals    = "no equals sign after the name"
	noDigest    = "no checksum in hexadecimal or base64"
	otherLength = "a checksum of another length than the digest's"
	otherDigest = "another digest than the one that is expected"
	noName      = "a checksum without a name"
	oneBlank    = "one blank before the name, where lines before it have two characters"
	noForm      = "no form of a line: neither a known tag nor a checksum begins it"
	imageTag    = "a damaged tag of an image, or one of a later version: "
)
