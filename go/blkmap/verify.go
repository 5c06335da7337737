package blkmap

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/internal/zeros"
)

// Verify compares an image of size bytes in r with the map, which is the left side, and returns the differences in
// order. The image is read and hashed in parallel, and zeros in extents, which may be nil, are not read. Blocks that
// the map does not know are not read either, and are differences of the kind [Unknown]. Those whose reading fails with
// [ErrUnreadable] or [syscall.EIO] are of the kind [Unreadable], and other errors end the pass. If the sizes differ, the
// last difference is what only the larger image has.
//
// Options are as in [blkhash.Sum], with a progress of bytes, without a sink. The error, if there is one, is the last
// item, such as the cause of the end of ctx.
func (m *Map) Verify(ctx context.Context, r io.ReaderAt, size int64, extents blkhash.Extents,
	opts ...blkhash.Option) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		if size < 0 {
			yield(Difference{}, fail(ErrMismatch, "an image of %d bytes", size))
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		found, failed := make(chan Difference, 64), make(chan error, 1)
		var panicked any
		go func() {
			defer close(found)
			defer func() { panicked = recover() }()
			failed <- m.verify(ctx, r, size, extents, opts, found)
		}()
		for d := range found {
			if !yield(d, nil) {
				cancel(errStopped)
				// The reader must not be used after the loop.
				for range found {
				}
				return
			}
		}
		if panicked != nil {
			panic(panicked)
		}
		if err := <-failed; err != nil {
			yield(Difference{}, err)
		}
	}
}

// errStopped ends a pass whose differences are not wanted any more.
var errStopped = errors.New("blkmap: stopped")

func (m *Map) verify(ctx context.Context, r io.ReaderAt, size int64, extents blkhash.Extents, opts []blkhash.Option,
	found chan<- Difference) error {
	blocks, err := m.blocksFrom(0)
	if err != nil {
		return err
	}
	p := m.header.Parameters
	blockSize := int64(p.BlockSize)
	image := &readAround{ctx: ctx, reader: r, blockSize: blockSize}
	a := &against{m: m, blocks: blocks, size: size, image: image}
	a.joiner = joiner{blockSize: blockSize, size: max(size, m.ImageSize()), emit: func(d Difference) bool {
		select {
		case found <- d:
			return true
		case <-ctx.Done():
			return false
		}
	}}
	// Blocks after the last one of the map are not compared.
	end := size
	if m.Blocks() < divideUp(size, blockSize) {
		end = m.Blocks() * blockSize
	}
	extents = m.withoutUnknown(window(extents, size, 0, end), end)
	err = blkhash.BlockDigests(ctx, image, end, extents, p.Algorithm, p.BlockSize, p.Salt, a, opts...)
	if errors.Is(err, errStopped) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	a.joiner.end(m.ImageSize(), size)
	if a.joiner.stopped {
		return context.Cause(ctx)
	}
	return nil
}

// against is a sink that compares the digests of an image with a map.
type against struct {
	m      *Map
	blocks *blocks
	size   int64 // of the image
	image  *readAround
	joiner joiner
	padded []byte
	// zero is set if the short last block has only zeros.
	zero bool
}

func (a *against) ShortBlock(content []byte) error {
	p := a.m.header.Parameters
	a.padded = p.appendDigest(nil, content, p.BlockSize-len(content))
	a.zero = zeros.Is(content)
	return nil
}

func (a *against) Blocks(digests []byte) error {
	size := int64(a.m.header.digestSize())
	for len(digests) > 0 {
		r, err := a.blocks.next(int64(len(digests)) / size)
		if err != nil {
			return err
		}
		if r.count == 0 {
			return errPast()
		}
		a.compare(r, digests[:r.count*size])
		digests = digests[r.count*size:]
	}
	return a.stopped()
}

func (a *against) ZeroBlocks(n int64) error {
	for n > 0 {
		r, err := a.blocks.next(n)
		if err != nil {
			return err
		}
		if r.count == 0 {
			return errPast()
		}
		a.compare(r, nil)
		n -= r.count
	}
	return a.stopped()
}

// errPast is the error for blocks after the last one of the map, which are never passed on.
func errPast() error { return fail(ErrMismatch, "there are more blocks than the map has") }

func (a *against) stopped() error {
	if a.joiner.stopped {
		return errStopped
	}
	return nil
}

// compare compares a run of the map with digests of the image, nil for zero blocks. Results of blocks that could not be
// read are void.
func (a *against) compare(r blockRun, digests []byte) {
	size := int64(a.m.header.digestSize())
	part := func(first, end int64) (blockRun, []byte) {
		p, d := r, digests
		p.first, p.count = first, end-first
		if r.kind == Data {
			p.digests = r.digests[(first-r.first)*size : (end-r.first)*size]
		}
		if d != nil {
			d = d[(first-r.first)*size : (end-r.first)*size]
		}
		return p, d
	}
	first, end := r.first, r.first+r.count
	for first < end {
		unreadable := a.image.take(first, end)
		if unreadable > first {
			a.compareRead(part(first, unreadable))
		}
		if unreadable < end {
			a.joiner.push(unreadable, 1, Unreadable)
		}
		first = unreadable + 1
	}
}

// compareRead compares blocks that could be read.
func (a *against) compareRead(r blockRun, digests []byte) {
	whole := min(a.size, a.m.ImageSize()) / int64(a.m.header.BlockSize)
	switch {
	case r.kind == Unknown:
		a.joiner.push(r.first, r.count, Unknown)
		return
	case r.kind == Zero && digests == nil,
		r.kind == Data && digests != nil && r.first+r.count <= whole && bytes.Equal(digests, r.digests):
		a.joiner.push(r.first, r.count, "")
		return
	}
	size, blockSize := a.m.header.digestSize(), int64(a.m.header.BlockSize)
	for i := range int(r.count) {
		block := r.first + int64(i)
		left := side{length: a.m.lengthOf(block), digest: a.m.zero(), padded: a.m.paddedLast()}
		right := side{length: min(blockSize, a.size-block*blockSize), digest: a.m.zero(), padded: a.padded}
		if r.kind == Data {
			left.digest = r.digests[i*size : (i+1)*size]
		}
		if digests != nil {
			right.digest = digests[i*size : (i+1)*size]
		}
		left.zero = a.m.isZeroBlock(block, left.digest)
		if right.length < blockSize {
			right.zero = a.zero
		} else {
			right.zero = bytes.Equal(right.digest, a.m.zero())
		}
		a.joiner.push(block, 1, compare(left, right, blockSize))
	}
}
