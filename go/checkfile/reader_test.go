package checkfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/blkhash/blkhash/go"
)

func TestReadAll(t *testing.T) {
	text := "# comment\n\n{}  a\r\nnonsense\nBLKSUM-SHA256-STREAMS4-64K (b) = {}\n{}  " + strings.Repeat("x", maxLine) +
		"\n#" + strings.Repeat("x", 3*maxLine) + "\nBLKSUM-MD6-FLAT-64K (c) = {}\n{} d\n{}  e"
	for _, r := range []io.Reader{
		bytes.NewReader(inHex(text)), iotest.OneByteReader(bytes.NewReader(inHex(text))),
		iotest.DataErrReader(bytes.NewReader(inHex(text))),
	} {
		entries, malformed, err := ReadAll(r)
		var m *MalformedError
		if !errors.As(err, &m) || m.Line != 8 || !m.ImageTag {
			t.Errorf("%v", err)
		}
		var names, lines []string
		for _, e := range entries {
			names = append(names, e.Name)
		}
		for _, m := range malformed {
			lines = append(lines, m.Error())
		}
		if strings.Join(names, " ") != "a b e" {
			t.Error(names)
		}
		want := []string{
			"checkfile: malformed line 4: " + noForm,
			"checkfile: malformed line 6: " + tooLong,
			"checkfile: malformed line 8: " + imageTag + noForm,
			"checkfile: malformed line 9: " + oneBlank,
		}
		if strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Error(strings.Join(lines, "\n"))
		}
	}
}

func TestOneParserForAllFiles(t *testing.T) {
	p := new(Parser)
	for i, text := range []string{"{} a\n", "{}  a\n"} {
		entries, _, err := p.ReadAll(bytes.NewReader(inHex(text)))
		if want := []string{"a", " a"}[i]; err != nil || entries[0].Name != want {
			t.Errorf("%v, %v", entries, err)
		}
	}
}

func TestReadEndsEarly(t *testing.T) {
	for entry, err := range Read(bytes.NewReader(inHex("{}  a\nx\n{}  b\n"))) {
		if err != nil || entry.Name != "a" {
			t.Fatal(entry, err)
		}
		break
	}
}

func TestFilesThatAreNoCheckFiles(t *testing.T) {
	tar := make([]byte, 1024)
	copy(tar, "SUMS")
	copy(tar[148:], "001110 \x00")
	vdi := inHex("{}  a\n")
	copy(vdi[64:], "\x7f\x10\xda\xbe")
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"empty":     {nil, "no well-formed line"},
		"comments":  {[]byte("# a\n\n"), "no well-formed line"},
		"NUL":       {inHex("{}  a\n\x00"), "NUL"},
		"tar":       {tar, "tar archive"},
		"qcow2":     {[]byte("QFI\xfb\x00\x00\x00\x03"), "qcow2 image"},
		"vmdk":      {[]byte(strings.Repeat("# a\n", 200) + "version=1\n"), "vmdk image"},
		"vdi":       {vdi, "vdi image"},
		"nonsense":  {bytes.Repeat([]byte(strings.Repeat("x", 99)+"\n"), maxNonsense/100+10), "no well-formed line"},
		"long line": {append(inHex("{}  a\n"), bytes.Repeat([]byte("x"), maxNonsense+maxLine)...), "too long"},
		"endless":   {bytes.Repeat([]byte("x"), maxNonsense+maxLine+10), "no well-formed line"},
	} {
		_, _, err := ReadAll(bytes.NewReader(test.content))
		if !errors.Is(err, ErrNotCheckFile) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A NUL byte after the first 512 bytes makes only its line malformed.
	text := inHex(strings.Repeat("{}  a\n", 10) + "{}  b\x00\n{}  c")
	entries, malformed, err := ReadAll(bytes.NewReader(text))
	if err != nil || len(entries) != 11 || len(malformed) != 1 || malformed[0].Reason != hasNUL {
		t.Error(len(entries), malformed, err)
	}
}

