package checkfile

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
)

// These tests compare with the command. BLKSUM names the program, and BLKSUM_CASES the number of random cases.

// command is a folder in which blksum runs.
type command struct {
	program string
	folder  string
	random  *rand.Rand
	cases   int
}

func newCommand(t *testing.T, cases int) *command {
	program := os.Getenv("BLKSUM")
	if program == "" {
		t.Skip("skipped: BLKSUM does not name the program blksum")
	}
	program, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	if text := os.Getenv("BLKSUM_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("BLKSUM_SEED=%d", seed)
	if text := os.Getenv("BLKSUM_CASES"); text != "" {
		if cases, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return &command{program, t.TempDir(), rand.New(rand.NewPCG(seed, 0)), cases}
}

// run returns the outputs and the exit status.
func (c *command) run(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, messages bytes.Buffer
	cmd := exec.CommandContext(t.Context(), c.program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.folder, &out, &messages
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), messages.String(), cmd.ProcessState.ExitCode()
}

func (c *command) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.folder, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c *command) pick(list ...string) string { return list[c.random.IntN(len(list))] }

func (c *command) bytes(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(c.random.Uint32())
	}
	return p
}

// name returns a name of a file with a bias towards bytes that are special in a line.
func (c *command) name() string {
	var name []byte
	for range 1 + c.random.IntN(30) {
		if c.random.IntN(3) > 0 {
			name = append(name, " \t*\\\n\r()=#-n:"[c.random.IntN(13)])
		} else if b := byte(1 + c.random.IntN(255)); b != '/' {
			name = append(name, b)
		}
	}
	if len(name) == 0 || string(name) == "-" {
		return "x"
	}
	return string(name)
}

func TestLinesOfTheCommand(t *testing.T) {
	c := newCommand(t, 40)
	for range c.cases {
		name, content := c.name(), c.bytes(c.random.IntN(2000))
		c.write(t, name, content)
		a := blkhash.Algorithm(c.pick("sha256", "md5", "blake2b512", "sha512-256", "xxh64", "crc32c"))
		p := blkhash.Parameters{Algorithm: a, BlockSize: 512 << c.random.IntN(12)}
		p.Construction = blkhash.Construction(c.pick("streams:4", "streams:7", "flat", "concat", "linear"))
		args := []string{"--digest", string(a), "--construction", string(p.Construction)}
		if p.Construction.HasBlocks() {
			args = append(args, "--block-size", strconv.Itoa(p.BlockSize))
		}
		want, style := Entry{Name: name, Digest: checksum(t, p, content)}, Style{}
		tag := TagOf(p)
		switch c.random.IntN(5) {
		case 0:
			args, want.Tag = append(args, "--tag"), &tag
		case 1:
			if half := uint64(len(content)) / 1024 * 512; half > 0 {
				tag.Content = Content{Format: "raw", Offset: half, Length: 512}
				args = append(args, "--tag", "--format", "raw", fmt.Sprintf("--offset=%d", half), "--length=512")
				want.Tag, want.Digest = &tag, checksum(t, p, content[half:half+512])
			}
		case 2:
			args, want.Algorithm = append(args, "--style", "oci"), a
		case 3:
			tag = PlainTag(a)
			args = []string{"-B", "--tag", "--digest", string(a)}
			want.Tag, want.Digest = &tag, checksum(t, linear(a), content)
		}
		if c.random.IntN(3) == 0 {
			args, style.Base64 = append(args, "--base64"), true
		}
		if want.Tag == nil && want.Algorithm == "" && c.random.IntN(2) == 0 {
			args, style.Binary = append(args, "--binary"), true
		}
		line, messages, status := c.run(t, append(args, "--", name)...)
		if status != 0 {
			t.Fatalf("%q: %s", args, messages)
		}
		if got := string(want.AppendLine(nil, style)); got != line {
			t.Errorf("%q, not %q", got, line)
		}
		expectEntry(t, &Parser{Algorithm: a}, []byte(line), &want)
		if len(want.Digest) >= minAny || want.Tag != nil || want.Algorithm != "" {
			expectEntry(t, new(Parser), []byte(line), &want)
		}
		_ = os.Remove(filepath.Join(c.folder, name))
	}
}

