package checkfile

import (
	"errors"
	"fmt"
	"io"

	"github.com/blkhash/blkhash/go"
)

// readRange fills p with the content from an offset on. It does not read what extents report as zeros.
func readRange(r io.ReaderAt, size int64, extents blkhash.Extents, p []byte, offset int64) error {
	end := offset + int64(len(p))
	// read reads from offset up to the start of an extent or the end.
	read := func(to int64) error {
		if to = min(to, end); to <= offset {
			return nil
		}
		part := p[int64(len(p))-(end-offset):][:to-offset]
		if n, err := r.ReadAt(part, offset); n < len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("checkfile: cannot read %d bytes at offset %d: %w", len(part), offset, err)
		}
		offset = to
		return nil
	}
	if extents != nil {
		for e, err := range extents {
			switch {
			case err != nil:
				return fmt.Errorf("checkfile: extents of the content: %w", err)
			case !e.Zero || e.Length <= 0 || e.End() > size:
				continue
			}
			if err := read(e.Offset); err != nil {
				return err
			}
			if zeros := min(e.End(), end); e.Offset <= offset && zeros > offset {
				clear(p[int64(len(p))-(end-offset):][:zeros-offset])
				offset = zeros
			}
			if offset >= end {
				return nil
			}
		}
	}
	return read(end)
}

// zerosOf returns how much of content extents report as zeros.
func zerosOf(size int64, extents blkhash.Extents) int64 {
	zeros := int64(0)
	if extents != nil {
		for e, err := range extents {
			if err != nil {
				break
			}
			if e.Zero && e.Length > 0 {
				zeros += e.Length
			}
		}
	}
	return min(zeros, size)
}
