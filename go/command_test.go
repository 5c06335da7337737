package blkhash_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
)

// command returns the blksum to compare with.
func command(t *testing.T) string {
	name := os.Getenv("BLKSUM")
	if name == "" {
		t.Skip("skipped: BLKSUM names no blksum to compare with")
	}
	return name
}

// writeSparse writes content to a new file. What the extents report as zeros becomes a hole, where the file system has
// holes of that size.
func writeSparse(t *testing.T, name string, content []byte, extents []blkhash.Extent) {
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	write := func(end int64) {
		if _, err := f.WriteAt(content[at:end], at); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range extents {
		if e.Zero {
			write(e.Offset)
			at = e.End()
		}
	}
	write(int64(len(content)))
	if err := f.Truncate(int64(len(content))); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCommand compares checksums of random files with blksum's.
func TestCommand(t *testing.T) {
	blksum, folder := command(t), t.TempDir()
	cases := uint64(1000)
	if testing.Short() {
		cases = 100
	}
	for seed := range cases {
		r := seeded(seed)
		content, extents := randomContent(r)
		p := randomParameters(r).WithDefaults()
		if p.Construction == blkhash.DMVerity {
			content = append(content, make([]byte, p.BlockSize-len(content)%p.BlockSize)...)
		}
		if p.Algorithm == blkhash.Null {
			continue
		}
		name := filepath.Join(folder, fmt.Sprint(seed))
		writeSparse(t, name, content, extents)
		args := []string{"--format", "raw", "--digest", string(p.Algorithm), "--construction", string(p.Construction), name}
		if p.Construction != blkhash.Linear {
			args = append(args, "--block-size", strconv.Itoa(p.BlockSize))
		}
		if p.Salt != nil {
			args = append(args, "--salt", hex.EncodeToString(p.Salt))
		}
		out, err := exec.Command(blksum, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("blksum %q: %v: %s", args, err, out)
		}
		want, _, _ := strings.Cut(string(out), " ")
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := blkhash.SumFile(t.Context(), f, p)
		if got := hex.EncodeToString(sum); err != nil || got != want {
			t.Errorf("seed %d: %+v: %s, not %s, %v", seed, p, got, want, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAlgorithms compares the names with those that blksum lists.
func TestAlgorithms(t *testing.T) {
	out, err := exec.Command(command(t), "--list-digests").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(out))
	if len(names) != len(blkhash.Algorithms()) {
		t.Errorf("blksum has %d digests", len(names))
	}
	for _, name := range names {
		if a, err := blkhash.ParseAlgorithm(strings.ToUpper(name)); err != nil || string(a) != name {
			t.Errorf("%s: %s, %v", name, a, err)
		}
	}
}
