package blkhash_test

import (
	"encoding/hex"
	"testing"

	"github.com/blkhash/blkhash/go"
)

func TestVectors(t *testing.T) {
	for _, name := range []string{"constructions.json", "verity.json"} {
		for _, v := range readVectors(t, name) {
			image, p := newImage(t, v.Image), v.parameters(t)
			if image.size != v.Size {
				t.Fatalf("%s: size %d", v.Image, image.size)
			}
			counts := []int{1, 2}
			if v.Size > 1<<30 {
				counts = counts[1:]
			}
			for _, threads := range counts {
				sum, err := blkhash.Sum(t.Context(), image, v.Size, image.extents, p, blkhash.WithThreads(threads))
				if got := hex.EncodeToString(sum); err != nil || got != v.Hex {
					t.Errorf("%+v with %d threads: %s, %v", v, threads, got, err)
				}
				h, err := blkhash.New(p, blkhash.WithThreads(threads))
				if err != nil {
					t.Fatal(err)
				}
				image.write(t, h, 100_000)
				if got := hex.EncodeToString(h.Sum(nil)); got != v.Hex {
					t.Errorf("%+v written with %d threads: %s", v, threads, got)
				}
			}
		}
	}
}