func TestCommandChecksLines(t *testing.T) {
	c := newCommand(t, 60)
	var lines []byte
	entries := 0
	for i := range c.cases {
		name, content := c.name()+strconv.Itoa(i), c.bytes(4096*c.random.IntN(3))
		c.write(t, name, content)
		// A list has one digest for lines without a tag.
		p := blkhash.Parameters{BlockSize: 512 << c.random.IntN(12)}
		tagged := NewEntry(name, nil, TagOf(p))
		switch c.random.IntN(5) {
		case 0:
			p = blkhash.Parameters{Construction: blkhash.FSVerity, BlockSize: 1024, Salt: c.bytes(c.random.IntN(33))}
			tagged.Tag = &Tag{Parameters: p}
		case 1:
			tagged.Tag = &Tag{Parameters: p, Content: Content{Format: "raw"}}
		case 2:
			p = linear(blkhash.Algorithms()[1+c.random.IntN(23)])
			tagged = NewEntry(name, nil, PlainTag(p.Algorithm))
		case 3:
			p = blkhash.Parameters{}
			tagged.Tag = nil
		case 4:
			p = blkhash.Parameters{}
			tagged.Tag, tagged.Algorithm = nil, blkhash.SHA256
		}
		tagged.Digest = checksum(t, p, content)
		if err := tagged.Check(); err != nil {
			t.Fatal(err)
		}
		style := Style{Binary: c.random.IntN(2) == 0, Base64: c.random.IntN(2) == 0}
		lines = tagged.AppendLine(lines, style)
		entries++
	}
	c.write(t, "SUMS", lines)
	out, messages, status := c.run(t, "-c", "--strict", "--warn", "SUMS")
	if status != 0 || strings.Count(out, ": OK") != entries {
		t.Errorf("%d of %d lines: %s%s%s", strings.Count(out, ": OK"), entries, lines, out, messages)
	}
}

// nearLine returns a line that may be malformed.
func (c *command) nearLine() string {
	digest := c.bytes([]int{4, 16, 20, 31, 32, 32, 32, 64}[c.random.IntN(8)])
	digits := hex.EncodeToString(digest)
	var line string
	switch c.random.IntN(8) {
	case 0:
		line = base64.StdEncoding.EncodeToString(digest) + c.pick("  ", " *", " ", "\t") + c.pick("a", "b c", "(")
	case 1:
		text := c.pick(digits, base64.StdEncoding.EncodeToString(digest), base64.RawURLEncoding.EncodeToString(digest))
		line = c.pick("sha256", "SHA512", "sha-256", "SHA2-512/256", "md6", "blake3", "", "null", "md5") +
			c.pick(":", ":", ": ", ":\t  ", " : ") + text + c.pick("  a", " a", "", "\ta")
	case 2:
		line = c.pick("SHA256", "MD5", "SHA1", "SHA2-256", "BLAKE2b", "BLAKE2B", "XXH3", "CRC32", "NULL", "sha256",
			"SHA-256", "sha-512-256", "SHA512/256", "BLAKE2s", "SHA--1", "-MD5", "\ufeffMD5") +
			c.pick(" (", "(", "  (", " \t(") + c.pick("a", "", "a) = b", "\\") + c.pick(") = ", ")=", ")\t= ", ") ") + digits
	case 3:
		line = c.pick("BLKSUM-SHA256-STREAMS4-64K", "BLKSUM-SHA512-FLAT-4M", "BLKSUM-MD5-LINEAR",
			"BLKSUM-SHA256-FSVERITY-4K-SALT00", "BLKSUM-SHA256-STREAMS4-64", "BLKSUM-")
		line += c.pick("", "", "/PARTITION=1", "/FORMAT=qcow2/SNAPSHOT=%20", "/LENGTH=511", "/X=1") + " (a) = " + digits
	case 4:
		line = c.pick(" ", "#", "\\", "\t\\") + digits + "  a" + c.pick("", "\\", "\\n", "\\x")
	case 5:
		for range c.random.IntN(8) {
			line += c.pick(
				digits, "SHA256", "BLKSUM-SHA256-STREAMS4-64K", "/LENGTH=512", " ", "\t", "*", "\\", "(", ")", "=", "-", "#", "0")
		}
	default:
		line = digits + c.pick("  a", " *a", " a", "  ", " *", " ", "\ta", "  a b", "  #", " \\") + c.pick("", "", "\r")
	}
	if c.random.IntN(4) == 0 && len(line) > 0 && !strings.Contains(line, ":") {
		// Change, remove or repeat a byte.
		i := c.random.IntN(len(line))
		change := []string{string(rune(c.random.IntN(128))), "", line[i:i+1] + line[i:i+1], "\xff"}
		line = line[:i] + change[c.random.IntN(len(change))] + line[i+1:]
	}
	if c.random.IntN(100) == 0 {
		line += strings.Repeat("x", maxLine-len(line)-c.random.IntN(3))
	}
	return line
}

