// Package lima is a change to Lima's downloader: the digest of an image template covers the content of the disk.
//
// Lima compares the digest of the file that it downloaded. When it has converted the file to raw, it hashes the raw
// file, on one core and with all of its holes, only to have a value for its cache. A digest of the content is the same
// for both files, so one value in the template holds for every mirror, format and compression level.
package lima

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/lima-vm/lima/v2/pkg/downloader"
	"github.com/opencontainers/go-digest"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/examples/qcow2"
)

// ErrMismatch is the error for an image with another content than the template says.
var ErrMismatch = errors.New("content does not match its digest")

// Download downloads an image with Lima's downloader, and compares its content with a digest as blksum prints it. An
// image that does not match is removed from local.
func Download(
	ctx context.Context, local, remote string, expected digest.Digest, opts ...downloader.Opt,
) (*downloader.Result, error) {
	result, err := downloader.Download(ctx, local, remote, opts...)
	if err != nil {
		return nil, err
	}
	if err := Validate(ctx, local, expected); err != nil {
		if result.Status != downloader.StatusSkipped {
			err = errors.Join(err, os.Remove(local))
		}
		return nil, err
	}
	return result, nil
}

// Validate compares the content of an image with a digest. It takes the place of validateLocalFileDigest in Lima.
func Validate(ctx context.Context, path string, expected digest.Digest) error {
	if err := expected.Validate(); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	sum, err := qcow2.Sum(ctx, f, blkhash.Parameters{Algorithm: blkhash.Algorithm(expected.Algorithm())})
	if err != nil {
		return err
	}
	if actual := digest.NewDigestFromBytes(expected.Algorithm(), sum); actual != expected {
		return fmt.Errorf("%s: %w: expected %s, got %s", path, ErrMismatch, expected, actual)
	}
	return nil
}
