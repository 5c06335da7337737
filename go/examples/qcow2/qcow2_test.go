package qcow2_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/examples/qcow2"
)

// tool runs a command, and returns what it prints.
func tool(t *testing.T, name string, args ...string) string {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

// tools returns the blksum to compare with, and skips the test without it or qemu-img.
func tools(t *testing.T) string {
	blksum := os.Getenv("BLKSUM")
	if blksum == "" {
		t.Skip("skipped: BLKSUM names no blksum to compare with")
	}
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip("skipped: qemu-img is not installed")
	}
	return blksum
}

func sum(t *testing.T, name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	value, err := qcow2.Sum(t.Context(), f, blkhash.Parameters{})
	return hex.EncodeToString(value), err
}

// TestRandomImages compares random qcow2 images, and compressed copies of them, with blksum.
func TestRandomImages(t *testing.T) {
	blksum, folder := tools(t), t.TempDir()
	cases := uint64(100)
	if testing.Short() {
		cases = 10
	}
	for seed := range cases {
		r := rand.New(rand.NewPCG(seed, 0))
		size := 512 * (1 + r.IntN(1<<15))
		name := filepath.Join(folder, fmt.Sprintf("%d.qcow2", seed))
		tool(t, "qemu-img", "create", "-q", "-f", "qcow2", "-o", fmt.Sprintf("cluster_size=%d,compat=%s", 512<<r.IntN(12), []string{"0.10", "1.1"}[r.IntN(2)]), name, fmt.Sprint(size))
		args := []string{"-f", "qcow2"}
		for range 1 + r.IntN(10) {
			offset := r.IntN(size/512) * 512
			length := 512 * (1 + r.IntN((size-offset)/512))
			args = append(args, "-c", fmt.Sprintf("%s %d %d", []string{"write -P 65", "write -P 0", "write -z", "discard", "write -P 66"}[r.IntN(5)], offset, min(length, 1<<20)))
		}
		tool(t, "qemu-io", append(args, name)...)
		packed := name + ".packed"
		tool(t, "qemu-img", "convert", "-q", "-c", "-O", "qcow2", name, packed)
		want, _, _ := strings.Cut(tool(t, blksum, name), " ")
		for _, name := range []string{name, packed} {
			if got, err := sum(t, name); err != nil || got != want {
				t.Errorf("%s: %s, not %s, %v", name, got, want, err)
			}
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestBackingFilesAreRefused(t *testing.T) {
	tools(t)
	base := filepath.Join(t.TempDir(), "base.qcow2")
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", base, "1M")
	overlay := base + ".overlay"
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "qcow2", overlay)
	if got, err := sum(t, overlay); !errors.Is(err, qcow2.ErrBacking) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestOtherFormatsAreRefused(t *testing.T) {
	tools(t)
	folder := t.TempDir()
	for _, format := range [][]string{{"vmdk"}, {"vdi"}, {"vhdx"}, {"vpc"}, {"vpc", "-o", "subformat=fixed"}, {"qed"}, {"qcow"}, {"parallels"}} {
		name := filepath.Join(folder, "disk")
		tool(t, "qemu-img", append(append([]string{"create", "-q", "-f"}, format...), name, "1M")...)
		if got, err := sum(t, name); err == nil {
			t.Errorf("%s: %s", format, got)
		}
	}
	tool(t, "sh", "-c", "head -c 1M /dev/zero | gzip > "+filepath.Join(folder, "disk.gz"))
	if got, err := sum(t, filepath.Join(folder, "disk.gz")); err == nil {
		t.Errorf("gzip: %s", got)
	}
}
