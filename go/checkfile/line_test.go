package checkfile

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
)

const testHex = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

// testDigest has the bytes of testHex.
var testDigest = func() []byte {
	digest, err := hex.DecodeString(testHex)
	if err != nil {
		panic(err)
	}
	return digest
}()

// inHex replaces each {} by the digest.
func inHex(line string) []byte {
	return []byte(strings.ReplaceAll(line, "{}", testHex))
}

func equalEntries(a, b *Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	isTag := (a.Tag == nil) == (b.Tag == nil) && (a.Tag == nil || a.Tag.Equal(*b.Tag))
	return isTag && a.Name == b.Name && string(a.Digest) == string(b.Digest) && a.Algorithm == b.Algorithm
}

// expectEntry parses a line with p.
func expectEntry(t *testing.T, p *Parser, line []byte, want *Entry) {
	t.Helper()
	got, err := p.Parse(line)
	if err != nil || !equalEntries(got, want) {
		t.Errorf("%q: %+v, %v, not %+v", line, got, err, want)
	}
}

func expectMalformed(t *testing.T, p *Parser, line []byte, want string) {
	t.Helper()
	entry, err := p.Parse(line)
	var m *MalformedError
	if entry != nil || !errors.As(err, &m) || m.Line != 0 || m.Reason == "" {
		t.Errorf("%q: %+v, %v", line, entry, err)
	} else if want != "" && m.Reason != want {
		t.Errorf("%q: %s, not %s", line, m.Reason, want)
	}
}

func sha256Only() *Parser { return &Parser{Algorithm: blkhash.SHA256} }

func TestUntaggedLines(t *testing.T) {
	for _, test := range [][2]string{
		{"{}  a", "a"},
		{"{} *a", "a"},
		{"{}  a\n", "a"},
		{"{}  a\r\n", "a"},
		{"{}  a\r", "a"},
		{"  \t{}  a", "a"},
		{"{}\t a", "a"},
		{"{}\t*a", "a"},
		{"{}   a ", " a "},
		{"{}  *a", "*a"},
		{`{}  a\n`, `a\n`},
		{`\{}  a\n\\\r`, "a\n\\\r"},
		{`\{}  a`, "a"},
		{"{} a", "a"},
		{"{}\ta", "a"},
		{"{} name", "name"},
		{"{}  ", " "},
		{"{} *", "*"},
		{"{}  SHA256 (a) = {}", "SHA256 (a) = " + testHex},
		{"{}  -", "-"},
		{"{}  \xff\xfe", "\xff\xfe"},
		{"\xef\xbb\xbf{}  a", "a"},
	} {
		want := &Entry{Name: test[1], Digest: testDigest}
		for _, p := range []*Parser{sha256Only(), {}} {
			expectEntry(t, p, inHex(test[0]), want)
		}
		if !strings.Contains(test[1], "SHA256") {
			upper := strings.ReplaceAll(test[0], "{}", strings.ToUpper(testHex))
			expectEntry(t, sha256Only(), []byte(upper), want)
		}
	}
}

func TestOtherValuesInLines(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString(testDigest)
	plain := &Entry{Name: "a", Digest: testDigest}
	named := func(a blkhash.Algorithm) *Entry { return &Entry{Name: "a", Digest: testDigest, Algorithm: a} }
	expectEntry(t, sha256Only(), []byte(encoded+"  a"), plain)
	expectEntry(t, sha256Only(), []byte(encoded+" *a"), plain)
	tagged := NewEntry("a", testDigest, PlainTag(blkhash.SHA256))
	expectEntry(t, sha256Only(), []byte("SHA256 (a) = "+encoded), &tagged)
	expectEntry(t, sha256Only(), inHex("sha256:{}  a"), named(blkhash.SHA256))
	expectEntry(t, sha256Only(), []byte("sha256:"+encoded+"  a"), named(blkhash.SHA256))
	expectEntry(t, new(Parser), inHex("blake3:{}  a"), named(blkhash.BLAKE3))
	expectEntry(t, new(Parser), inHex("SHA-256:{}  a"), named(blkhash.SHA256))
	expectEntry(t, sha256Only(), []byte("sha256:"+strings.TrimRight(encoded, "=")+"  a"), named(blkhash.SHA256))
	for _, line := range []string{"sha256: {}  a", "sha256: {} a", "SHA2-256:\t {} *a", "sha256: {}\ta"} {
		expectEntry(t, new(Parser), inHex(line), named(blkhash.SHA256))
	}
	expectEntry(t, new(Parser), []byte(testHex[:32]+"  a"), &Entry{Name: "a", Digest: testDigest[:16]})
	crc := &Entry{Name: "a", Digest: []byte{0, 0x11, 0x22, 0x33}}
	expectEntry(t, &Parser{Algorithm: blkhash.CRC32C}, []byte("00112233  a"), crc)
	crc.Algorithm = blkhash.CRC32C
	expectEntry(t, new(Parser), []byte("crc32c:00112233  a"), crc)

	for _, line := range []string{
		strings.TrimRight(encoded, "=") + "  a",
		testHex[:16] + "  a",
		testHex[:34] + "  a",
		"deadbeef  a",
		"sha256:{}-2  a",
		"{}-2  a",
		"sha512:{}  a",
		"sha256-{}  a",
		"sha256={}  a",
		"md6:{}  a",
		":{}  a",
		"sha256:  a",
		"null:  a",
		`"sha256:{}"  a`,
		`"{}"  a`,
		"SHA256 (a) = sha256:{}",
	} {
		expectMalformed(t, new(Parser), inHex(line), "")
	}
	for _, line := range []string{"blake3:{}  a", testHex[:32] + "  a"} {
		expectMalformed(t, sha256Only(), inHex(line), "")
	}
	expectMalformed(t, &Parser{Algorithm: blkhash.Null}, []byte("  a"), "")
	expectMalformed(t, &Parser{Algorithm: blkhash.SHA1}, inHex("{}  a"), otherLength)
}

