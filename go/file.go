package blkhash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/blkhash/blkhash/go/internal/stamp"
)

// ErrChanged is the error for a file that changed while it was read.
var ErrChanged = errors.New("blkhash: changed while it was read")

// SumFile returns the checksum of a raw image in f, a regular file or a block device. Holes of a file are not read.
// The error is [ErrChanged] if the size or the time of the last change is another one afterwards.
//
// It moves the offset of f on systems that report holes.
func SumFile(ctx context.Context, f *os.File, p Parameters, opts ...Option) ([]byte, error) {
	before, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size, err := FileSize(f)
	if err != nil {
		return nil, err
	}
	sum, err := Sum(ctx, f, size, FileExtents(f, size), p, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	after, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !stamp.Same(before, after) {
		return nil, fmt.Errorf("%s: %w", f.Name(), ErrChanged)
	}
	return sum, nil
}

// FileSize returns the size of a regular file or a block device. It fails for files that do not tell their size, such
// as in procfs.
func FileSize(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	switch {
	case info.Mode().IsRegular():
		// Files of procfs have content and no size.
		if n, _ := f.ReadAt(make([]byte, 1), info.Size()); n > 0 {
			return 0, fmt.Errorf("blkhash: %s: has more than the %d bytes of its size", f.Name(), info.Size())
		}
		return info.Size(), nil
	case info.Mode()&os.ModeDevice != 0 && info.Mode()&os.ModeCharDevice == 0:
		return f.Seek(0, io.SeekEnd)
	}
	return 0, fmt.Errorf("blkhash: %s: not a regular file or block device", f.Name())
}
