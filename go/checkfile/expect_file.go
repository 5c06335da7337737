package checkfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/internal/stamp"
)

// ErrNotRaw is the error for a file that is not a raw image: it begins or ends like an image of another format, or is
// compressed.
var ErrNotRaw = errors.New("checkfile: not a raw image")

// ExpectFile is [Expect] for a raw image in f, a regular file or a block device. Holes of a file are not read. It fails
// with [ErrNotRaw] for the other formats that blksum recognises, and with [blkhash.ErrChanged] if the size or the time
// of the last change of f is another one afterwards. It moves the offset of f on systems that report holes.
//
// A value with a plain tag, such as "SHA256 (disk.qcow2) = ...", is of the bytes of any file. The lines of sha256sum
// have no tag: [Parser.Bytes] reads them as such values.
//
// It sets [Options.IsFile]. Bytes and Content of the options are not for raw images.
func ExpectFile(ctx context.Context, f *os.File, v Value, o Options) (Match, error) {
	before, err := f.Stat()
	if err != nil {
		return Match{}, err
	}
	size, err := blkhash.FileSize(f)
	if err != nil {
		return Match{}, err
	}
	if isBytes := v.Tag != nil && v.Tag.Bytes; !isBytes {
		if err := CheckRaw(f, size); err != nil {
			return Match{}, fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	o.IsFile = true
	if v.Tag != nil && v.Tag.Content == (Content{Format: "raw"}) {
		o.Content = v.Tag.Content
	}
	match, err := Expect(ctx, f, size, blkhash.FileExtents(f, size), v, o)
	if err != nil {
		return Match{}, fmt.Errorf("%s: %w", f.Name(), err)
	}
	after, err := f.Stat()
	if err != nil {
		return Match{}, err
	}
	if !stamp.Same(before, after) {
		return Match{}, fmt.Errorf("%s: %w", f.Name(), blkhash.ErrChanged)
	}
	return match, nil
}

// CheckRaw returns an error, [ErrNotRaw], if the first size bytes of a reader look like an image of another format that
// blksum recognises, or like a compressed file.
func CheckRaw(r io.ReaderAt, size int64) error {
	head, tail := make([]byte, min(size, probeSize)), make([]byte, min(size, probeSize))
	if err := readRange(r, size, nil, head, 0); err != nil {
		return err
	}
	if err := readRange(r, size, nil, tail, size-int64(len(tail))); err != nil {
		return err
	}
	switch format := probeEnds(head, tail); {
	case format != "raw":
		return fmt.Errorf("%w: it looks like a %s image", ErrNotRaw, format)
	case isCompressed(head):
		return fmt.Errorf("%w: it is compressed", ErrNotRaw)
	}
	return nil
}
