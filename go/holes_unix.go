//go:build linux || darwin || freebsd

package blkhash

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// FileExtents returns the extents of the first size bytes of f, a regular file or a block device. Holes are zeros. A
// file system or device that does not report holes has data everywhere. Data and holes together are the whole size. It
// moves the offset of f.
func FileExtents(f *os.File, size int64) Extents {
	return func(yield func(Extent, error) bool) {
		for at := int64(0); at < size; {
			data, err := seek(f, at, unix.SEEK_DATA, size)
			if err != nil {
				yield(Extent{}, err)
				return
			}
			if data > at && !yield(Extent{Offset: at, Length: data - at, Zero: true}, nil) {
				return
			}
			if at = data; at == size {
				return
			}
			hole, err := seek(f, at, unix.SEEK_HOLE, size)
			if err == nil && hole <= at {
				// The file changed after the first call.
				hole = size
			}
			if err != nil {
				yield(Extent{}, err)
				return
			}
			if !yield(Extent{Offset: at, Length: hole - at}, nil) {
				return
			}
			at = hole
		}
	}
}

// seek returns the offset of the next data or hole, size if there is none.
func seek(f *os.File, at int64, whence int, size int64) (int64, error) {
	offset, err := f.Seek(at, whence)
	switch {
	case errors.Is(err, unix.ENXIO):
		// Only a hole is left, or the file was cut off.
		end, err := f.Seek(0, io.SeekEnd)
		if err == nil && end < size {
			err = fmt.Errorf("blkhash: file ends at %d, and not at %d: %w", end, size, io.ErrUnexpectedEOF)
		}
		return size, err
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP):
		// Without reports of holes, everything is data.
		if whence == unix.SEEK_DATA {
			return at, nil
		}
		return size, nil
	case err != nil:
		return 0, fmt.Errorf("blkhash: holes after offset %d: %w", at, err)
	}
	return min(max(offset, at), size), nil
}
