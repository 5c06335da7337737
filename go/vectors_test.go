package blkhash_test

import (
	"encoding/hex"
	"testing"

	"github.com/blkhash/blkhash/go"
)

func TestVectors(t *testing.T) {
	for _, name := range []string{"constructions.json", "verity.json"} {
		for _, v := range readVectors(t, name) {
			image, p := newImage(t, v.Image), v.parameters()
			if image.size != v.Size {
				t.Fatalf("%s: size %d", v.Image, image.size)
			}
			for _, threads := range []int{1, 2} {
				sum, err := blkhash.Sum(t.Context(), image, v.Size, image.extents, p, blkhash.Threads(threads))
				if got := hex.EncodeToString(sum); err != nil || got != v.Hex {
					t.Errorf("%+v with %d threads: %s, %v", v, threads, got, err)
				}
				h, err := blkhash.New(p, blkhash.Threads(threads))
				if err != nil {
					t.Fatal(err)
				}
				image.write(t, h, 100_000)
				for range 2 {
					if got := hex.EncodeToString(h.Sum(nil)); got != v.Hex {
						t.Errorf("%+v written with %d threads: %s", v, threads, got)
					}
				}
			}
		}
	}
}
