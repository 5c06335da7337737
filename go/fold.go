package blkhash

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"sync"

	"github.com/blkhash/blkhash/go/internal/zeros"
)

// A fold makes a checksum of the digests of all blocks in order.
type fold interface {
	// blocks adds the digests of blocks, one after the other.
	blocks(digests []byte)
	// zeroBlocks adds the digests of n blocks of zeros.
	zeroBlocks(n int64)
	// sum returns the checksum of content of this length. The fold cannot be used after that.
	sum(length int64) []byte
	clone() fold
	// appendState appends what restore reads.
	appendState(state []byte) ([]byte, error)
	// restore reads the state of a fold with the same parameters after this number of blocks, and returns what is
	// after it.
	restore(state []byte, blocks int64) ([]byte, error)
}

// newFold returns the fold of a construction with blocks.
func newFold(p Parameters, l *leaf, threads int) fold {
	count, end := 1, concatEnd
	switch p.Construction {
	case FSVerity, DMVerity:
		return newTree(p, l)
	case Flat:
		end = flatEnd
	case blockDigests:
		return noFold{}
	case Concat:
	default:
		count, end = p.Construction.streams(), streamsEnd
	}
	s := &streams{
		algorithm: p.Algorithm,
		zeros:     sync.OnceValue(func() []byte { return bytes.Repeat(l.zero(), listedZeros) }),
		size:      p.Algorithm.Size(),
		threads:   int64(threads),
		end:       end,
	}
	for range count {
		s.hashes = append(s.hashes, p.Algorithm.New())
	}
	return s
}

// streams deals the digests of blocks to hashes in turn. The constructions with one list have one hash.
type streams struct {
	algorithm Algorithm
	hashes    []hash.Hash
	// next is the index of the hash for the next block.
	next int
	// zeros returns a list of digests of zero blocks.
	zeros func() []byte
	size  int
	// threads is the number of goroutines that add many zero blocks.
	threads int64
	end     func(s *streams, length int64) []byte
}

// listedZeros is the number of digests that one call hashes.
const listedZeros = 256

// sideBySide is the number of zero blocks in a row from which on goroutines hash the streams.
const sideBySide = 1 << 14

func streamsEnd(s *streams, _ int64) []byte {
	outer := s.algorithm.New()
	for _, h := range s.hashes {
		outer.Write(h.Sum(nil))
	}
	return outer.Sum(nil)
}

func concatEnd(s *streams, _ int64) []byte {
	return s.hashes[0].Sum(nil)
}

func flatEnd(s *streams, length int64) []byte {
	s.hashes[0].Write(binary.LittleEndian.AppendUint64(nil, uint64(length)))
	return s.hashes[0].Sum(nil)
}

func (s *streams) blocks(digests []byte) {
	if len(s.hashes) == 1 || s.size == 0 {
		s.hashes[0].Write(digests)
		return
	}
	for len(digests) > 0 {
		s.hashes[s.next].Write(digests[:s.size])
		digests = digests[s.size:]
		s.next = (s.next + 1) % len(s.hashes)
	}
}

func (s *streams) zeroBlocks(n int64) {
	if s.size == 0 {
		return
	}
	count := int64(len(s.hashes))
	used := min(count, n)
	threads := min(used, s.threads)
	if n < sideBySide {
		threads = 1
	}
	var group sync.WaitGroup
	for first := range threads {
		group.Go(func() {
			for i := first; i < used; i += threads {
				s.writeZeros(s.hashes[(int64(s.next)+i)%count], (n-i+count-1)/count)
			}
		})
	}
	group.Wait()
	s.next = int((int64(s.next) + n) % count)
}

// writeZeros hashes the digests of n zero blocks.
func (s *streams) writeZeros(h hash.Hash, n int64) {
	list := s.zeros()
	for n > 0 {
		part := min(n, listedZeros)
		h.Write(list[:part*int64(s.size)])
		n -= part
	}
}

func (s *streams) sum(length int64) []byte {
	return s.end(s, length)
}

func (s *streams) clone() fold {
	copied := *s
	copied.hashes = make([]hash.Hash, len(s.hashes))
	for i, h := range s.hashes {
		copied.hashes[i] = cloneHash(h)
	}
	return &copied
}

func (s *streams) appendState(state []byte) ([]byte, error) {
	for _, h := range s.hashes {
		var err error
		if state, err = appendHash(state, h); err != nil {
			return nil, err
		}
	}
	return state, nil
}

func (s *streams) restore(state []byte, blocks int64) ([]byte, error) {
	s.next = int(blocks % int64(len(s.hashes)))
	for _, h := range s.hashes {
		var err error
		if state, err = restoreHash(state, h); err != nil {
			return nil, err
		}
	}
	return state, nil
}

var errState = errors.New("blkhash: invalid state of a hash")

func cloneHash(h hash.Hash) hash.Hash {
	cloned, err := h.(hash.Cloner).Clone()
	if err != nil {
		panic(err) // no algorithm of the table fails
	}
	return cloned
}

// appendHash appends the state of a hash and its length.
func appendHash(state []byte, h hash.Hash) ([]byte, error) {
	m, ok := h.(encoding.BinaryMarshaler)
	if !ok {
		return nil, fmt.Errorf("blkhash: the state of xxh3 and xxh128 cannot be saved: %w", errors.ErrUnsupported)
	}
	saved, err := m.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return append(binary.AppendUvarint(state, uint64(len(saved))), saved...), nil
}

// restoreHash reads what appendHash wrote.
func restoreHash(state []byte, h hash.Hash) ([]byte, error) {
	m, ok := h.(encoding.BinaryUnmarshaler)
	size := h.Size()
	saved, rest, err := cutBytes(state)
	if !ok || err != nil || m.UnmarshalBinary(saved) != nil || !works(h, size) {
		return nil, errState
	}
	return rest, nil
}

// works returns whether a hash has this size and a copy of it can continue. Not every hash checks the state that it
// restores, and one with an invalid state panics later.
func works(h hash.Hash, size int) (ok bool) {
	defer func() { ok = recover() == nil && ok }()
	copied := cloneHash(h)
	zeros.Hash(copied, int64(4*h.BlockSize()+1))
	return len(h.Sum(nil)) == size && len(copied.Sum(nil)) == size
}

// cutBytes reads a length and that many bytes.
func cutBytes(state []byte) (cut, rest []byte, err error) {
	length, n := binary.Uvarint(state)
	if n <= 0 || length > uint64(len(state)-n) {
		return nil, nil, errState
	}
	return state[n : n+int(length)], state[n+int(length):], nil
}
