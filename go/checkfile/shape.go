package checkfile

import (
	"encoding/binary"
	"io"

	"github.com/blkhash/blkhash/go"
)

const (
	// shapeHead is the number of bytes in which a run of low bytes is looked for.
	shapeHead = 1 << 20
	// lowRun is the length of a run of bytes lower than 128 that no digests have.
	lowRun = 128
	// padding is a number of zeros that no digest in a tree of verity and its own padding hold, which is 16 bytes at
	// most.
	padding = 32
	// descriptorSize is the length of the descriptor of fs-verity.
	descriptorSize = 256
	// maxSalt is the length of the longest salt of dm-verity.
	maxSalt = 256
	// countSize is the length of a list of flat that holds the length of the image.
	countSize = 8
)

// shape is the length of content and what its ends hold. It tells whether content may be made of digests, so that its
// checksum is also one of other content: the last step of streams, flat and concat hashes a list of digests. A file
// that holds that list has the checksum of the image as its linear value, and one whose blocks are such lists can have
// it as its concat value. It is noise: half of its bytes are 128 or more, where zeros and text have long runs of lower
// ones. Only the last blocks of the trees of verity end with zeros, and the descriptor of fs-verity holds some.
type shape struct {
	length int64
	// hasRun is set if there is a run of low bytes that digests do not have.
	hasRun bool
	// isVerity is set for what may be the descriptor of fs-verity, or the topmost block of a tree of verity.
	isVerity bool
	// last has the last eight bytes, in little endian.
	last    uint64
	format  string
	archive bool
	// compressed is set if the content begins like a compressed file.
	compressed bool
}

// shapeOf reads the ends of content.
func shapeOf(r io.ReaderAt, size int64, extents blkhash.Extents) (shape, error) {
	head := make([]byte, min(size, shapeHead))
	if err := readRange(r, size, extents, head, 0); err != nil {
		return shape{}, err
	}
	tail := make([]byte, min(size, probeSize))
	if err := readRange(r, size, extents, tail, size-int64(len(tail))); err != nil {
		return shape{}, err
	}
	s := shape{length: size, hasRun: hasRun(head), format: probeEnds(head, tail), archive: isTar(head)}
	s.compressed = isCompressed(head)
	s.isVerity = isDescriptorOfVerity(head, size) || isTopmostBlock(head, size)
	if size >= countSize {
		s.last = binary.LittleEndian.Uint64(tail[len(tail)-countSize:])
	}
	return s, nil
}

// doubt returns why a checksum with these parameters that equals a value may not belong to the content that the value
// was computed of. isFile is whether the content is the bytes of a file.
func (s shape) doubt(p blkhash.Parameters, isFile bool) Doubt {
	isLinear := p.Construction == blkhash.Linear
	switch {
	case !isHard(p.Algorithm):
		return NoDoubt
	case isLinear && !isFile && s.format != "raw":
		return InnerImage
	case isLinear && !isFile && s.archive:
		return InnerArchive
	case isLinear && !isFile && s.compressed:
		return InnerCompressed
	case isLinear && s.isVerity:
		return ListOfDigests
	case s.hasRun:
		return NoDoubt
	case isLinear && s.isListOf(int64(p.Algorithm.Size())):
		return ListOfDigests
	case p.Construction == blkhash.Concat && s.length > 0:
		return ListOfDigests
	}
	return NoDoubt
}

// isListOf returns whether the length fits digests of this many bytes, alone or with the length of an image after them,
// as flat hashes it.
func (s shape) isListOf(size int64) bool {
	if s.length > 0 && s.length%size == 0 {
		return true
	}
	digests := s.length - countSize
	if digests < 0 || digests%size != 0 {
		return false
	}
	for blockSize := uint64(blkhash.MinBlockSize); blockSize <= blkhash.MaxBlockSize; blockSize *= 2 {
		count := s.last / blockSize
		if s.last%blockSize != 0 {
			count++
		}
		if count == uint64(digests/size) {
			return true
		}
	}
	return false
}

func isDescriptorOfVerity(head []byte, length int64) bool {
	return length == descriptorSize && head[0] == 1 && (head[1] == 1 || head[1] == 2)
}

// isTopmostBlock returns whether content may be the topmost block of a tree, with the salt in front of it or after it.
// The block begins with digests, and ends with zeros unless it is full.
func isTopmostBlock(head []byte, length int64) bool {
	// The sizes are those that veritysetup and kernels take.
	for block := int64(512); block <= 512<<10; block *= 2 {
		salt := length - block
		if salt < 0 || salt > maxSalt {
			continue
		}
		if isDigestsAndZeros(head[:block]) || isDigestsAndZeros(head[salt:]) {
			return true
		}
	}
	return false
}

// isDigestsAndZeros returns whether a block has nothing but zeros from the first long run of zeros on, and may have
// digests before.
func isDigestsAndZeros(block []byte) bool {
	end, zeros := len(block), 0
	for i, c := range block {
		if c != 0 {
			zeros = 0
			continue
		}
		if zeros++; zeros == padding {
			end = i + 1 - padding
			break
		}
	}
	for _, c := range block[end:] {
		if c != 0 {
			return false
		}
	}
	return end > 0 && !hasRun(block[:end])
}

// hasRun returns whether there is a run of low bytes that digests do not have. At each place they have one with the
// probability of 2^-128.
func hasRun(p []byte) bool {
	length := 0
	for _, c := range p {
		if c >= 128 {
			length = 0
		} else if length++; length == lowRun {
			return true
		}
	}
	return false
}
