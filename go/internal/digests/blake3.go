package digests

import (
	"encoding/binary"
	"errors"
	"hash"
	"math/bits"

	"lukechampine.com/blake3/guts"
)

// blake3 is the tree of BLAKE3 over the compression functions of its library. The hasher of the library starts
// goroutines for each block, and cannot save its state.
type blake3 struct {
	// counter is the number of whole groups. Bit i tells whether stack[i] has a subtree of 2^i groups.
	counter uint64
	stack   [50][8]uint32
	group   [groupSize]byte
	filled  int
}

// groupSize is what one call compresses, 16 chunks. A full group waits for the next byte, because the root is
// compressed in another way.
const groupSize = guts.MaxSIMD * guts.ChunkSize

func newBLAKE3() hash.Hash { return new(blake3) }

func (h *blake3) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if h.filled == groupSize {
			h.push(&h.group)
			h.filled = 0
		}
		if h.filled == 0 {
			for len(p) > groupSize {
				h.push((*[groupSize]byte)(p))
				p = p[groupSize:]
			}
		}
		copied := copy(h.group[h.filled:], p)
		h.filled += copied
		p = p[copied:]
	}
	return n, nil
}

// push adds a whole group that does not end the input, and joins subtrees of equal height.
func (h *blake3) push(group *[groupSize]byte) {
	cv := guts.ChainingValue(guts.CompressBuffer(group, groupSize, &guts.IV, h.counter*guts.MaxSIMD, 0))
	height := bits.TrailingZeros64(^h.counter)
	for _, left := range h.stack[:height] {
		cv = guts.ChainingValue(guts.ParentNode(left, cv, &guts.IV, 0))
	}
	h.stack[height] = cv
	h.counter++
}

func (h *blake3) Sum(b []byte) []byte {
	node := guts.CompressBuffer(&h.group, h.filled, &guts.IV, h.counter*guts.MaxSIMD, 0)
	for rest := h.counter; rest != 0; rest &= rest - 1 {
		left := h.stack[bits.TrailingZeros64(rest)]
		node = guts.ParentNode(left, guts.ChainingValue(node), &guts.IV, 0)
	}
	node.Flags |= guts.FlagRoot
	out := guts.WordsToBytes(guts.CompressNode(node))
	return append(b, out[:32]...)
}

func (h *blake3) Reset()         { h.counter, h.filled = 0, 0 }
func (h *blake3) Size() int      { return 32 }
func (h *blake3) BlockSize() int { return guts.BlockSize }

func (h *blake3) Clone() (hash.Cloner, error) {
	copied := *h
	return &copied, nil
}

func (h *blake3) MarshalBinary() ([]byte, error) {
	state := binary.LittleEndian.AppendUint64(nil, h.counter)
	for rest := h.counter; rest != 0; rest &= rest - 1 {
		for _, word := range h.stack[bits.TrailingZeros64(rest)] {
			state = binary.LittleEndian.AppendUint32(state, word)
		}
	}
	return append(state, h.group[:h.filled]...), nil
}

func (h *blake3) UnmarshalBinary(state []byte) error {
	invalid := errors.New("blake3: invalid state")
	if len(state) < 8 {
		return invalid
	}
	counter := binary.LittleEndian.Uint64(state)
	state = state[8:]
	if bits.Len64(counter) > len(h.stack) {
		return invalid
	}
	filled := len(state) - 32*bits.OnesCount64(counter)
	if filled < 0 || filled > groupSize || counter != 0 && filled == 0 {
		return invalid
	}
	h.counter, h.filled = counter, filled
	for rest := counter; rest != 0; rest &= rest - 1 {
		for i := range 8 {
			h.stack[bits.TrailingZeros64(rest)][i] = binary.LittleEndian.Uint32(state)
			state = state[4:]
		}
	}
	copy(h.group[:], state)
	return nil
}
