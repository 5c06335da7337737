package blkhash_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/blkhash/blkhash/go"
)

// collector is a sink that keeps everything.
type collector struct {
	zero    []byte
	digests []byte
	short   []byte
}

func (c *collector) Blocks(digests []byte) error {
	c.digests = append(c.digests, digests...)
	return nil
}

func (c *collector) ZeroBlocks(n int64) error {
	c.digests = append(c.digests, bytes.Repeat(c.zero, int(n))...)
	return nil
}

func (c *collector) ShortBlock(content []byte) error {
	c.short = append(c.short, content...)
	return nil
}

func digestOf(a blkhash.Algorithm, parts ...[]byte) []byte {
	h := a.New()
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}

func TestBlockDigests(t *testing.T) {
	const blockSize = 512
	content := append(pattern(5000), make([]byte, 4000)...)
	content = append(content, "end"...)
	for _, salt := range []string{"", "salt"} {
		var want []byte
		for rest := content; len(rest) > 0; rest = rest[min(blockSize, len(rest)):] {
			want = append(want, digestOf(blkhash.CRC32C, []byte(salt), rest[:min(blockSize, len(rest))])...)
		}
		got := &collector{zero: digestOf(blkhash.CRC32C, []byte(salt), make([]byte, blockSize))}
		holes := func(yield func(blkhash.Extent, error) bool) {
			yield(blkhash.Extent{Offset: 5000, Length: 4000, Zero: true}, nil)
		}
		err := blkhash.BlockDigests(t.Context(), newReader(content), int64(len(content)), holes, blkhash.CRC32C,
			blockSize, []byte(salt), got)
		if err != nil || !bytes.Equal(got.digests, want) {
			t.Errorf("salt %q: %d bytes of digests, %v", salt, len(got.digests), err)
		}
		if short := content[len(content)/blockSize*blockSize:]; !bytes.Equal(got.short, short) {
			t.Errorf("salt %q: short block of %d bytes", salt, len(got.short))
		}
	}
}

func TestFoldIsHasher(t *testing.T) {
	content := append(pattern(10_000), make([]byte, 20_000)...)
	for _, c := range []blkhash.Construction{blkhash.Streams(3), blkhash.Flat, blkhash.Concat, blkhash.FSVerity} {
		p := blkhash.Parameters{Construction: c, BlockSize: 1024}
		fold, err := blkhash.NewFold(p)
		if err != nil {
			t.Fatal(err)
		}
		want, err := blkhash.Sum(t.Context(), newReader(content), int64(len(content)), nil, p, blkhash.WithSink(fold))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fold.Sum(int64(len(content))); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v, not %x", c, got, err, want)
		}
		if _, err := fold.Sum(1); err == nil {
			t.Errorf("%s: the number of blocks is not checked", c)
		}
	}
	if _, err := blkhash.NewFold(blkhash.Parameters{Construction: blkhash.Linear}); err == nil {
		t.Error("linear has a fold")
	}
}

func TestTooManyBlocks(t *testing.T) {
	f, err := blkhash.NewFold(blkhash.Parameters{Construction: blkhash.FSVerity})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.ZeroBlocks(math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	if f.ZeroBlocks(1) == nil || f.Repeat(make([]byte, 32), 1) == nil {
		t.Error("more than 2^63-1 blocks")
	}
}