func TestTextOfWindows(t *testing.T) {
	text := strings.Repeat(string(inHex("{}  é中😀\r\n")), 1000)
	for name, order := range map[string]binary.AppendByteOrder{"LE": binary.LittleEndian, "BE": binary.BigEndian} {
		encoded := order.AppendUint16(nil, 0xfeff)
		for _, unit := range utf16.Encode([]rune(text)) {
			encoded = order.AppendUint16(encoded, unit)
		}
		for _, r := range []io.Reader{bytes.NewReader(encoded), iotest.OneByteReader(bytes.NewReader(encoded))} {
			entries, malformed, err := ReadAll(r)
			if err != nil || len(malformed) > 0 || len(entries) != 1000 || entries[999].Name != "é中😀" {
				t.Error(name, len(entries), malformed, err)
			}
		}
		// Half of a pair before a letter and before a NUL, and half of a unit.
		broken := order.AppendUint16(encoded, 0xd800)
		broken = order.AppendUint16(order.AppendUint16(broken, 'a'), 0xd800)
		broken = append(order.AppendUint16(broken, 0), 0xd8)
		got, err := io.ReadAll(newText(bytes.NewReader(broken)))
		if err != nil || string(got) != text+"\ufffda\ufffd\x00\ufffd" {
			t.Errorf("%s: %q, %v", name, got[len(text):], err)
		}
	}
	entries, malformed, err := ReadAll(strings.NewReader("\ufeff" + text))
	if err != nil || len(malformed) > 0 || len(entries) != 1000 {
		t.Error(len(entries), malformed, err)
	}
}

func TestReadErrors(t *testing.T) {
	failed := errors.New("failed")
	for _, text := range []string{"", "{}  a\n", strings.Repeat("{}  a\n", 100)} {
		r := io.MultiReader(bytes.NewReader(inHex(text)), iotest.ErrReader(failed))
		if _, _, err := ReadAll(r); !errors.Is(err, failed) {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
}

func TestStyles(t *testing.T) {
	digest := []byte{0x1f, 0xa0}
	plain := Entry{Name: "a\n\\\r", Digest: digest}
	named := Entry{Name: "a", Digest: digest, Algorithm: blkhash.SHA256}
	tagged := NewEntry("a\n", digest, TagOf(blkhash.Parameters{}))
	for _, test := range []struct {
		entry Entry
		style Style
		want  string
	}{
		{plain, Style{}, "\\1fa0  a\\n\\\\\\r\n"},
		{plain, Style{Binary: true}, "\\1fa0 *a\\n\\\\\\r\n"},
		{plain, Style{Zero: true}, "1fa0  a\n\\\r\x00"},
		{plain, Style{Base64: true}, "\\H6A=  a\\n\\\\\\r\n"},
		{named, Style{}, "sha256:1fa0  a\n"},
		{named, Style{Binary: true, Base64: true}, "sha256:H6A=  a\n"},
		{tagged, Style{}, "\\BLKSUM-SHA256-STREAMS4-64K (a\\n) = 1fa0\n"},
		{tagged, Style{Zero: true, Base64: true}, "BLKSUM-SHA256-STREAMS4-64K (a\n) = H6A=\x00"},
	} {
		if got := string(test.entry.AppendLine(nil, test.style)); got != test.want {
			t.Errorf("%q, not %q", got, test.want)
		}
	}
	if got := (Entry{Name: "a", Digest: digest}).String(); got != "1fa0  a" {
		t.Error(got)
	}
	for _, e := range []Entry{
		{Name: "", Digest: testDigest}, {Name: "a\x00", Digest: testDigest}, {Name: "a"}, plain, named, tagged,
		{Name: strings.Repeat("\\", maxLine/2), Digest: testDigest}, {Name: "a", Digest: testDigest, Algorithm: "md6"},
	} {
		if e.Check() == nil {
			t.Errorf("%+v is valid", e)
		}
	}
}
