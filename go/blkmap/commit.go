package blkmap

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/blkhash/blkhash/go/internal/zeros"
)

const (
	commitMagic = "\x89BLKEND\n"
	checkpoint  = 1
	final       = 2

	entryLength = 32
	hashLength  = 32

	minInfo = 2
	maxInfo = 1 << 20

	sealHMAC = 1
	// tagAt is the offset of the tag, which covers everything before it.
	tagAt = 480
	// ownHashAt is the offset of the hash of the commit.
	ownHashAt = pageSize - hashLength

	digestRoom = 64
)

type hash256 = [hashLength]byte

// area is a table in the file.
type area struct {
	offset int64
	// count is the number of entries, or of bytes.
	count int64
}

// commit is the page that ends a state of a map. Its numbers are checked, and at most 2^63-1.
type commit struct {
	final        bool
	fileID       [16]byte
	sequence     uint64
	previous     int64
	imageSize    int64
	blocks       int64
	known        int64
	zeroBlocks   int64
	directory    area
	hashes       area
	info         area
	headerSHA    hash256
	directorySHA hash256
	hashesSHA    hash256
	infoSHA      hash256
	root         hash256
	zeroBlock    [digestRoom]byte
	paddedLast   [digestRoom]byte
	contentID    hash256
	sealed       bool
	keyID        [8]byte
	tag          hash256
}

// complete returns whether the commit knows every block of the image.
func (c *commit) complete() bool {
	return c.final && c.known == c.blocks
}

func (c *commit) bytes() []byte {
	b := make([]byte, pageSize)
	le := binary.LittleEndian
	copy(b, commitMagic)
	le.PutUint32(b[8:], version)
	le.PutUint32(b[12:], checkpoint)
	if c.final {
		le.PutUint32(b[12:], final)
	}
	copy(b[16:], c.fileID[:])
	numbers := [...]uint64{
		c.sequence, uint64(c.previous), uint64(c.imageSize), uint64(c.blocks), uint64(c.known), uint64(c.zeroBlocks),
		uint64(c.hashes.count), uint64(c.directory.offset), uint64(c.directory.count), uint64(c.hashes.offset),
		uint64(c.hashes.count), uint64(c.info.offset), uint64(c.info.count),
	}
	for i, n := range numbers {
		le.PutUint64(b[32+8*i:], n)
	}
	copy(b[144:], c.headerSHA[:])
	copy(b[176:], c.directorySHA[:])
	copy(b[208:], c.hashesSHA[:])
	copy(b[240:], c.infoSHA[:])
	copy(b[272:], c.root[:])
	copy(b[304:], c.zeroBlock[:])
	copy(b[368:], c.paddedLast[:])
	copy(b[432:], c.contentID[:])
	if c.sealed {
		le.PutUint32(b[464:], sealHMAC)
		copy(b[472:], c.keyID[:])
		copy(b[tagAt:], c.tag[:])
	}
	own := sha256.Sum256(b[:ownHashAt])
	copy(b[ownHashAt:], own[:])
	return b
}

