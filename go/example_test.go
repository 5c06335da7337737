package blkhash_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/blkhash/blkhash/go"
)

func ExampleNew() {
	h, err := blkhash.New(blkhash.Parameters{})
	if err != nil {
		log.Fatal(err)
	}
	// The size of a download does not matter, and io.Copy does not need to know about blocks.
	if _, err := io.Copy(h, bytes.NewReader([]byte("abc"))); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%x\n", h.Sum(nil))
	// Output: f6427e7f6e384a51f20d3c10bf0395d263e8513772045d8dd75bdac9a5ebc603
}

// A terabyte of zeros takes no longer than a part of a second.
func ExampleHasher_WriteZeros() {
	h, err := blkhash.New(blkhash.Parameters{Construction: blkhash.Flat})
	if err != nil {
		log.Fatal(err)
	}
	if err := h.WriteZeros(65536); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%x\n", h.Sum(nil))
	// Output: 8ab067ab7939a3d4f40cbb118956c07c06aeae2d075d6e0a2ebbb94bd42832af
}

// The state of a hasher is small, and another process can continue with it.
func ExampleHasher_MarshalBinary() {
	first, _ := blkhash.New(blkhash.Parameters{})
	if err := first.WriteZeros(1 << 20); err != nil {
		log.Fatal(err)
	}
	state, err := first.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}

	second, _ := blkhash.New(blkhash.Parameters{})
	if err := second.UnmarshalBinary(state); err != nil {
		log.Fatal(err)
	}
	fmt.Println(bytes.Equal(first.Sum(nil), second.Sum(nil)))
	// Output: true
}

// Extents tell what does not need to be read. Here only the second MiB of 8 GiB is data.
func ExampleSum() {
	image := onlyOnes{}
	extents := func(yield func(blkhash.Extent, error) bool) {
		_ = yield(blkhash.Extent{Offset: 0, Length: 1 << 20, Zero: true}, nil) &&
			yield(blkhash.Extent{Offset: 1 << 20, Length: 1 << 20}, nil) &&
			yield(blkhash.Extent{Offset: 2 << 20, Length: 8<<30 - 2<<20, Zero: true}, nil)
	}
	sum, err := blkhash.Sum(context.Background(), image, 8<<30, extents, blkhash.Parameters{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hex.EncodeToString(sum))
	// Output: 6fe11fdb80f6cd150f00508039d6a251a77cb26c5ea09e05a0fe475c07b77eb0
}

// onlyOnes is an io.ReaderAt of ones.
type onlyOnes struct{}

func (onlyOnes) ReadAt(p []byte, _ int64) (int, error) {
	for i := range p {
		p[i] = 1
	}
	return len(p), nil
}

// One pass computes the checksum to compare with blksum, and the digest that sha256sum prints.
func ExampleSumAll() {
	content := bytes.NewReader([]byte("abc"))
	sums, err := blkhash.SumAll(context.Background(), content, content.Size(), nil, []blkhash.Parameters{
		{},
		{Construction: blkhash.Linear},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hex.EncodeToString(sums[1]))
	// Output: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
}

func ExampleSumFile() {
	f, err := os.Open("testdata/abc.img")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	sum, err := blkhash.SumFile(context.Background(), f, blkhash.Parameters{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hex.EncodeToString(sum))
	// Output: f6427e7f6e384a51f20d3c10bf0395d263e8513772045d8dd75bdac9a5ebc603
}
