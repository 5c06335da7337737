package blkmap_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/blkhash/blkhash/go/blkmap"
)

const benchmarked = 256 << 20

func BenchmarkVerify(b *testing.B) {
	content := newRandom(1).bytes(benchmarked)
	for name, p := range map[string]blkmap.Parameters{"64k": {}, "4k": {BlockSize: 4096}} {
		m := open(b, create(b, content, p, blkmap.WriterOptions{}))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(benchmarked)
			for b.Loop() {
				for d, err := range m.Verify(b.Context(), bytes.NewReader(content), benchmarked, nil) {
					b.Fatal(d, err)
				}
			}
		})
	}
}

// BenchmarkWriter has an operation for each block.
func BenchmarkWriter(b *testing.B) {
	p := blkmap.Parameters{}
	digests := newRandom(1).bytes(32 * 1024)
	w, err := blkmap.NewWriter(io.Discard, 1<<62, p, blkmap.WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := i % 1024 * 32
		if err := w.Blocks(digests[at : at+32]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDiff(b *testing.B) {
	content := newRandom(1).bytes(benchmarked / 4)
	p := blkmap.Parameters{BlockSize: 512}
	left := open(b, create(b, content, p, blkmap.WriterOptions{}))
	content[1] ^= 1
	right := open(b, create(b, content, p, blkmap.WriterOptions{}))
	b.ReportAllocs()
	for b.Loop() {
		if n := len(differences(b, blkmap.Diff(left, right))); n != 1 {
			b.Fatal(n)
		}
	}
}
