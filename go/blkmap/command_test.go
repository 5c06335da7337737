package blkmap_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/blkmap"
)

// command returns a function that runs `blkhash map`. BLKHASH names the program, or BLKSUM the one next to it.
func command(t *testing.T) func(args ...string) (string, int) {
	program := os.Getenv("BLKHASH")
	if blksum := os.Getenv("BLKSUM"); program == "" && blksum != "" {
		program = filepath.Join(filepath.Dir(blksum), "blkhash")
	}
	if program == "" {
		fmt.Println("skipped: maps are not compared with blkhash's: BLKHASH does not name the program")
		t.Skip("BLKHASH is not set")
	}
	return func(args ...string) (string, int) {
		cmd := exec.Command(program, append([]string{"map"}, args...)...)
		var errors bytes.Buffer
		cmd.Stderr = &errors
		out, err := cmd.Output()
		_, exited := err.(*exec.ExitError)
		if err != nil && !exited || cmd.ProcessState.ExitCode() > 1 && args[0] != "check" {
			t.Fatalf("%v: %v: %s", args, err, errors.String())
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
}

// cases is the number of random cases, BLKMAP_CASES or a few.
func cases(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("BLKMAP_CASES")); err == nil {
		return n
	}
	return 12
}

// random makes images and parameters.
type random struct{ *rand.Rand }

func (r random) parameters() blkmap.Parameters {
	algorithms := blkhash.Algorithms()[1:]
	p := blkmap.Parameters{Algorithm: algorithms[r.IntN(len(algorithms))], BlockSize: 512 << r.IntN(5)}
	if r.IntN(3) == 0 {
		p.Salt = r.bytes(1 + r.IntN(40))
	}
	return p
}

func (r random) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// image returns content of up to 600 blocks with runs of zeros.
func (r random) image(blockSize int) []byte {
	var b []byte
	for range r.IntN(8) {
		n := r.IntN(75 * blockSize)
		if r.IntN(3) > 0 {
			n -= n % blockSize
		}
		if r.IntN(2) == 0 {
			b = append(b, make([]byte, n)...)
		} else {
			b = append(b, r.bytes(n)...)
		}
	}
	return b
}

// changed returns content in which parts are changed, of another length sometimes.
func (r random) changed(b []byte, blockSize int) []byte {
	b = bytes.Clone(b)
	for range r.IntN(6) {
		if len(b) == 0 {
			break
		}
		at := r.IntN(len(b))
		part := b[at:min(len(b), at+r.IntN(4*blockSize))]
		if r.IntN(2) == 0 {
			clear(part)
		} else {
			copy(part, r.bytes(len(part)))
		}
	}
	switch r.IntN(6) {
	case 0:
		b = b[:r.IntN(len(b)+1)]
	case 1:
		b = append(b, make([]byte, r.IntN(3*blockSize))...)
	case 2:
		b = append(b, r.bytes(r.IntN(3*blockSize))...)
	}
	return b
}

// holes reports some of the zeros of content.
func holes(b []byte, unit int) blkhash.Extents {
	return func(yield func(blkhash.Extent, error) bool) {
		for at := 0; at+unit <= len(b); at += unit {
			if len(bytes.Trim(b[at:at+unit], "\x00")) == 0 &&
				!yield(blkhash.Extent{Offset: int64(at), Length: int64(unit), Zero: true}, nil) {
				return
			}
		}
	}
}

func create(t testing.TB, content []byte, p blkmap.Parameters, o blkmap.WriterOptions) []byte {
	t.Helper()
	out := &file{}
	err := blkmap.Create(t.Context(), out, bytes.NewReader(content), int64(len(content)), holes(content, 700), p, o)
	if err != nil {
		t.Fatal(err)
	}
	return out.data
}

// rangeLine is a line of `diff --json`.
type rangeLine struct {
	Type           string
	Offset, Length int64
	Kind           blkmap.Kind
}

func ranges(t *testing.T, lines string) (list []blkmap.Difference) {
	for line := range strings.Lines(lines) {
		var r rangeLine
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Type == "range" {
			list = append(list, blkmap.Difference{Offset: r.Offset, Length: r.Length, Kind: r.Kind})
		}
	}
	return list
}

// blocksOnly leaves out the bytes that a longer image has in the last block of the shorter one, which the commands do
// not list.
func blocksOnly(list []blkmap.Difference, blockSize int) []blkmap.Difference {
	return slices.DeleteFunc(list, func(d blkmap.Difference) bool { return d.Offset%int64(blockSize) != 0 })
}

func differences(t testing.TB, seq func(func(blkmap.Difference, error) bool)) (list []blkmap.Difference) {
	t.Helper()
	for d, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}

func TestCommand(t *testing.T) {
	run := command(t)
	for seed := range uint64(cases(t)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			testCommand(t, run, random{rand.New(rand.NewPCG(seed, 1))})
		})
	}
}

