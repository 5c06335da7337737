package blkmap

import (
	"crypto/sha256"

	"github.com/blkhash/blkhash/go"
)

// root computes the root of a map from the hashes of its pages, in order. The tree is dm-verity over the pages.
type root struct {
	parameters Parameters
	zero       []byte // the digest of a zero block
	tree       *blkhash.Fold
	pages      int64
}

func newRoot(p Parameters, zero []byte) *root {
	tree, err := blkhash.NewFold(blkhash.Parameters{Construction: blkhash.DMVerity, BlockSize: pageSize})
	if err != nil {
		panic(err) // the parameters are valid
	}
	return &root{parameters: p, zero: zero, tree: tree}
}

// hashes adds stored pages.
func (r *root) hashes(hashes []byte) error {
	r.pages += int64(len(hashes) / hashLength)
	return r.tree.Blocks(hashes)
}

// zeroBlocks adds pages of zero blocks. Only the last page of an image has fewer blocks than others.
func (r *root) zeroBlocks(blocks int64) error {
	per, entry := r.parameters.PageBlocks(), r.parameters.entrySize()
	for _, part := range [...]struct{ pages, blocks int64 }{{blocks / per, per}, {1, blocks % per}} {
		if part.pages == 0 || part.blocks == 0 {
			continue
		}
		var page [pageSize]byte
		for i := range part.blocks {
			copy(page[int(i)*entry:], r.zero)
		}
		hash := sha256.Sum256(page[:])
		if err := r.tree.Repeat(hash[:], part.pages); err != nil {
			return err
		}
		r.pages += part.pages
	}
	return nil
}

func (r *root) sum() (sum hash256, err error) {
	if r.pages == 0 {
		return sum, nil
	}
	tree, err := r.tree.Sum(r.pages * pageSize)
	copy(sum[:], tree)
	return sum, err
}
