package blkhash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
)

// A ShortBlockSink is a [Sink] that also receives the content of a last block that is shorter than a block, before
// the digest of that block. It must not keep the slice.
type ShortBlockSink interface {
	Sink
	ShortBlock(content []byte) error
}

// BlockDigests passes the digests of all blocks of content to a sink, and computes no checksum. The digest of a block
// covers salt and block, for a short last block too. Any salt is possible. Content and options are as in [Sum].
func BlockDigests(ctx context.Context, r io.ReaderAt, size int64, extents Extents, a Algorithm, blockSize int,
	salt []byte, s Sink, opts ...Option) error {
	if err := a.check(); err != nil {
		return err
	}
	if err := CheckBlockSize(blockSize); err != nil {
		return err
	}
	o := newOptions(opts)
	if o.sink != nil {
		return errors.New("blkhash: digests of blocks go to one sink")
	}
	o.sink = s
	p := Parameters{Algorithm: a, Construction: blockDigests, BlockSize: blockSize, Salt: salt}
	_, err := o.pass(ctx, r, size, extents, []Parameters{p})
	return err
}

// blockDigests is the construction of a pass without a checksum.
const blockDigests Construction = "blocks"

type noFold struct{}

func (noFold) blocks([]byte)                                 {}
func (noFold) zeroBlocks(int64)                              {}
func (noFold) sum(int64) []byte                              { return nil }
func (noFold) clone() fold                                   { return noFold{} }
func (noFold) appendState(state []byte) ([]byte, error)      { return state, nil }
func (noFold) restore(state []byte, _ int64) ([]byte, error) { return state, nil }

// A Fold computes a checksum from the digests of blocks that are known already. It implements [Sink].
//
// The digest of a block covers the salt and the block. With [FSVerity], zeros complete the salt to blocks of the
// digest, and a short last block to a whole one.
type Fold struct {
	parameters Parameters
	fold       fold
	size       int
	blocks     int64
}

// NewFold returns a Fold of no blocks. [Linear] has no blocks, and fails.
func NewFold(p Parameters) (*Fold, error) {
	p = p.WithDefaults()
	if err := p.Check(); err != nil {
		return nil, err
	}
	if !p.Construction.HasBlocks() {
		return nil, errors.New("blkhash: linear has no blocks")
	}
	f := newFold(p, newLeaf(p.leafKind()), runtime.GOMAXPROCS(0))
	return &Fold{parameters: p, fold: f, size: p.Algorithm.Size()}, nil
}

// Blocks adds the digests of blocks, one after the other. It fails if there is a part of a digest.
func (f *Fold) Blocks(digests []byte) error {
	if f.size == 0 {
		return errors.New("blkhash: null has no digests")
	}
	if len(digests)%f.size != 0 {
		return fmt.Errorf("blkhash: digests of %d bytes: one has %d", len(digests), f.size)
	}
	f.fold.blocks(digests)
	f.blocks += int64(len(digests) / f.size)
	return nil
}

// ZeroBlocks adds n whole blocks of zeros. They cost almost nothing in a tree, and a digest each otherwise.
func (f *Fold) ZeroBlocks(n int64) error {
	if n < 0 || n > math.MaxInt64-f.blocks {
		return fmt.Errorf("blkhash: %d blocks after %d", n, f.blocks)
	}
	f.fold.zeroBlocks(n)
	f.blocks += n
	return nil
}

// Repeat adds n blocks with the same digest, at the cost of ZeroBlocks.
func (f *Fold) Repeat(digest []byte, n int64) error {
	if f.size == 0 || len(digest) != f.size || n < 0 || n > math.MaxInt64-f.blocks {
		return fmt.Errorf("blkhash: %d blocks with a digest of %d bytes", n, len(digest))
	}
	if t, ok := f.fold.(*tree); ok {
		t.add(0, digest, n)
	} else {
		for range n {
			f.fold.blocks(digest)
		}
	}
	f.blocks += n
	return nil
}

// Sum returns the checksum of content of this length in bytes. It fails if the blocks so far do not make this
// length, or the construction is not defined for it. More blocks can be added after it.
func (f *Fold) Sum(length int64) ([]byte, error) {
	if length < 0 || f.blocks != blocksOf(length, int64(f.parameters.BlockSize)) {
		return nil, fmt.Errorf("blkhash: %d blocks do not make %d bytes", f.blocks, length)
	}
	if err := f.parameters.checkLength(length); err != nil {
		return nil, err
	}
	return f.fold.clone().sum(length), nil
}

// blocksOf returns the number of blocks of content.
func blocksOf(length, blockSize int64) int64 {
	n := length / blockSize
	if length%blockSize != 0 {
		n++
	}
	return n
}