func testCommand(t *testing.T, run func(...string) (string, int), r random) {
	t.Chdir(t.TempDir())
	p := r.parameters()
	content := r.image(p.BlockSize)
	next := r.changed(content, p.BlockSize)
	write := func(name string, b []byte) {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	write("image", content)
	write("next", next)
	options := []string{"--digest", string(p.Algorithm), "--block-size", fmt.Sprint(p.BlockSize)}
	if len(p.Salt) > 0 {
		options = append(options, "--salt", hex.EncodeToString(p.Salt))
	}
	run(append([]string{"create", "-fraw", "-o", "theirs.blkmap", "image"}, options...)...)
	run(append([]string{"create", "-fraw", "-o", "next.blkmap", "next"}, options...)...)
	theirs := read("theirs.blkmap")
	m := open(t, theirs)
	if err := m.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	// With the same id and info, maps are equal byte for byte.
	ours := create(t, content, p, blkmap.WriterOptions{FileID: m.FileID(), Info: m.RawInfo()})
	if !bytes.Equal(ours, theirs) {
		t.Errorf("differs at %d from the map of the command", firstDifference(ours, theirs))
	}
	key := []byte("a key of sixteen or more bytes")
	write("key", key)
	write("ours.blkmap", create(t, content, p, blkmap.WriterOptions{Key: key, Checkpoint: int64(1 + r.IntN(30_000))}))
	if out, status := run("check", "--key-file", "key", "ours.blkmap"); status != 0 {
		t.Error(out)
	}
	if out, status := run("verify", "--key-file", "key", "-fraw", "ours.blkmap", "image"); status != 0 {
		t.Error(out)
	}
	// A state that is appended.
	out := &file{data: bytes.Clone(theirs)}
	w, err := blkmap.Append(m, out, int64(len(next)), blkmap.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Read(t.Context(), bytes.NewReader(next), nil); err != nil {
		t.Fatal(err)
	}
	write("appended.blkmap", out.data)
	if out, status := run("check", "appended.blkmap"); status != 0 {
		t.Error(out)
	}
	if out, status := run("diff", "appended.blkmap", "next.blkmap"); status != 0 {
		t.Error(out)
	}
	after := open(t, out.data)

	lines, _ := run("diff", "--json", "--max-errors", "0", "theirs.blkmap", "next.blkmap")
	want := ranges(t, lines)
	got := blocksOnly(differences(t, blkmap.Diff(m, open(t, read("next.blkmap")))), p.BlockSize)
	if !slices.Equal(got, want) {
		t.Errorf("diff %v, not %v", got, want)
	}
	if got := blocksOnly(differences(t, blkmap.Diff(m, after)), p.BlockSize); !slices.Equal(got, want) {
		t.Errorf("diff of states %v, not %v", got, want)
	}
	verified := m.Verify(t.Context(), bytes.NewReader(next), int64(len(next)), holes(next, 512))
	if got := blocksOnly(differences(t, verified), p.BlockSize); !slices.Equal(got, want) {
		t.Errorf("verify %v, not %v", got, want)
	}
	testChecksums(t, run, m, content)
}

func testChecksums(t *testing.T, run func(...string) (string, int), m *blkmap.Map, content []byte) {
	for _, c := range []blkhash.Construction{
		blkhash.Streams(4), blkhash.Flat, blkhash.FSVerity, blkhash.DMVerity, blkhash.Linear,
	} {
		p, err := m.ChecksumParameters(c)
		if err != nil {
			continue
		}
		got, err := m.Checksum(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		want, err := blkhash.Sum(t.Context(), bytes.NewReader(content), int64(len(content)), nil, p)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, not %x, %v", c, got, want, err)
		}
		if c == blkhash.Linear {
			continue
		}
		out, _ := run("checksum", "--construction", string(c), "theirs.blkmap")
		if sum, _, _ := strings.Cut(out, " "); sum != hex.EncodeToString(got) {
			t.Errorf("%s: %x, not %s", c, got, sum)
		}
	}
}

// TestShardsOfCommand compares the maps of parts, and verifies them without a look at the others.
func TestShardsOfCommand(t *testing.T) {
	run := command(t)
	t.Chdir(t.TempDir())
	r := random{rand.New(rand.NewPCG(7, 7))}
	content := append(append(r.bytes(400_000), make([]byte, 300_000)...), r.bytes(99_999)...)
	if err := os.WriteFile("image", content, 0o600); err != nil {
		t.Fatal(err)
	}
	for k := range int64(3) {
		name := fmt.Sprintf("%d.blkmap", k)
		run("create", "-fraw", "--block-size", "512", "--shard", fmt.Sprintf("%d/3", k+1), "-o", name, "image")
		theirs, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m := open(t, theirs)
		pages := (m.Blocks() + 127) / 128
		first, end := pages*k/3, pages*(k+1)/3
		o := blkmap.WriterOptions{FileID: m.FileID(), Info: m.RawInfo(), FirstPage: first, Pages: end - first}
		if ours := create(t, content, m.Parameters(), o); !bytes.Equal(ours, theirs) {
			t.Errorf("part %d differs at %d", k, firstDifference(ours, theirs))
		}
		part := &partOnly{content, first * 128 * 512, min(end*128*512, int64(len(content)))}
		list := differences(t, m.Verify(t.Context(), part, int64(len(content)), holes(content, 300)))
		for _, d := range list {
			if d.Kind != blkmap.Unknown {
				t.Errorf("part %d: %v", k, d)
			}
		}
		if len(list) == 0 {
			t.Error("nothing is unknown")
		}
	}
}

// partOnly is content that can be read in a range alone.
type partOnly struct {
	content    []byte
	start, end int64
}

func (p *partOnly) ReadAt(b []byte, offset int64) (int, error) {
	if offset < p.start || offset+int64(len(b)) > p.end {
		return 0, fmt.Errorf("read of %d bytes at %d, outside of %d to %d", len(b), offset, p.start, p.end)
	}
	n := copy(b, p.content[offset:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