func TestPlainTags(t *testing.T) {
	for _, test := range [][2]string{
		{"SHA256 (a) = {}", "a"},
		{"SHA256(a)= {}", "a"},
		{"SHA2-256(a)= {}", "a"},
		{"SHA256 (a)={}", "a"},
		{"SHA256 (a)\t=\t {}\r\n", "a"},
		{" SHA256 (a) = {}", "a"},
		{"SHA256 () = {}", ""},
		{"SHA256 (a) = b) = {}", "a) = b"},
		{"SHA256 ((a) (b)) = {}", "(a) (b)"},
		{"SHA256 ( a) = {}", " a"},
		{"\xef\xbb\xbfSHA256 (a) = {}", "a"},
		{"sha256 (a) = {}", "a"},
		{"SHA-256 (a) = {}", "a"},
		{"SHA256  (a) = {}", "a"},
		{"SHA256 \t(a) = {}", "a"},
		{`SHA256 (a\n) = {}`, `a\n`},
		{`\SHA256 (a\n) = {}`, "a\n"},
	} {
		want := NewEntry(test[1], testDigest, PlainTag(blkhash.SHA256))
		expectEntry(t, new(Parser), inHex(test[0]), &want)
	}
	want := NewEntry("a", testDigest, PlainTag(blkhash.BLAKE2b256))
	expectEntry(t, new(Parser), inHex("BLAKE2b-256 (a) = {}"), &want)
}

func TestImageTagsInLines(t *testing.T) {
	for _, test := range []struct {
		line string
		tag  Tag
	}{
		{"BLKSUM-SHA256-STREAMS4-64K (a) = {}", TagOf(blkhash.Parameters{})},
		{"BLKSUM-SHA256-FLAT-1M (a) = {}", TagOf(blkhash.Parameters{Construction: blkhash.Flat, BlockSize: 1 << 20})},
		{"BLKSUM-SHA256-LINEAR (a) = {}", TagOf(blkhash.Parameters{Construction: blkhash.Linear})},
		{"BLKSUM-SHA256-STREAMS4-64K/SNAPSHOT=a%28b/PARTITION=2 (a) = {}",
			Tag{Parameters: blkhash.Parameters{}.WithDefaults(), Content: Content{Snapshot: "a(b", Partition: 2}}},
	} {
		want := NewEntry("a", testDigest, test.tag)
		expectEntry(t, new(Parser), inHex(test.line), &want)
	}
}

func TestComments(t *testing.T) {
	for _, line := range []string{
		"", "\n", "\r\n", "\r", "#", "# {}  a", "#\r\n", "#\x00", strings.Repeat("#", maxLine+1),
	} {
		expectEntry(t, new(Parser), inHex(line), nil)
	}
}

