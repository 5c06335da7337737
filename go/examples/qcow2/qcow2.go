// Package qcow2 computes checksums of images that github.com/lima-vm/go-qcow2reader reads.
package qcow2

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lima-vm/go-qcow2reader"
	"github.com/lima-vm/go-qcow2reader/image"
	"github.com/lima-vm/go-qcow2reader/image/raw"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/checkfile"
)

// ErrBacking is the error for an image with a backing file, which [Sum] does not open.
var ErrBacking = errors.New("image has a backing file")

// Extents returns the extents of an image. Zeros and clusters that are not allocated are not read.
func Extents(img image.Image) blkhash.Extents {
	return func(yield func(blkhash.Extent, error) bool) {
		for at, size := int64(0), img.Size(); at < size; {
			// The answer for a range without data takes as long as the range.
			e, err := img.Extent(at, min(size-at, 1<<30))
			if err == nil && (e.Start != at || e.Length <= 0) {
				err = fmt.Errorf("invalid extent of %d bytes at %d", e.Length, e.Start)
			}
			if !yield(blkhash.Extent{Offset: at, Length: e.Length, Zero: e.Zero}, err) || err != nil {
				return
			}
			at += e.Length
		}
	}
}

// Sum returns the checksum of the content of the image in f, in a format that go-qcow2reader reads.
//
// An image with a backing file is refused. Its author would choose which file of this host is opened. Other limits are
// as in go-qcow2reader, which allocates a table of the size that the header says.
func Sum(ctx context.Context, f *os.File, p blkhash.Parameters, opts ...blkhash.Option) ([]byte, error) {
	if backed, err := hasBackingFile(f); err != nil {
		return nil, err
	} else if backed {
		return nil, fmt.Errorf("%s: %w", f.Name(), ErrBacking)
	}
	img, err := qcow2reader.Open(f)
	if err != nil {
		return nil, err
	}
	if img.Type() == raw.Type {
		return sumRaw(ctx, f, p, opts...)
	}
	if err := img.Readable(); err != nil {
		return nil, err
	}
	sum, err := blkhash.Sum(ctx, img, img.Size(), Extents(img), p, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return sum, nil
}

// sumRaw returns the checksum of a raw image. go-qcow2reader takes every format that it does not know for raw.
func sumRaw(ctx context.Context, f *os.File, p blkhash.Parameters, opts ...blkhash.Option) ([]byte, error) {
	size, err := blkhash.FileSize(f)
	if err != nil {
		return nil, err
	}
	if err := checkfile.CheckRaw(f, size); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return blkhash.SumFile(ctx, f, p, opts...)
}

// hasBackingFile returns whether the header of a qcow2 image names a backing file.
func hasBackingFile(r io.ReaderAt) (bool, error) {
	var header [16]byte
	if n, err := r.ReadAt(header[:], 0); n < len(header) {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return false, err
	}
	return string(header[:4]) == "QFI\xfb" && binary.BigEndian.Uint64(header[8:]) != 0, nil
}