// parseCommit reads the commit at an offset. headerSHA is the hash of the header.
func parseCommit(b []byte, at int64, h *header, headerSHA hash256) (*commit, error) {
	le := binary.LittleEndian
	if string(b[:8]) != commitMagic {
		return nil, damaged(at, "there is no commit")
	}
	if v := le.Uint32(b[8:]); v != version {
		return nil, errVersion(v)
	}
	if sha256.Sum256(b[:ownHashAt]) != hash256(b[ownHashAt:]) {
		return nil, damaged(at, "the commit has another hash")
	}
	var numbers [13]uint64
	for i := range numbers {
		numbers[i] = le.Uint64(b[32+8*i:])
		if i > 0 && numbers[i] > math.MaxInt64 {
			return nil, damaged(at+32+8*int64(i), "a number of the commit is too large")
		}
	}
	number := func(i int) int64 { return int64(numbers[i]) }
	c := &commit{
		fileID:       [16]byte(b[16:]),
		sequence:     numbers[0],
		previous:     number(1),
		imageSize:    number(2),
		blocks:       number(3),
		known:        number(4),
		zeroBlocks:   number(5),
		directory:    area{number(7), number(8)},
		hashes:       area{number(9), number(10)},
		info:         area{number(11), number(12)},
		headerSHA:    hash256(b[144:]),
		directorySHA: hash256(b[176:]),
		hashesSHA:    hash256(b[208:]),
		infoSHA:      hash256(b[240:]),
		root:         hash256(b[272:]),
		zeroBlock:    [digestRoom]byte(b[304:]),
		paddedLast:   [digestRoom]byte(b[368:]),
		contentID:    hash256(b[432:]),
		keyID:        [8]byte(b[472:]),
		tag:          hash256(b[tagAt:]),
	}
	switch kind := le.Uint32(b[12:]); kind {
	case checkpoint:
	case final:
		c.final = true
	default:
		return nil, damaged(at, "a commit of kind %d", kind)
	}
	switch kind := le.Uint32(b[464:]); kind {
	case 0:
	case sealHMAC:
		c.sealed = true
	default:
		return nil, fail(ErrUnsupported, "has a seal of the unknown kind %d", kind)
	}
	if c.fileID != h.fileID {
		return nil, damaged(at, "the commit belongs to another file")
	}
	if c.headerSHA != headerSHA {
		return nil, damaged(0, "the header has another hash than the commit says")
	}
	// Reserved bytes, and a key id and a tag without a seal, have one value each.
	if !bytes.Equal(c.bytes(), b) {
		return nil, damaged(at, "a field of the commit has another value")
	}
	return c, c.check(at, h)
}

// check applies the rules for the numbers and digests of a commit.
func (c *commit) check(at int64, h *header) error {
	consistent := c.blocks == h.blocks(c.imageSize) && c.known <= c.blocks && c.zeroBlocks <= c.known &&
		c.sequence > 0 && (c.sequence == 1) == (c.previous == 0) && minInfo <= c.info.count && c.info.count <= maxInfo
	if !consistent {
		return damaged(at, "fields of the commit contradict each other")
	}
	if !c.inPlace(at) {
		return damaged(at, "the tables are not before the commit")
	}
	size := h.digestSize()
	if !zeros.Is(c.zeroBlock[size:]) || !zeros.Is(c.paddedLast[size:]) {
		return damaged(at, "a digest is longer than it can be")
	}
	var want hash256
	if c.complete() {
		want = contentID(h, c.imageSize, c.root)
	} else if c.root != want {
		return damaged(at+272, "a root without all blocks")
	}
	if c.contentID != want {
		return damaged(at+432, "another content id")
	}
	return nil
}

// inPlace returns whether the tables follow each other, begin after the commit before, and end at this one.
func (c *commit) inPlace(at int64) bool {
	if c.previous%pageSize != 0 || c.directory.offset%pageSize != 0 || c.directory.offset < pageSize ||
		c.previous > c.directory.offset-pageSize {
		return false
	}
	next, ok := c.directory.end(entryLength)
	if !ok || next != c.hashes.offset {
		return false
	}
	if next, ok = c.hashes.end(hashLength); !ok || next != c.info.offset {
		return false
	}
	next, ok = c.info.end(1)
	return ok && next == at
}

// end returns the offset of what follows a table, and false if it is beyond 63 bits.
func (a area) end(entry uint64) (int64, bool) {
	high, length := bits.Mul64(uint64(a.count), entry)
	if high != 0 || length > math.MaxInt64-pageSize {
		return 0, false
	}
	end := uint64(a.offset) + length + uint64(padding(int64(length)))
	return int64(end), end <= math.MaxInt64
}

// contentID returns the identity of a complete map.
func contentID(h *header, imageSize int64, root hash256) hash256 {
	b := make([]byte, 0, 512)
	b = append(b, "blkmap content 1"...)
	b = append(b, make([]byte, 16)...)
	b = append(b, h.bytes()[32:saltAt+MaxSalt]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(imageSize))
	b = append(b, root[:]...)
	return sha256.Sum256(b)
}