func TestMalformedLines(t *testing.T) {
	for _, test := range [][2]string{
		{" ", noForm},
		{" # comment", noForm},
		{"{}", noName},
		{"{} ", noName},
		{"{}a  b", noForm},
		{"x{}  a", noForm},
		{"00{}  a", otherLength},
		{`\{}  a\`, badEscape},
		{`\{}  a\t`, badEscape},
		{`\\{}  a`, noForm},
		{"{}  a\x00b", hasNUL},
		{"{}  a\x00", hasNUL},
		{"0  a", noForm},
		{"  a", noForm},
		{"MD5 (a) = {}", otherLength},
		{"SHA512 (a) = {}", otherLength},
		{"sha257 (a) = {}", noForm},
		{"a {}", noForm},
		{"a 0011aabb", noForm},
		{"sha256: {}", noName},
		{"sha256 : {}  a", noForm},
		{"SHA256 (a) = {} ", noDigest},
		{"SHA256 (a) = {}0", noDigest},
		{"SHA256 (a) {}", noEquals},
		{"SHA256 (a = {}", noEnd},
		{"SHA256 a) = {}", noForm},
		{"SHA256 (a) = ", otherLength},
		{"SHA256 (", noEnd},
		{"(", noForm},
		{"BLKSUM-SHA256-FLAT (a) = {}", imageTag + noForm},
		{"NULL (a) = ", noForm},
		{"BLKSUM-NULL-FLAT-64K (a) = ", imageTag + noForm},
		{strings.Repeat("x", maxLine+1), tooLong},
	} {
		expectMalformed(t, sha256Only(), inHex(test[0]), test[1])
	}
	expectMalformed(t, &Parser{Stdin: true}, inHex("{}  -"), stdinName)
	m := (&MalformedError{Line: 3, Reason: noName}).Error()
	if m != "checkfile: malformed line 3: a checksum without a name" {
		t.Error(m)
	}
}

func TestMalformedImageTags(t *testing.T) {
	for line, want := range map[string]bool{
		"BLKSUM-SHA256-STREAMS4-64K/PARTITION=1/LATER=2 (a) = {}": true,
		"BLKSUM-SHA256-STREAMS4-64K (a) = 2d71":                   true,
		` \BLKSUM-`:                                               true,
		"BLKSUM-SHA256-LINEAR (a\x00) = {}":                       true,
		"BLKSUM-" + strings.Repeat("x", maxLine):                  true,
		"x BLKSUM-":                                               false,
		`\\BLKSUM-`:                                               false,
		"blksum-":                                                 false,
	} {
		_, err := ParseLine(inHex(line))
		var m *MalformedError
		if !errors.As(err, &m) || m.ImageTag != want {
			t.Errorf("%.40q: %v", line, err)
		}
	}
}

func TestLinesOfFilesHaveTags(t *testing.T) {
	want := NewEntry("a", testDigest, PlainTag(blkhash.SHA256))
	expectEntry(t, &Parser{Bytes: true}, inHex("{}  a"), &want)
	expectEntry(t, &Parser{Bytes: true}, inHex("sha256:{}  a"), &want)
	expectMalformed(t, &Parser{Bytes: true}, inHex("blake3:{}  a"), otherDigest)
	expectMalformed(t, &Parser{Bytes: true}, []byte(testHex[:32]+"  a"), otherLength)
}

func TestSeparatorsAreNotMixed(t *testing.T) {
	named := func(name string) *Entry { return &Entry{Name: name, Digest: testDigest} }
	p := new(Parser)
	expectEntry(t, p, inHex("{} a"), named("a"))
	expectEntry(t, p, inHex("{}  a"), named(" a"))
	expectEntry(t, p, inHex("{} *a"), named("*a"))

	p = new(Parser)
	expectMalformed(t, p, []byte("not a checksum"), noForm)
	expectEntry(t, p, inHex("{}  a"), named("a"))
	expectMalformed(t, p, inHex("{} a"), oneBlank)
	tagged := NewEntry("a", testDigest, PlainTag(blkhash.SHA256))
	expectEntry(t, p, inHex("SHA256 (a) = {}"), &tagged)
}

func TestListsOfCRC32(t *testing.T) {
	crc := func(name string) *Entry {
		e := NewEntry(name, []byte{0, 0x11, 0xaa, 0xbb}, PlainTag(blkhash.CRC32))
		return &e
	}
	p := new(Parser)
	expectEntry(t, p, []byte("# x\n"), nil)
	expectEntry(t, p, []byte("\xef\xbb\xbf; by x\r\n"), nil)
	expectEntry(t, p, []byte("a 0011aabb\n"), crc("a"))
	expectEntry(t, p, []byte("a b \t 0011AABB\r\n"), crc("a b"))
	expectEntry(t, p, []byte(";\n"), nil)
	expectEntry(t, p, []byte(`.\a 0011aabb`), crc(`.\a`))
	expectEntry(t, p, inHex("{}  a 0011aabb"), &Entry{Name: "a 0011aabb", Digest: testDigest})
	for _, line := range []string{"0011aabb", " 0011aabb", "a 0011aab", "a 0011aabb0", "a 0011aabb ", "a 0011aabg"} {
		expectMalformed(t, p, []byte(line), "")
	}
	// Only the first line begins such a list.
	p.Begin()
	expectMalformed(t, p, []byte("a 0011aabb"), "")
	expectMalformed(t, p, []byte(";"), "")
	expectMalformed(t, p, []byte("a 0011aabb"), "")
}

func TestLongLines(t *testing.T) {
	line := inHex("{}  " + strings.Repeat("a", maxLine-66))
	expectEntry(t, new(Parser), line, &Entry{Name: string(line[66:]), Digest: testDigest})
	expectMalformed(t, new(Parser), append(line, 'a'), tooLong)
}
