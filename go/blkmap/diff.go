package blkmap

import (
	"bytes"
	"iter"
)

// Diff returns the differences between two maps in order, with runs that one of them does not know. Pages with equal
// hashes are not read. Blocks that only one image has are a difference of
// their own.
//
// The error, if there is one, is the last item: [ErrMismatch] if the parameters differ.
func Diff(left, right *Map) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		c := &comparer{left: newDiffSide(left), right: newDiffSide(right)}
		c.joiner = joiner{
			blockSize: int64(left.header.BlockSize),
			size:      max(left.ImageSize(), right.ImageSize()),
			emit:      func(d Difference) bool { return yield(d, nil) },
		}
		if err := c.run(); err != nil && !c.joiner.stopped {
			yield(Difference{}, err)
		}
	}
}

// diffSide reads one of two maps.
type diffSide struct {
	m      *Map
	pages  *pages
	hashes *hashReader
	reader *pageReader
}

func newDiffSide(m *Map) diffSide {
	return diffSide{m: m, hashes: m.hashReader(hashPart), reader: m.pageReader()}
}

type comparer struct {
	left, right diffSide
	joiner      joiner
	// blocks is the number of blocks that both images have.
	blocks int64
}

func (c *comparer) run() error {
	left, right := c.left.m, c.right.m
	if err := comparable(left, right); err != nil {
		return err
	}
	c.blocks = min(left.Blocks(), right.Blocks())
	for _, m := range [...]*Map{left, right} {
		if err := m.checkHashes(); err != nil {
			return err
		}
	}
	end := divideUp(c.blocks, left.header.PageBlocks())
	c.left.pages, c.right.pages = left.pagesOf(0, end), right.pagesOf(0, end)
	for !c.joiner.stopped {
		one, more, err := c.left.pages.current()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		other, _, err := c.right.pages.current()
		if err != nil {
			return err
		}
		one.count = min(one.count, other.count)
		other.count = one.count
		if err := c.spans(one, other); err != nil {
			return err
		}
		c.left.pages.advance(one.count)
		c.right.pages.advance(one.count)
	}
	c.joiner.end(left.ImageSize(), right.ImageSize())
	return nil
}

// comparable returns an error if the digests in two maps are not of the same blocks.
func comparable(left, right *Map) error {
	one, other := left.header.Parameters, right.header.Parameters
	if one.Equal(other) {
		return nil
	}
	return fail(ErrMismatch, "the digests cannot be compared: %s of blocks of %d with a salt of %d bytes, "+
		"and %s of %d with %d",
		one.Algorithm, one.BlockSize, len(one.Salt), other.Algorithm, other.BlockSize, len(other.Salt))
}

// spans compares runs of the same pages.
func (c *comparer) spans(left, right span) error {
	switch {
	case left.kind == Unknown || right.kind == Unknown:
		c.wholePages(left.first, left.count, Unknown)
		return nil
	case left.kind == Zero && right.kind == Zero:
		c.wholePages(left.first, left.count, "")
		return nil
	case left.kind != right.kind:
		for left.count > 0 && !c.joiner.stopped {
			n := min(left.count, readPages)
			if err := c.pages(left, right, n); err != nil {
				return err
			}
			left, right = left.behind(n), right.behind(n)
		}
		return nil
	}
	for left.count > 0 && !c.joiner.stopped {
		one, err := c.left.hashes.get(left.hash, left.count)
		if err != nil {
			return err
		}
		other, err := c.right.hashes.get(right.hash, right.count)
		if err != nil {
			return err
		}
		length := min(len(one), len(other))
		n, err := c.hashes(left, right, one[:length], other[:length])
		if err != nil {
			return err
		}
		left, right = left.behind(n), right.behind(n)
	}
	return nil
}

// hashes compares the first pages of two spans of stored ones, whose hashes are available: a run of pages that are
// equal, or one that differs. It returns the number of pages.
func (c *comparer) hashes(left, right span, one, other []byte) (int64, error) {
	equal := len(one)
	if !bytes.Equal(one, other) {
		for equal = 0; bytes.Equal(one[equal:equal+hashLength], other[equal:equal+hashLength]); {
			equal += hashLength
		}
	}
	n := int64(equal / hashLength)
	if n > 0 && !c.lastDiffers(left.first+n) {
		c.wholePages(left.first, n, "")
		return n, nil
	}
	if n > 1 {
		c.wholePages(left.first, n-1, "")
		return n - 1, nil
	}
	return 1, c.pages(left, right, 1)
}

// lastDiffers returns whether the page before the page end has the last block that both images have, and equal digests
// of that block are not enough.
func (c *comparer) lastDiffers(end int64) bool {
	short := func(m *Map) bool { return m.lengthOf(c.blocks-1) < int64(m.header.BlockSize) }
	return end*c.left.m.header.PageBlocks() >= c.blocks && (short(c.left.m) || short(c.right.m))
}

func (c *comparer) wholePages(first, count int64, kind Kind) {
	per := c.left.m.header.PageBlocks()
	c.joiner.push(first*per, min((first+count)*per, c.blocks)-first*per, kind)
}

// pages compares the blocks of up to readPages pages.
func (c *comparer) pages(left, right span, count int64) error {
	for count > 0 {
		one, err := c.left.read(left, count)
		if err != nil {
			return err
		}
		n := count
		if one != nil {
			n = min(n, int64(len(one)/pageSize))
		}
		other, err := c.right.read(right, n)
		if err != nil {
			return err
		}
		if other != nil {
			n = min(n, int64(len(other)/pageSize))
		}
		c.entries(left.first, n, one, other)
		left, right, count = left.behind(n), right.behind(n), count-n
	}
	return nil
}

// read returns pages, nil for zero pages.
func (s diffSide) read(of span, count int64) ([]byte, error) {
	if of.kind != Data {
		return nil, nil
	}
	if err := s.m.checkHashes(); err != nil {
		return nil, err
	}
	return s.reader.read(of, count)
}

func (c *comparer) entries(page, count int64, one, other []byte) {
	h := c.left.m.header
	first := page * h.PageBlocks()
	for i := range min(count*h.PageBlocks(), c.blocks-first) {
		left, right := c.left.m.side(first+i, one, i), c.right.m.side(first+i, other, i)
		c.joiner.push(first+i, 1, compare(left, right, int64(h.BlockSize)))
	}
}

// side returns a block, which is the entry with this index of pages. Zero pages are nil.
func (m *Map) side(block int64, pages []byte, index int64) side {
	digest := m.zero()
	if pages != nil {
		at := int(index) * m.header.entrySize()
		digest = pages[at : at+m.header.digestSize()]
	}
	return side{length: m.lengthOf(block), digest: digest, padded: m.paddedLast(), zero: m.isZeroBlock(block, digest)}
}