var (
	improper   = regexp.MustCompile(`(?m)^blksum: SUMS: (\d+): improperly formatted `)
	notChecked = regexp.MustCompile(`tags? of blksum w`)
)

func TestMalformedLinesOfTheCommand(t *testing.T) {
	c := newCommand(t, 60)
	all, count := 0, 0
	for range c.cases {
		// The first line keeps the file from being one without lines.
		text := "SHA256 (a) = " + testHex + "\n"
		for range 40 {
			text += c.nearLine() + c.pick("\n", "\n", "\n", "\r\n")
		}
		c.write(t, "SUMS", []byte(text))
		_, messages, status := c.run(t, "-c", "--warn", "SUMS")
		var want, got []string
		for _, match := range improper.FindAllStringSubmatch(messages, -1) {
			want = append(want, match[1])
		}
		entries, malformed, err := ReadAll(strings.NewReader(text))
		unchecked := 0
		for _, m := range malformed {
			got = append(got, strconv.Itoa(m.Line))
			if m.ImageTag {
				unchecked++
			}
		}
		all, count = all+len(entries)+len(got), count+len(got)
		isBinary := strings.IndexByte(text[:512], 0) >= 0
		switch {
		case isBinary:
			if !errors.Is(err, ErrNotCheckFile) || status != 1 {
				t.Errorf("%v, %s", err, messages)
			}
		case !slices.Equal(got, want):
			t.Errorf("%q: lines %v, and by blksum %v", text, got, want)
		case (unchecked > 0) != (err != nil) || (unchecked > 0) != notChecked.MatchString(messages):
			t.Errorf("%d lines with a tag, %v, %s", unchecked, err, messages)
		}
	}
	t.Logf("%d of %d lines are malformed", count, all)
}

func TestValuesOfTheCommand(t *testing.T) {
	c := newCommand(t, 60)
	c.write(t, "d", nil)
	values := 0
	for range c.cases {
		text := c.valueText(blkhash.SHA256, testDigest)
		if c.random.IntN(2) == 0 {
			i := c.random.IntN(len(text))
			change := []string{string(rune(1 + c.random.IntN(126))), "", "=", "-2"}
			text = text[:i] + change[c.random.IntN(len(change))] + text[i+1:]
		}
		_, messages, status := c.run(t, "--expect="+text, "d")
		_, err := ParseValue(text)
		if (err != nil) != (status == 2) {
			t.Errorf("%q: %v, and by blksum %d, %s", text, err, status, messages)
		}
		if err == nil {
			values++
		}
	}
	t.Logf("%d of %d texts are values", values, c.cases)
}

// valueText returns a value in one of its forms.
func (c *command) valueText(a blkhash.Algorithm, digest []byte) string {
	digits := hex.EncodeToString(digest)
	switch c.random.IntN(9) {
	case 0:
		return strings.ToUpper(digits)
	case 1:
		return base64.StdEncoding.EncodeToString(digest)
	case 2:
		return base64.RawURLEncoding.EncodeToString(digest)
	case 3:
		return string(a) + c.pick(":", "=") + digits
	case 4:
		return strings.ToUpper(string(a)) + ":" + base64.StdEncoding.EncodeToString(digest)
	case 5:
		if slices.Contains(integrity, a) {
			return string(a) + "-" + base64.StdEncoding.EncodeToString(digest)
		}
	case 6:
		if len(digest) >= minAny {
			return digits + "  x"
		}
	case 7:
		return `"` + digits + `"`
	}
	return digits
}

// verdict is an object of `blksum --expect --json`.
type verdict struct {
	Status, Expected string
	reading
	TagLine *string `json:"tag_line"`
	Tried   []reading
	Reasons []string
}

type reading struct {
	Digest       *string
	Construction *string
	BlockSize    *int `json:"block_size"`
	Bytes        *bool
}

func (r reading) String() string {
	if r.Digest == nil {
		return ""
	}
	size := 0
	if r.BlockSize != nil {
		size = *r.BlockSize
	}
	return fmt.Sprint(*r.Digest, " ", *r.Construction, " ", size, " ", *r.Bytes)
}

func textOf(r Reading) string {
	return fmt.Sprint(r.Parameters.Algorithm, " ", r.Parameters.Construction, " ", r.Parameters.BlockSize, " ", r.Bytes)
}

