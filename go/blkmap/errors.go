package blkmap

import (
	"errors"
	"fmt"
)

// The reasons of errors. An error of this package is one of them, as [errors.Is] tells, the error of the io.ReaderAt or
// io.Writer, or of the context.
var (
	// ErrNotMap says that a file does not begin like a map.
	ErrNotMap = errors.New("is not a block map")
	// ErrUnfinished says that a file does not end with a final commit. It was cut off, or its writing was interrupted.
	ErrUnfinished = errors.New("is not finished: it does not end with a final commit")
	// ErrDamaged says that bytes of a map contradict each other.
	ErrDamaged = errors.New("is damaged")
	// ErrUnsupported says that a map has a version or a value that is unknown here, or does not have what was asked
	// for.
	ErrUnsupported = errors.New("is not supported")
	// ErrMismatch says that maps, or a map and what was written to it, do not belong together.
	ErrMismatch = errors.New("does not match")
	// ErrIncomplete says that a map does not know every block.
	ErrIncomplete = errors.New("does not know every block")
	// ErrSeal says that a map is not sealed with the given key, or that its key is needed.
	ErrSeal = errors.New("has another seal")
)

// reasonError is an error with one of the reasons, and a text that replaces the reason's.
type reasonError struct {
	reason error
	text   string
}

func (f *reasonError) Error() string { return "blkmap: " + f.text }
func (f *reasonError) Unwrap() error { return f.reason }

func fail(reason error, format string, args ...any) error {
	return &reasonError{reason, fmt.Sprintf(format, args...)}
}

// damaged returns an error for bytes at an offset in the file.
func damaged(offset int64, format string, args ...any) error {
	return fail(ErrDamaged, "is damaged at %d: %s", offset, fmt.Sprintf(format, args...))
}

// readError is an error of the io.ReaderAt.
type readError struct {
	offset int64
	err    error
}

func (e *readError) Error() string {
	return fmt.Sprintf("blkmap: cannot read at %d: %v", e.offset, e.err)
}
func (e *readError) Unwrap() error { return e.err }
