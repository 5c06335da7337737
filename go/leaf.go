package blkhash

import (
	"hash"
	"sync"

	"github.com/blkhash/blkhash/go/internal/zeros"
)

// leafKind determines the digests of blocks. Checksums with the same kind share the work.
type leafKind struct {
	algorithm Algorithm
	blockSize int
	// prefix is hashed in front of each block.
	prefix string
	// padded is set if zeros complete a short last block.
	padded bool
}

// leafKind returns the kind of the block digests. The construction must have blocks.
func (p Parameters) leafKind() leafKind {
	kind := leafKind{algorithm: p.Algorithm, blockSize: p.BlockSize, prefix: string(p.Salt)}
	if p.Construction == FSVerity {
		kind.padded = true
		if unit := p.Algorithm.New().BlockSize(); len(p.Salt)%unit != 0 {
			kind.prefix += string(make([]byte, unit-len(p.Salt)%unit))
		}
	}
	return kind
}

// leaf computes digests of blocks. A leaf is used by one goroutine at a time.
type leaf struct {
	leafKind
	hash  hash.Hash
	front []byte // the prefix
	// zero returns the digest of a block of zeros.
	zero func() []byte
}

func newLeaf(kind leafKind) *leaf {
	l := &leaf{leafKind: kind, hash: kind.algorithm.New(), front: []byte(kind.prefix)}
	l.zero = sync.OnceValue(func() []byte {
		h := kind.algorithm.New()
		h.Write(l.front)
		zeros.Hash(h, int64(kind.blockSize))
		return h.Sum(nil)
	})
	return l
}

// sibling returns a leaf for another goroutine.
func (l *leaf) sibling() *leaf {
	other := *l
	other.hash = l.algorithm.New()
	return &other
}

// appendDigests appends the digests of the blocks in data. Only the last block of the content may be short.
func (l *leaf) appendDigests(digests, data []byte) []byte {
	for len(data) > 0 {
		block := data[:min(l.blockSize, len(data))]
		data = data[len(block):]
		if len(block) == l.blockSize && zeros.Is(block) {
			digests = append(digests, l.zero()...)
			continue
		}
		l.hash.Reset()
		if len(l.front) > 0 {
			l.hash.Write(l.front)
		}
		l.hash.Write(block)
		if l.padded {
			zeros.Hash(l.hash, int64(l.blockSize-len(block)))
		}
		digests = l.hash.Sum(digests)
	}
	return digests
}
