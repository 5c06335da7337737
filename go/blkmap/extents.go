package blkmap

import (
	"iter"

	"github.com/blkhash/blkhash/go"
)

// window returns the parts of extents of size bytes from start up to and without end, with offsets from start on.
// Extents that are not valid become one with a length that fails later.
func window(extents blkhash.Extents, size, start, end int64) blkhash.Extents {
	if extents == nil {
		return nil
	}
	return func(yield func(blkhash.Extent, error) bool) {
		for e, err := range extents {
			if err == nil && e.Offset >= 0 && e.Length >= 0 && e.Length <= size-e.Offset {
				first, last := max(e.Offset, start), min(e.End(), end)
				if first >= last {
					if e.Offset >= end {
						return
					}
					continue
				}
				e.Offset, e.Length = first-start, last-first
			} else if err == nil {
				e.Length = -1
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// withoutUnknown returns extents of an image of size bytes, with zeros in the place of blocks that the map does not
// know, so that they are not read.
func (m *Map) withoutUnknown(extents blkhash.Extents, size int64) blkhash.Extents {
	if m.Complete() {
		return extents
	}
	return func(yield func(blkhash.Extent, error) bool) {
		next, stop := iter.Pull2(m.unknown(size))
		defer stop()
		gap, err, more := next()
		// floor is the end of the last gap.
		floor := int64(0)
		pass := func() bool {
			floor = gap.End()
			passed := yield(gap, err) && err == nil
			gap, err, more = next()
			return passed
		}
		if extents != nil {
			for e, failed := range extents {
				if failed != nil || e.Offset < 0 || e.Length < 0 || e.Length > size-e.Offset {
					yield(e, failed)
					return
				}
				for end := e.End(); ; {
					e.Offset = min(max(e.Offset, floor), end)
					e.Length = end - e.Offset
					if more && err == nil && gap.Offset < end {
						e.Length = max(0, gap.Offset-e.Offset)
					}
					if e.Length > 0 && !yield(e, nil) {
						return
					}
					if !more || err == nil && gap.Offset >= end {
						break
					}
					if !pass() {
						return
					}
				}
			}
		}
		for more {
			if !pass() {
				return
			}
		}
	}
}

// unknown returns the ranges of an image of size bytes that the map does not know.
func (m *Map) unknown(size int64) blkhash.Extents {
	return func(yield func(blkhash.Extent, error) bool) {
		p := m.pagesOf(0, m.header.pages(m.commit.imageSize))
		unit := m.header.PageBlocks() * int64(m.header.BlockSize)
		for {
			s, more, err := p.current()
			if err != nil {
				yield(blkhash.Extent{}, err)
				return
			}
			if !more || s.first > size/unit || s.first*unit >= size {
				return
			}
			if s.kind == Unknown {
				offset, end := s.first*unit, size
				if s.first+s.count <= size/unit {
					end = (s.first + s.count) * unit
				}
				if !yield(blkhash.Extent{Offset: offset, Length: end - offset, Zero: true}, nil) {
					return
				}
			}
			p.advance(s.count)
		}
	}
}
