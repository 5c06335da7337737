package blkhash_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"testing"

	"github.com/blkhash/blkhash/go"
)

// benchmarked is content without blocks of zeros, longer than the caches.
var benchmarked = pattern(256 << 20)

// threadCounts returns the powers of two up to GOMAXPROCS.
func threadCounts() (counts []int) {
	for n := 1; n <= runtime.GOMAXPROCS(0); n *= 2 {
		counts = append(counts, n)
	}
	return counts
}

// BenchmarkSHA256 is the hash of the standard library with one goroutine.
func BenchmarkSHA256(b *testing.B) {
	b.SetBytes(int64(len(benchmarked)))
	for b.Loop() {
		sha256.Sum256(benchmarked)
	}
}

func BenchmarkSum(b *testing.B) {
	for _, p := range []blkhash.Parameters{{}, {Algorithm: blkhash.BLAKE3}, {Algorithm: blkhash.BLAKE2b256, BlockSize: 4 << 20}, {Algorithm: blkhash.XXH3}, {Algorithm: blkhash.Null}} {
		for _, threads := range threadCounts() {
			b.Run(fmt.Sprintf("%s/%d", p.WithDefaults().Algorithm, threads), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(benchmarked)))
				for b.Loop() {
					if _, err := blkhash.Sum(context.Background(), newReader(benchmarked), int64(len(benchmarked)), nil, p, blkhash.WithThreads(threads)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkZeros is of a terabyte that is not allocated.
func BenchmarkZeros(b *testing.B) {
	for _, threads := range threadCounts() {
		b.Run(fmt.Sprint(threads), func(b *testing.B) {
			b.SetBytes(1 << 40)
			hole := func(yield func(blkhash.Extent, error) bool) {
				yield(blkhash.Extent{Length: 1 << 40, Zero: true}, nil)
			}
			for b.Loop() {
				if _, err := blkhash.Sum(context.Background(), nil, 1<<40, hole, blkhash.Parameters{}, blkhash.WithThreads(threads)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHasher writes 32 KiB at a time, as io.Copy does.
func BenchmarkHasher(b *testing.B) {
	for _, threads := range threadCounts() {
		b.Run(fmt.Sprint(threads), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(benchmarked)))
			h, err := blkhash.New(blkhash.Parameters{}, blkhash.WithThreads(threads))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				h.Reset()
				for rest := benchmarked; len(rest) > 0; {
					part := rest[:min(len(rest), 32<<10)]
					if _, err := h.Write(part); err != nil {
						b.Fatal(err)
					}
					rest = rest[len(part):]
				}
				h.Sum(nil)
			}
		})
	}
}

// BenchmarkBlocks has the shortest blocks, so that the overhead for each shows.
func BenchmarkBlocks(b *testing.B) {
	p := blkhash.Parameters{Algorithm: blkhash.Null, BlockSize: blkhash.MinBlockSize}
	b.ReportAllocs()
	content := benchmarked[:16<<20]
	for b.Loop() {
		if _, err := blkhash.Sum(context.Background(), newReader(content), int64(len(content)), nil, p, blkhash.WithThreads(1)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(content)/p.BlockSize), "ns/block")
}
