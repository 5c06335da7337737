package blkmap

import "bytes"

// The kinds of differences, besides [Unknown]. The left side is the map, or the first of two.
const (
	// Changed blocks have other data.
	Changed Kind = "changed"
	// Written blocks are zeros on the left side alone.
	Written Kind = "written"
	// Zeroed blocks are zeros on the right side alone.
	Zeroed Kind = "zeroed"
	// LeftOnly is what only the left image has, because the right one ends before.
	LeftOnly Kind = "left-only"
	// RightOnly is what only the right image has.
	RightOnly Kind = "right-only"
	// Unreadable blocks could not be read.
	Unreadable Kind = "unreadable"
)

// A Difference is a run of neighbouring blocks that differ in one way, or are unknown. It is as long as possible.
type Difference struct {
	// Offset and Length are in bytes.
	Offset, Length int64
	Kind           Kind
}

// End returns the offset after the difference.
func (d Difference) End() int64 { return d.Offset + d.Length }

// side is a block that is compared.
type side struct {
	length int64
	digest []byte
	// padded is the digest with zeros after a short block, nil if it is not known.
	padded []byte
	zero   bool
}

// whole returns the digest with zeros after a short block, nil if it is not known.
func (s side) whole(blockSize int64) []byte {
	if s.length == blockSize {
		return s.digest
	}
	return s.padded
}

// compare returns how two blocks differ, and "" if they are equal. A shorter one is compared as if zeros followed it.
func compare(left, right side, blockSize int64) Kind {
	var equal bool
	if left.length == right.length {
		equal = bytes.Equal(left.digest, right.digest)
		if equal && left.length < blockSize && left.padded != nil && right.padded != nil {
			// A map that was made up may have equal digests and others with zeros.
			equal = bytes.Equal(left.padded, right.padded)
		}
	} else {
		one, other := left.whole(blockSize), right.whole(blockSize)
		equal = one != nil && bytes.Equal(one, other)
	}
	switch {
	case equal || left.zero && right.zero:
		return ""
	case right.zero:
		return Zeroed
	case left.zero:
		return Written
	}
	return Changed
}

// joiner joins neighbouring blocks of one kind to differences.
type joiner struct {
	blockSize int64
	// size is the larger image's.
	size         int64
	first, count int64
	kind         Kind
	emit         func(Difference) bool
	// stopped is set after emit returned false.
	stopped bool
}

// push adds blocks. Equal ones have no kind.
func (j *joiner) push(first, count int64, kind Kind) {
	if kind == j.kind && first == j.first+j.count {
		j.count += count
		return
	}
	j.flush()
	j.first, j.count, j.kind = first, count, kind
}

func (j *joiner) flush() {
	if j.kind != "" && j.count > 0 && !j.stopped {
		offset, end := j.first*j.blockSize, j.size
		if divideUp(j.size, j.blockSize) > j.first+j.count {
			end = (j.first + j.count) * j.blockSize
		}
		j.stopped = !j.emit(Difference{Offset: offset, Length: end - offset, Kind: j.kind})
	}
	j.count, j.kind = 0, ""
}

// end adds what only the larger image has: the blocks after the last one of the smaller image or, if both end in the
// same block, the bytes.
func (j *joiner) end(left, right int64) {
	j.flush()
	if left == right || j.stopped {
		return
	}
	kind, smaller := LeftOnly, min(left, right)
	if left < right {
		kind = RightOnly
	}
	offset := smaller
	if blocks := divideUp(smaller, j.blockSize); blocks < divideUp(j.size, j.blockSize) {
		offset = blocks * j.blockSize
	}
	j.stopped = !j.emit(Difference{Offset: offset, Length: j.size - offset, Kind: kind})
}
