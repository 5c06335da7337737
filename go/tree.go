package blkhash

import (
	"encoding/binary"
	"math/bits"
)

// tree is the Merkle tree of fs-verity and dm-verity.
type tree struct {
	parameters Parameters
	leaf       *leaf
	// width is the length of a digest in a block of the tree.
	width  int
	levels []level
}

// level has the digests of one level of a tree that are not in a whole block.
type level struct {
	pending []byte
	// count is the number of all digests of the level.
	count int64
}

func newTree(p Parameters, l *leaf) *tree {
	size := p.Algorithm.Size()
	return &tree{parameters: p, leaf: l.sibling(), width: 1 << bits.Len(uint(size-1))}
}

func (t *tree) blocks(digests []byte) {
	for size := t.parameters.Algorithm.Size(); len(digests) > 0; digests = digests[size:] {
		t.add(0, digests[:size], 1)
	}
}

func (t *tree) zeroBlocks(n int64) {
	t.add(0, t.leaf.zero(), n)
}

// add adds a digest n times to a level. Whole blocks of one digest are hashed once.
func (t *tree) add(index int, digest []byte, n int64) {
	if n == 0 {
		return
	}
	if index == len(t.levels) {
		t.levels = append(t.levels, level{pending: make([]byte, 0, t.parameters.BlockSize)})
	}
	t.levels[index].count += n
	per := int64(t.parameters.BlockSize / t.width)
	free := func() int64 { return per - int64(len(t.levels[index].pending)/t.width) }
	if free() != per {
		part := min(n, free())
		t.fill(index, digest, part)
		n -= part
		if free() == 0 {
			t.add(index+1, t.take(index), 1)
		}
	}
	if n >= per {
		t.fill(index, digest, per)
		t.add(index+1, t.take(index), n/per)
		n %= per
	}
	t.fill(index, digest, n)
}

// fill appends a digest n times to the pending block of a level, which has room for them.
func (t *tree) fill(index int, digest []byte, n int64) {
	l := &t.levels[index]
	for range n {
		l.pending = append(l.pending, digest...)
		l.pending = l.pending[:len(l.pending)+t.width-len(digest)]
	}
}

// take returns the digest of the pending block of a level, padded with zeros, and removes the block.
func (t *tree) take(index int) []byte {
	l := &t.levels[index]
	block := l.pending[:cap(l.pending)]
	digest := t.leaf.appendDigests(nil, block)
	clear(block)
	l.pending = l.pending[:0]
	return digest
}

// root returns the last digest that is left.
func (t *tree) root() []byte {
	size := t.parameters.Algorithm.Size()
	for index := 0; index < len(t.levels); index++ {
		l := &t.levels[index]
		if l.count == 1 {
			return l.pending[:size]
		}
		if len(l.pending) > 0 {
			t.add(index+1, t.take(index), 1)
		}
	}
	return make([]byte, size)
}

func (t *tree) sum(length int64) []byte {
	root := t.root()
	if t.parameters.Construction == DMVerity {
		return root
	}
	h := t.parameters.Algorithm.New()
	h.Write(t.descriptor(root, length))
	return h.Sum(nil)
}

// descriptor returns the descriptor of fs-verity, which docs/reference/constructions.md lays out.
func (t *tree) descriptor(root []byte, length int64) []byte {
	number := byte(1)
	if t.parameters.Algorithm == SHA512 {
		number = 2
	}
	d := make([]byte, sizeOfFSDescriptor)
	d[0] = 1
	d[1] = number
	d[2] = byte(bits.TrailingZeros(uint(t.parameters.BlockSize)))
	d[3] = byte(len(t.parameters.Salt))
	binary.LittleEndian.PutUint64(d[8:], uint64(length))
	copy(d[16:80], root)
	copy(d[80:112], t.parameters.Salt)
	return d
}

func (t *tree) clone() fold {
	copied := *t
	copied.leaf = t.leaf.sibling()
	copied.levels = make([]level, len(t.levels))
	for i, l := range t.levels {
		pending := make([]byte, len(l.pending), cap(l.pending))
		copy(pending, l.pending)
		copied.levels[i] = level{pending: pending, count: l.count}
	}
	return &copied
}

// appendState appends what is pending in each level. The number of blocks says how much that is.
func (t *tree) appendState(state []byte) ([]byte, error) {
	for _, l := range t.levels {
		state = append(state, l.pending...)
	}
	return state, nil
}

func (t *tree) restore(state []byte, blocks int64) ([]byte, error) {
	t.levels = nil
	for per := int64(t.parameters.BlockSize / t.width); blocks > 0; blocks /= per {
		length := int(blocks%per) * t.width
		if length > len(state) {
			return nil, errState
		}
		pending := make([]byte, length, t.parameters.BlockSize)
		copy(pending, state)
		t.levels = append(t.levels, level{pending: pending, count: blocks})
		state = state[length:]
	}
	return state, nil
}