// expect returns what the command says about values of an image.
func (c *command) expect(t *testing.T, name string, values []string, args ...string) []verdict {
	t.Helper()
	for _, v := range values {
		args = append(args, "--expect="+v)
	}
	out, messages, status := c.run(t, append(args, "--json", name)...)
	found := map[string]verdict{}
	for line := range strings.Lines(out) {
		var v verdict
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		found[v.Expected] = v
	}
	// Values with the name of the image come first in the output. Errors have no value.
	verdicts := make([]verdict, len(values))
	for i, text := range values {
		var ok bool
		if verdicts[i], ok = found[text]; !ok {
			if verdicts[i], ok = found[""]; !ok {
				t.Fatalf("%q: status %d, %s%s", args, status, out, messages)
			}
		}
	}
	return verdicts
}

// compare compares a result with the command's.
func compare(t *testing.T, name, text string, v Value, m Match, want verdict) {
	t.Helper()
	var tried, wanted []string
	for _, r := range m.Tried {
		tried = append(tried, textOf(r))
	}
	for _, r := range want.Tried {
		wanted = append(wanted, r.String())
	}
	isDoubted := len(want.Reasons) > 0 && strings.HasPrefix(want.Reasons[0], "has this value as ")
	switch {
	case want.Status == "error" && !m.OK && len(m.Tried) == 0:
	case m.OK != (want.Status == "ok") || !slices.Equal(tried, wanted) || (m.Doubt != NoDoubt) != isDoubted:
		t.Errorf("%s: %q: %v of %v, and by blksum %+v", name, text, m, tried, want)
	case !m.OK:
	case textOf(m.Reading) != want.String():
		t.Errorf("%s: %q: %s, and by blksum %s", name, text, textOf(m.Reading), want.reading)
	case want.TagLine == nil || NewEntry(name, v.Digest, m.Tag).String() != *want.TagLine:
		t.Errorf("%s: %q: %s, and by blksum %v", name, text, m.Tag, want.TagLine)
	}
}

// image returns random content: runs of zeros, text and noise, and now and then what others may have made.
func (c *command) image() []byte {
	var content []byte
	switch c.random.IntN(6) {
	case 0:
		content = c.bytes(32 * c.random.IntN(200))
	case 1:
		// A block of a tree of verity, with a salt in front of it.
		content = append(c.bytes(32*(1+c.random.IntN(16))), make([]byte, 1<<19)...)
		content = content[:1<<(9+c.random.IntN(11))-c.random.IntN(2)]
		content = append(c.bytes(c.random.IntN(2)*c.random.IntN(300)), content...)
	default:
		for range c.random.IntN(12) {
			n := 1 + c.random.IntN(40_000)
			if c.random.IntN(2) == 0 {
				n = (n + 511) / 512 * 512
			}
			switch c.random.IntN(3) {
			case 0:
				content = append(content, make([]byte, n)...)
			case 1:
				content = append(content, c.bytes(n)...)
			case 2:
				content = append(content, bytes.Repeat([]byte{byte(1 + c.random.IntN(255))}, n)...)
			}
		}
	}
	return content
}

// parameters returns random parameters.
func (c *command) parameters() blkhash.Parameters {
	all := blkhash.Algorithms()
	p := blkhash.Parameters{Algorithm: all[1+c.random.IntN(len(all)-1)]}
	if c.random.IntN(2) == 0 {
		p.Algorithm = blkhash.SHA256
	}
	p.Construction = blkhash.Construction(c.pick(
		"streams:4", "streams:32", "streams:64", "streams:5", "flat", "concat", "linear", "linear"))
	if c.random.IntN(5) == 0 {
		p.BlockSize = 512 << c.random.IntN(15)
	}
	return p.WithDefaults()
}

// values returns texts that are values of content, or are not.
func (c *command) values(t *testing.T, content []byte) (texts []string) {
	for range 6 {
		p := c.parameters()
		digest := checksum(t, p, content)
		entry := NewEntry("x", digest, TagOf(p))
		if p.Construction == blkhash.Linear {
			entry.Tag = &Tag{Parameters: p, Bytes: c.random.IntN(2) == 0}
		}
		if c.random.IntN(10) == 0 {
			digest[0] ^= 1
		}
		switch {
		case c.random.IntN(5) == 0:
			texts = append(texts, entry.String())
		case p.Construction == blkhash.Concat:
			parts := max(1, (len(content)+p.BlockSize-1)/p.BlockSize)
			texts = append(texts, fmt.Sprintf("%x-%d", digest, min(parts, maxParts)))
		default:
			texts = append(texts, c.valueText(p.Algorithm, digest))
		}
	}
	return texts
}

