package blkmap_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/blkmap"
)

// badSectors is an image in which some bytes cannot be read.
type badSectors struct {
	content []byte
	bad     []int64
	err     error
}

func (b *badSectors) ReadAt(p []byte, offset int64) (int, error) {
	for _, at := range b.bad {
		if at >= offset && at < offset+int64(len(p)) {
			// A system may have read what is before.
			return copy(p, b.content[offset:at]), b.err
		}
	}
	return bytes.NewReader(b.content).ReadAt(p, offset)
}

// kinds returns how each block differs.
func kinds(t *testing.T, m *blkmap.Map, image *badSectors, blocks int64) []blkmap.Kind {
	t.Helper()
	found := make([]blkmap.Kind, blocks)
	size := int64(m.Parameters().BlockSize)
	end := int64(0)
	for d, err := range m.Verify(t.Context(), image, int64(len(image.content)), nil, blkhash.WithThreads(3)) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Offset < end || d.Length <= 0 {
			t.Fatalf("%+v after %d", d, end)
		}
		end = d.End()
		for at := d.Offset; at < d.End(); at = (at/size + 1) * size {
			found[at/size] = d.Kind
		}
	}
	return found
}

// TestBlocksThatCannotBeRead compares with the differences of an image that can be read.
func TestBlocksThatCannotBeRead(t *testing.T) {
	r := newRandom(4)
	for n := range 100 {
		size := int64(512 << r.IntN(4))
		content := r.image(int(size))
		content = append(content, make([]byte, r.IntN(5)*int(size))...)
		content = append(content, bytes.Repeat([]byte{7}, r.IntN(int(size)))...)
		if len(content) == 0 {
			continue
		}
		file := create(t, content, blkmap.Parameters{BlockSize: int(size)}, blkmap.WriterOptions{})
		m, err := blkmap.Open(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		image := &badSectors{content: slices.Clone(content)}
		for range r.IntN(6) {
			image.content[r.IntN(len(content))] ^= byte(r.IntN(2))
		}
		blocks := (int64(len(content)) + size - 1) / size
		want := kinds(t, m, image, blocks)
		for range 1 + r.IntN(8) {
			at := r.Int64N(int64(len(content)))
			image.bad = append(image.bad, at)
			want[at/size] = blkmap.Unreadable
		}
		slices.Sort(image.bad)
		image.err = []error{syscall.EIO, fmt.Errorf("disk: %w", blkmap.ErrUnreadable)}[n%2]
		if found := kinds(t, m, image, blocks); !slices.Equal(found, want) {
			t.Fatalf("%d: %v instead of %v", n, found, want)
		}
		// Another error is not about the bytes.
		image.err = errors.New("connection lost")
		err = nil
		for _, err = range m.Verify(t.Context(), image, int64(len(content)), nil) {
		}
		if !errors.Is(err, image.err) {
			t.Fatal(err)
		}
	}
}
