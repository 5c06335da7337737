package blkmap_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/blkmap"
)

// exampleImage is a disk of 1 MiB with data at its start.
func exampleImage() []byte {
	return append(bytes.Repeat([]byte("data"), 64<<10), make([]byte, 768<<10)...)
}

// Make the map of an image, and verify a copy that is damaged.
func Example() {
	image := exampleImage()
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file, err := os.Create(filepath.Join(folder, "disk.blkmap"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	ctx := context.Background()
	size := int64(len(image))
	err = blkmap.Create(ctx, file, bytes.NewReader(image), size, nil, blkmap.Parameters{}, blkmap.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}

	info, err := file.Stat()
	if err != nil {
		log.Fatal(err)
	}
	m, err := blkmap.Open(file, info.Size())
	if err != nil {
		log.Fatal(err)
	}
	damaged := bytes.Clone(image)
	damaged[70_000] ^= 1
	copy(damaged[900_000:], "written")
	for d, err := range m.Verify(ctx, bytes.NewReader(damaged), size, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Offset, d.Length, d.Kind)
	}
	// Output:
	// 65536 65536 changed
	// 851968 65536 written
}

// A backup program computes the checksum of an image and its map in one pass.
func ExampleWriter() {
	image := exampleImage()
	size := int64(len(image))
	parameters := blkhash.Parameters{}
	of, err := blkmap.ParametersOf(parameters)
	if err != nil {
		log.Fatal(err)
	}
	var out bytes.Buffer
	w, err := blkmap.NewWriter(&out, size, of, blkmap.WriterOptions{Info: []byte(`{"program": "backup 1.0"}`)})
	if err != nil {
		log.Fatal(err)
	}
	sum, err := blkhash.Sum(context.Background(), bytes.NewReader(image), size, nil, parameters, blkhash.WithSink(w))
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Finish(); err != nil {
		log.Fatal(err)
	}

	m, err := blkmap.Open(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		log.Fatal(err)
	}
	again, err := m.Checksum(context.Background(), parameters.WithDefaults().Construction)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(bytes.Equal(sum, again), m.Blocks(), m.StoredPages(), m.Complete())
	// Output: true 16 1 true
}

func ExampleDiff() {
	open := func(image []byte) *blkmap.Map {
		var out bytes.Buffer
		err := blkmap.Create(context.Background(), &out, bytes.NewReader(image), int64(len(image)), nil,
			blkmap.Parameters{}, blkmap.WriterOptions{})
		if err != nil {
			log.Fatal(err)
		}
		m, err := blkmap.Open(bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil {
			log.Fatal(err)
		}
		return m
	}
	monday := exampleImage()
	tuesday := bytes.Clone(monday)
	clear(tuesday[65536:131072])
	for d, err := range blkmap.Diff(open(monday), open(append(tuesday, monday[:65536]...))) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Offset, d.Length, d.Kind)
	}
	// Output:
	// 65536 65536 zeroed
	// 1048576 65536 right-only
}

func ExampleMap_Runs() {
	image := exampleImage()
	var out bytes.Buffer
	p := blkmap.Parameters{Algorithm: blkhash.CRC32C, BlockSize: 512}
	err := blkmap.Create(context.Background(), &out, bytes.NewReader(image), int64(len(image)), nil, p,
		blkmap.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := blkmap.Open(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		log.Fatal(err)
	}
	for run, err := range m.Runs() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d blocks at %d: %s, %d bytes of digests\n", run.Blocks, run.Offset, run.Kind, len(run.Digests))
	}
	digest, err := m.Digest(3)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%x\n", digest)
	// Output:
	// 1024 blocks at 0: data, 4096 bytes of digests
	// 1024 blocks at 524288: zero, 0 bytes of digests
	// 6f42f77f
}

// Append tonight's state to the map of an image, for the price of what changed.
func ExampleAppend() {
	image := exampleImage()
	size := int64(len(image))
	file, err := os.CreateTemp("", "*.blkmap")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	defer func() { _ = file.Close() }()
	ctx := context.Background()
	err = blkmap.Create(ctx, file, bytes.NewReader(image), size, nil, blkmap.Parameters{}, blkmap.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	open := func() *blkmap.Map {
		info, err := file.Stat()
		if err != nil {
			log.Fatal(err)
		}
		m, err := blkmap.Open(file, info.Size())
		if err != nil {
			log.Fatal(err)
		}
		return m
	}

	monday := open()
	copy(image[200_000:], "changed")
	w, err := blkmap.Append(monday, file, size, blkmap.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Read(ctx, bytes.NewReader(image), nil); err != nil {
		log.Fatal(err)
	}
	tuesday := open()
	fmt.Println("commit", tuesday.Sequence())
	for d, err := range blkmap.Diff(monday, tuesday) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(d.Offset, d.Length, d.Kind)
	}
	// Output:
	// commit 2
	// 196608 65536 changed
}