// narrow returns options of a search, and the command's.
func (c *command) narrow() (o Options, args []string) {
	if c.random.IntN(3) > 0 {
		return o, nil
	}
	if c.random.IntN(2) == 0 {
		// All values of an image must have a digest, or the command line is wrong.
		o.Algorithms = blkhash.Algorithms()[1:]
		c.random.Shuffle(len(o.Algorithms), func(i, j int) {
			o.Algorithms[i], o.Algorithms[j] = o.Algorithms[j], o.Algorithms[i]
		})
		for _, a := range o.Algorithms {
			args = append(args, "--digest", string(a))
		}
	}
	if c.random.IntN(2) == 0 {
		o.Construction = blkhash.Construction(c.pick("linear", "flat", "concat", "streams:5"))
		args = append(args, "--construction", string(o.Construction))
	}
	if o.Construction != blkhash.Linear && c.random.IntN(2) == 0 {
		o.BlockSize = 512 << c.random.IntN(15)
		args = append(args, "--block-size", strconv.Itoa(o.BlockSize))
	}
	return o, args
}

// compareValues compares results for a raw image.
func (c *command) compareValues(t *testing.T, content []byte, texts []string, o Options, args []string) {
	t.Helper()
	c.write(t, "x", content)
	f, err := os.Open(filepath.Join(c.folder, "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for i, want := range c.expect(t, "x", texts, args...) {
		v, err := ParseValue(texts[i])
		if err != nil {
			t.Fatal(texts[i], err)
		}
		m, err := ExpectFile(t.Context(), f, v, o)
		if err != nil {
			t.Fatalf("%d bytes, %q: %v, and by blksum %+v", len(content), texts[i], err, want)
		}
		compare(t, "x", texts[i], v, m, want)
	}
}

func TestExpectLikeTheCommand(t *testing.T) {
	c := newCommand(t, 8)
	for range c.cases {
		content := c.image()
		o, args := c.narrow()
		c.compareValues(t, content, c.values(t, content), o, args)
	}
}

func TestForgeriesLikeTheCommand(t *testing.T) {
	c := newCommand(t, 1)
	for _, f := range forgeries(t) {
		o, args := Options{}, []string(nil)
		if f.name == "streams as concat" {
			o.BlockSize, args = 8192, []string{"--block-size", "8192"}
		}
		c.compareValues(t, f.content, []string{hex.EncodeToString(f.value.Digest)}, o, args)
	}
	// Lists of digests of random images, with each digest and each construction.
	for range min(c.cases, 100) {
		original, p := c.image(), c.parameters()
		if p.Construction == blkhash.Linear || p.BlockSize == 0 {
			continue
		}
		var list []byte
		for at := 0; at < len(original); at += p.BlockSize {
			block := original[at:min(len(original), at+p.BlockSize)]
			list = append(list, checksum(t, linear(p.Algorithm), block)...)
		}
		values := []string{
			hex.EncodeToString(checksum(t, p, original)), hex.EncodeToString(checksum(t, linear(p.Algorithm), list)),
		}
		c.compareValues(t, list, values, Options{}, nil)
	}
}

// An image with other bytes than its content.
func TestImagesLikeTheCommand(t *testing.T) {
	c := newCommand(t, 3)
	convert, err := exec.LookPath("qemu-img")
	if err != nil {
		t.Skip("skipped: no qemu-img")
	}
	for i := range c.cases {
		content := c.image()
		switch i % 5 {
		case 0:
			content = append([]byte("QFI\xfb\x00\x00\x00\x03"), content...)
		case 1:
			content = append(content, make([]byte, 1024)...)
			copy(content[len(content)-512:], "koly")
		}
		content = append(content, make([]byte, 511)...)
		content = content[:len(content)/512*512]
		c.write(t, "raw", content)
		image := filepath.Join(c.folder, "x.qcow2")
		cmd := exec.Command(convert, "convert", "-f", "raw", "-O", "qcow2", filepath.Join(c.folder, "raw"), image)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
		file, err := os.ReadFile(image)
		if err != nil {
			t.Fatal(err)
		}
		o, args := c.narrow()
		o.Bytes, o.BytesSize = bytes.NewReader(file), int64(len(file))
		texts := c.values(t, content)
		texts = append(texts, c.values(t, file)...)
		texts = slices.DeleteFunc(texts, func(text string) bool { return strings.Contains(text, "BLKSUM-") })
		for i, want := range c.expect(t, "x.qcow2", texts, args...) {
			v, err := ParseValue(texts[i])
			if err != nil {
				t.Fatal(texts[i], err)
			}
			compare(t, "x.qcow2", texts[i], v, expectContent(t, content, v, o), want)
		}
	}
}
