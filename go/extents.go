package blkhash

import (
	"errors"
	"fmt"
	"iter"
)

// An Extent is a range of content in bytes.
type Extent struct {
	Offset, Length int64
	// Zero is set if the range is known to read as zeros. It is then not read.
	Zero bool
}

// End returns the offset after the extent.
func (e Extent) End() int64 {
	return e.Offset + e.Length
}

// Extents are the extents of content in order, without overlaps. A range in no extent is read. After an error no
// extents follow.
type Extents = iter.Seq2[Extent, error]

// plan cuts content into chunks.
type plan struct {
	size int64
	// unit is the length of the largest block, 1 if there are no blocks. Chunks end at its multiples.
	unit int64
	// room is the length of the longest chunk with data, a multiple of unit.
	room int64
	// zeros is the length of the longest chunk of zeros, a multiple of unit.
	zeros int64
	// start is the end of the last chunk.
	start int64

	// done returns the reason to end early.
	done    func() error
	pull    func() (Extent, error, bool)
	ended   bool
	current Extent
	last    int64 // the end of the last extent from pull
	ahead   []Extent
}

// next sets the range of c, and what of it is data. It returns false at the end of the content.
func (p *plan) next(c *chunk) (bool, error) {
	c.start, c.zero, c.data = p.start, false, c.data[:0]
	limit := p.start + min(p.room, p.size-p.start)
	for at := p.start; at < limit; {
		extent, err := p.at(at)
		if err != nil {
			return false, err
		}
		if extent.Zero {
			whole := extent.End() - extent.End()%p.unit
			if at == p.start && whole > at {
				c.zero = true
				return p.cut(c, at+min(whole-at, p.zeros))
			}
			// Zeros before the first whole block belong to a chunk with data.
			if before := (p.unit - at%p.unit) % p.unit; before < whole-at {
				return p.cut(c, at+before)
			}
			at = extent.End()
		} else {
			end := min(extent.End(), limit)
			c.needs(at, end)
			at = end
		}
	}
	return p.cut(c, limit)
}

// needs adds a range to those that are read.
func (c *chunk) needs(start, end int64) {
	if n := len(c.data); n > 0 && c.data[n-1].End() == start {
		c.data[n-1].Length += end - start
		return
	}
	c.data = append(c.data, Extent{Offset: start, Length: end - start})
}

// cut ends a chunk.
func (p *plan) cut(c *chunk, end int64) (bool, error) {
	c.length = end - p.start
	p.start = end
	return c.length > 0, nil
}

// at returns the extent at an offset, from that offset on. Offsets do not go back.
func (p *plan) at(offset int64) (Extent, error) {
	for p.current.End() <= offset {
		if err := p.advance(); err != nil {
			return Extent{}, err
		}
	}
	e := p.current
	return Extent{Offset: offset, Length: e.End() - offset, Zero: e.Zero}, nil
}

// advance replaces the current extent by the next one. Zeros are joined with zeros after them, because only whole
// blocks of zeros are not read.
func (p *plan) advance() error {
	next, err := p.pop()
	if err != nil {
		return err
	}
	for next.Zero && next.End() < p.size {
		behind, err := p.pop()
		if err != nil {
			return err
		}
		if !behind.Zero {
			p.ahead = append(p.ahead, behind)
			break
		}
		next.Length += behind.Length
	}
	p.current = next
	return nil
}

// pop returns the next extent, with data in the place of gaps.
func (p *plan) pop() (Extent, error) {
	if n := len(p.ahead); n > 0 {
		next := p.ahead[n-1]
		p.ahead = p.ahead[:n-1]
		return next, nil
	}
	for !p.ended {
		if err := p.done(); err != nil {
			return Extent{}, err
		}
		e, err, more := p.pull()
		if !more {
			break
		}
		switch {
		case err != nil:
			return Extent{}, fmt.Errorf("blkhash: extents of the content at %d: %w", p.last, err)
		case e.Length < 0 || e.Offset < p.last || e.Length > p.size-e.Offset:
			return Extent{}, fmt.Errorf("%w: offset %d, length %d, where the one before ends at %d of %d bytes",
				ErrExtents, e.Offset, e.Length, p.last, p.size)
		case e.Length == 0:
			continue
		}
		gap := Extent{Offset: p.last, Length: e.Offset - p.last}
		p.last = e.End()
		if gap.Length > 0 {
			p.ahead = append(p.ahead, e)
			return gap, nil
		}
		return e, nil
	}
	p.ended = true
	rest := Extent{Offset: p.last, Length: p.size - p.last}
	p.last = p.size
	return rest, nil
}

// ErrExtents is the error for extents that overlap, are not in order or are not in the content.
var ErrExtents = errors.New("blkhash: invalid extent")
