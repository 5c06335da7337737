package blkmap

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/blkhash/blkhash/go/internal/zeros"
)

// Check applies the full check to the map: it reads every byte that this commit and those before it refer to, and
// compares all of them with the hashes and rules of the format. With a key, it also checks the seals of commits that
// name it. It fails with [ErrDamaged], [ErrSeal], or the cause of the end of ctx.
func (m *Map) Check(ctx context.Context) error {
	f := &file{r: m.r, size: m.size, header: m.header, headerSHA: m.headerSHA, zero: m.zero}
	var series series
	at, c := m.at, m.commit
	for {
		state := f.mapOf(at, c)
		if err := state.checkTables(); err != nil {
			return err
		}
		if m.key != nil && c.sealed && (at == m.at || c.keyID == KeyID(m.key)) {
			if err := c.checkSeal(m.key); err != nil {
				return err
			}
		}
		if err := series.add(state); err != nil {
			return err
		}
		if err := state.checkState(ctx); err != nil {
			return err
		}
		if c.previous == 0 {
			return series.end()
		}
		var err error
		if at, c, err = f.before(c); err != nil {
			return err
		}
	}
}

// checkState checks what one commit refers to.
func (m *Map) checkState(ctx context.Context) error {
	c := m.commit
	if !bytes.Equal(c.zeroBlock[:m.header.digestSize()], m.zero()) {
		return damaged(m.at+304, "the digest of a zero block is wrong")
	}
	for _, table := range [...]struct {
		area  area
		entry int64
	}{{c.directory, entryLength}, {c.hashes, hashLength}, {c.info, 1}} {
		length := table.area.count * table.entry
		behind := make([]byte, padding(length))
		if err := readAt(m.r, behind, table.area.offset+length); err != nil {
			return err
		}
		if !zeros.Is(behind) {
			return damaged(table.area.offset+length, "bytes after a table are not zero")
		}
	}
	if err := m.checkHashes(); err != nil {
		return err
	}
	last, err := m.checkPages(ctx)
	if err != nil {
		return err
	}
	return m.checkPaddedLast(last)
}

// checkPages checks all stored pages. It returns the digest of the last block of the image, nil if it is not stored.
func (m *Map) checkPages(ctx context.Context) (last []byte, err error) {
	p := m.pagesOf(0, m.header.pages(m.commit.imageSize))
	reader := m.pageReader()
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s, more, err := p.current()
		if err != nil || !more {
			return last, err
		}
		if s.kind != Data {
			p.advance(s.count)
			continue
		}
		b, err := reader.read(s, readPages)
		if err != nil {
			return nil, err
		}
		count := int64(len(b) / pageSize)
		for i := range count {
			digest, err := m.checkPage(s.first+i, b[i*pageSize:(i+1)*pageSize], s.offset+i*pageSize)
			if err != nil {
				return nil, err
			}
			if digest != nil {
				last = bytes.Clone(digest)
			}
		}
		p.advance(count)
	}
}

// checkPage checks what its hash says nothing about. It returns the digest of the last block of the image.
func (m *Map) checkPage(page int64, b []byte, at int64) ([]byte, error) {
	first := page * m.header.PageBlocks()
	count := int(m.blocksIn(page, 1))
	size, entry := m.header.digestSize(), m.header.entrySize()
	onlyZeros := m.lengthOf(first+int64(count)-1) == int64(m.header.BlockSize)
	for i := range count {
		if !zeros.Is(b[i*entry+size : (i+1)*entry]) {
			return nil, damaged(at, "bytes after a digest of page %d are not zero", page)
		}
		onlyZeros = onlyZeros && bytes.Equal(b[i*entry:i*entry+size], m.zero())
	}
	if !zeros.Is(b[count*entry:]) {
		return nil, damaged(at, "bytes after the digests of page %d are not zero", page)
	}
	if onlyZeros {
		return nil, damaged(at, "page %d is stored although its blocks are zero", page)
	}
	if first+int64(count) == m.commit.blocks {
		return b[(count-1)*entry : (count-1)*entry+size], nil
	}
	return nil, nil
}

// checkPaddedLast checks the digest of the last block with zeros after it, as far as that is possible without the
// image.
func (m *Map) checkPaddedLast(last []byte) error {
	at := m.at + 368
	if last == nil || m.commit.imageSize%int64(m.header.BlockSize) == 0 {
		if m.paddedLast() != nil {
			return damaged(at, "the digest of a padded block that is not there")
		}
		return nil
	}
	// With other digests, blocks may have the digest of zeros by accident.
	isSafe := hasTrees(m.header.Algorithm)
	if isSafe && bytes.Equal(last, m.shortZero()) && !bytes.Equal(m.paddedLast(), m.zero()) {
		return damaged(at, "the digest of the padded last block is wrong")
	}
	return nil
}

// series are the checkpoints between two final commits, from the last one back.
type series struct {
	behind *commit
	pages  []entry
}

// maxSeries limits the entries of the checkpoints of a series, which are compared with each other.
const maxSeries = 1 << 21

func (s *series) add(m *Map) error {
	c := m.commit
	if c.final {
		if err := s.end(); err != nil {
			return err
		}
	} else {
		if s.behind != nil && s.behind.imageSize != c.imageSize {
			return damaged(m.at, "checkpoints of images of different sizes")
		}
		d := newDirectory(m.r, m.header, c)
		for {
			e, more, err := d.read(nil)
			if err != nil {
				return err
			}
			if !more {
				break
			}
			if len(s.pages) == maxSeries {
				return fail(ErrUnsupported, "has too many runs of pages to check")
			}
			s.pages = append(s.pages, e)
		}
	}
	s.behind = c
	return nil
}

func (s *series) end() error {
	slices.SortFunc(s.pages, func(a, b entry) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(s.pages); i++ {
		if s.pages[i-1].end() > s.pages[i].first {
			return damaged(0, "two checkpoints have the same page")
		}
	}
	s.pages = s.pages[:0]
	return nil
}
