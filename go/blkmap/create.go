package blkmap

import (
	"context"
	"io"

	"github.com/blkhash/blkhash/go"
)

// Create writes the map of an image of size bytes in r to w, or of the part in the options. It reads and hashes in
// parallel, and skips zeros in extents, which may be nil. Options are as in [blkhash.Sum] without a sink. To compute
// a checksum in the same pass, pass a [Writer] to that as its sink.
func Create(ctx context.Context, w io.Writer, r io.ReaderAt, size int64, extents blkhash.Extents,
	p Parameters, o WriterOptions, opts ...blkhash.Option) error {
	writer, err := NewWriter(w, size, p, o)
	if err != nil {
		return err
	}
	return writer.Read(ctx, r, extents, opts...)
}

// Read reads the image from the next block on, and finishes the map. r has the whole image, and extents, which may be
// nil, belong to the whole image.
func (w *Writer) Read(ctx context.Context, r io.ReaderAt, extents blkhash.Extents, opts ...blkhash.Option) error {
	p := w.header.Parameters
	if next, last := w.NextBlock(), w.lastBlock(); next < last {
		start, end := next*int64(p.BlockSize), w.imageSize
		if last < w.blocks {
			end = last * int64(p.BlockSize)
		}
		part := io.NewSectionReader(r, start, end-start)
		extents = window(extents, w.imageSize, start, end)
		err := blkhash.BlockDigests(ctx, part, end-start, extents, p.Algorithm, p.BlockSize, p.Salt, w, opts...)
		if err != nil {
			return err
		}
	}
	return w.Finish()
}
