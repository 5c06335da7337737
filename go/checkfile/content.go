package checkfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Content is the content of an image that a checksum is of, if that is not all that a guest sees. The zero value is all
// of it, of an image whose format is detected.
type Content struct {
	// Format is the name of the format as which the file is read, one of [Formats], or empty.
	Format string
	// VPCSize is the size that vpc images have, "geometry" or "current", or empty.
	VPCSize string
	// Snapshot is the name or the id of an internal snapshot, in UTF-8.
	Snapshot string
	// HasSnapshot is set if there is a snapshot. Only one with an empty name needs it when a tag is written.
	HasSnapshot bool
	// Partition is the number of a partition, 0 for none.
	Partition uint32
	// Offset is the first byte of a range, and Length its length in bytes, 0 up to the end. Both are multiples of 512.
	Offset, Length uint64
}

const (
	// maxSnapshot leaves room for the longest path in a line.
	maxSnapshot = 1024
	// sector is the unit of ranges. The author of a check file that learns the results could guess shorter ones.
	sector = 512
)

// formats are the names of formats, in QEMU if that has one.
var formats = []string{
	"raw", "qcow2", "qcow", "vmdk", "vdi", "vhdx", "vpc", "qed", "parallels", "luks", "bochs", "cloop", "dmg", "ewf",
	"partclone", "rbd", "simg",
}

// Formats returns the names of the formats that a tag can record.
func Formats() []string {
	return slices.Clone(formats)
}

// Check returns an error if a tag cannot record the content.
func (c Content) Check() error {
	switch {
	case c.Format != "" && !slices.Contains(formats, c.Format):
		return fmt.Errorf("checkfile: unknown format %q", c.Format)
	case c.VPCSize != "" && c.VPCSize != "geometry" && c.VPCSize != "current":
		return fmt.Errorf("checkfile: unknown size %q of vpc images", c.VPCSize)
	case len(c.Snapshot) > maxSnapshot || strings.IndexByte(c.Snapshot, 0) >= 0 || !utf8.ValidString(c.Snapshot):
		return fmt.Errorf("checkfile: a tag holds names of snapshots in UTF-8 of up to %d bytes", maxSnapshot)
	case c.Offset%sector != 0 || c.Length%sector != 0:
		return fmt.Errorf("checkfile: a tag holds ranges of whole sectors of %d bytes", sector)
	case c.Partition != 0 && (c.Offset != 0 || c.Length != 0):
		return errors.New("checkfile: a tag holds a partition or a range, and not both")
	}
	return nil
}

// Equal returns whether both are the same content.
func (c Content) Equal(other Content) bool {
	return c.normal() == other.normal()
}

// String returns the fields as a tag has them, or "all" for the zero value.
func (c Content) String() string {
	if text := string(c.append(nil)); text != "" {
		return text[1:]
	}
	return "all"
}

// isPart returns whether this is a part of what the file holds.
func (c Content) isPart() bool {
	return c.normal().HasSnapshot || c.Partition != 0 || c.Offset != 0 || c.Length != 0
}

func (c Content) normal() Content {
	c.HasSnapshot = c.HasSnapshot || c.Snapshot != ""
	return c
}

// append writes the fields as a tag has them, each with a slash before it.
func (c Content) append(b []byte) []byte {
	if c.Format != "" {
		b = append(append(b, "/FORMAT="...), c.Format...)
	}
	if c.VPCSize != "" {
		b = append(append(b, "/VPCSIZE="...), c.VPCSize...)
	}
	if c.normal().HasSnapshot {
		b = appendPercent(append(b, "/SNAPSHOT="...), c.Snapshot)
	}
	if c.Partition != 0 {
		b = strconv.AppendUint(append(b, "/PARTITION="...), uint64(c.Partition), 10)
	}
	if c.Offset != 0 {
		b = strconv.AppendUint(append(b, "/OFFSET="...), c.Offset, 10)
	}
	if c.Length != 0 {
		b = strconv.AppendUint(append(b, "/LENGTH="...), c.Length, 10)
	}
	return b
}

// parseContent reads fields as append writes them, and nothing else. The text is empty or begins with a slash.
func parseContent(text string) (Content, bool) {
	var c Content
	if text == "" {
		return c, true
	}
	for field := range strings.SplitSeq(text[1:], "/") {
		name, value, ok := strings.Cut(field, "=")
		if !ok {
			return Content{}, false
		}
		switch name {
		case "FORMAT":
			c.Format = value
		case "VPCSIZE":
			c.VPCSize = value
		case "SNAPSHOT":
			c.Snapshot, ok = decodePercent(value)
			c.HasSnapshot = true
		case "PARTITION":
			var number uint64
			number, ok = parseNumber(value, 32)
			c.Partition = uint32(number)
		case "OFFSET":
			c.Offset, ok = parseNumber(value, 64)
		case "LENGTH":
			c.Length, ok = parseNumber(value, 64)
		default:
			ok = false
		}
		if !ok {
			return Content{}, false
		}
	}
	// Another order, repeated fields and other spellings are other texts.
	return c, c.Check() == nil && string(c.append(nil)) == text
}

// parseNumber reads decimal digits. A number that is written in another way is found by comparing the texts.
func parseNumber(text string, bits int) (uint64, bool) {
	number, err := strconv.ParseUint(text, 10, bits)
	return number, err == nil
}

// appendPercent writes a name in the percent-encoding of RFC 3986. Only the unreserved characters stand for themselves.
func appendPercent(b []byte, name string) []byte {
	for i := range len(name) {
		if c := name[i]; isUnreserved(c) {
			b = append(b, c)
		} else {
			b = fmt.Appendf(b, "%%%02X", c)
		}
	}
	return b
}

// decodePercent reverses appendPercent. It accepts other encodings of the same name as well.
func decodePercent(text string) (string, bool) {
	name := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			name = append(name, text[i])
			continue
		}
		if len(text)-i < 3 || !isHex(text[i+1:i+3]) {
			return "", false
		}
		digit, _ := strconv.ParseUint(text[i+1:i+3], 16, 8)
		name = append(name, byte(digit))
		i += 2
	}
	return string(name), utf8.Valid(name)
}

func isUnreserved(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("-._~", c) >= 0
}
