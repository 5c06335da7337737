package blkmap

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"syscall"
)

// ErrUnreadable is the error, or the cause of one, of an image whose bytes cannot be read while others can. [syscall.EIO]
// is one, too.
var ErrUnreadable = errors.New("blkmap: the bytes cannot be read")

// isOfBytes returns whether an error is only about the bytes that were asked for.
func isOfBytes(err error) bool {
	return errors.Is(err, ErrUnreadable) || errors.Is(err, syscall.EIO)
}

// readAround is an image that has zeros where a block cannot be read, and records the block. Results come in order and
// forget the blocks before them, so memory does not grow with their number.
type readAround struct {
	ctx       context.Context
	reader    io.ReaderAt
	blockSize int64

	mu     sync.Mutex
	blocks []int64 // in order
}

func (a *readAround) ReadAt(p []byte, offset int64) (int, error) {
	n, err := a.reader.ReadAt(p, offset)
	if n == len(p) || !isOfBytes(err) {
		return n, err
	}
	for n = 0; n < len(p); {
		if a.ctx.Err() != nil {
			return n, context.Cause(a.ctx)
		}
		at := offset + int64(n)
		part := p[n:]
		if left := a.blockSize - at%a.blockSize; left < int64(len(part)) {
			part = part[:left]
		}
		read, err := a.reader.ReadAt(part, at)
		if read < len(part) {
			if !isOfBytes(err) {
				return n + read, err
			}
			clear(part)
			a.add(at / a.blockSize)
		}
		n += len(part)
	}
	return n, nil
}

func (a *readAround) add(block int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, found := slices.BinarySearch(a.blocks, block); !found {
		a.blocks = slices.Insert(a.blocks, at, block)
	}
}

// take returns the first of the blocks from first to end that cannot be read, and end if there is none. It forgets this
// block and those before it.
func (a *readAround) take(first, end int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.blocks) > 0 && a.blocks[0] < end {
		block := a.blocks[0]
		a.blocks = a.blocks[1:]
		if block >= first {
			return block
		}
	}
	return end
}
