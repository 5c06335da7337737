package blkmap

import (
	"bytes"
	"iter"
)

// A Kind says what a run of blocks is, or how it differs. The names are those in the JSON of the commands.
type Kind string

// The kinds of runs.
const (
	// Data has digests. Blocks of zeros may be among them.
	Data Kind = "data"
	// Zero has only whole blocks of zeros.
	Zero Kind = "zero"
	// Unknown blocks are not in the map, or were not compared.
	Unknown Kind = "unknown"
)

// A Run is a run of neighbouring blocks of a map.
type Run struct {
	// Offset and Length are in bytes of the image. The last block of an image may be short.
	Offset, Length int64
	// Block is the number of the first block, and Blocks their number.
	Block, Blocks int64
	Kind          Kind
	// Digests has one digest after the other if the kind is Data. The next step overwrites it.
	Digests []byte
}

// Runs returns all blocks of the image in order, in runs of one kind. A run of digests has at most 64 pages. The error,
// if there is one, is the last item.
func (m *Map) Runs() iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		b, err := m.blocksFrom(0)
		if err != nil {
			yield(Run{}, err)
			return
		}
		for {
			r, err := b.next(m.commit.blocks)
			if err != nil {
				yield(Run{}, err)
				return
			}
			if r.count == 0 || !yield(m.run(r), nil) {
				return
			}
		}
	}
}

func (m *Map) run(r blockRun) Run {
	size := int64(m.header.BlockSize)
	end := m.commit.imageSize
	if r.first+r.count < m.commit.blocks {
		end = (r.first + r.count) * size
	}
	return Run{Offset: r.first * size, Length: end - r.first*size, Block: r.first, Blocks: r.count, Kind: r.kind,
		Digests: r.digests}
}

// Digest returns the digest of a block, and nil if the map does not know it. Each call reads a page of the map.
func (m *Map) Digest(block int64) ([]byte, error) {
	if block < 0 || block >= m.commit.blocks {
		return nil, fail(ErrMismatch, "has no block %d: the image has %d", block, m.commit.blocks)
	}
	if err := m.checkHashes(); err != nil {
		return nil, err
	}
	page := block / m.header.PageBlocks()
	d := newDirectory(m.r, m.header, m.commit)
	if err := d.seek(page); err != nil {
		return nil, err
	}
	d.part = make([]byte, 0, entryLength)
	d.area.count = min(d.area.count, d.next+1)
	e, found, err := d.read(nil)
	switch {
	case err != nil:
		return nil, err
	case !found || e.first > page:
		return nil, nil
	case e.zero():
		return bytes.Clone(m.zero()), nil
	}
	s := span{first: e.first, count: e.count, kind: Data, offset: e.offset, hash: e.hash}.behind(page - e.first)
	reader := pageReader{m: m, hashes: m.hashReader(1)}
	b, err := reader.read(s, 1)
	if err != nil {
		return nil, err
	}
	at := int(block%m.header.PageBlocks()) * m.header.entrySize()
	return b[at : at+m.header.digestSize()], nil
}

// blockRun is a run of blocks of one kind. Without blocks it is the end.
type blockRun struct {
	first, count int64
	kind         Kind
	digests      []byte
}

// blocks goes through the blocks of a map in order. What it returns matches the hashes of the commit.
type blocks struct {
	m      *Map
	pages  *pages
	reader *pageReader
	held   blockRun
	packed []byte
}

// blocksFrom begins with the first block of a page.
func (m *Map) blocksFrom(page int64) (*blocks, error) {
	if err := m.checkHashes(); err != nil {
		return nil, err
	}
	return &blocks{m: m, pages: m.pagesOf(page, m.header.pages(m.commit.imageSize)), reader: m.pageReader()}, nil
}

// next returns up to limit blocks.
func (b *blocks) next(limit int64) (blockRun, error) {
	if b.held.count == 0 {
		if err := b.fill(); err != nil {
			return blockRun{}, err
		}
	}
	r := b.held
	r.count = min(r.count, limit)
	b.held.first += r.count
	b.held.count -= r.count
	if r.kind == Data {
		length := int(r.count) * b.m.header.digestSize()
		r.digests, b.held.digests = r.digests[:length], b.held.digests[length:]
	}
	return r, nil
}

// fill reads on.
func (b *blocks) fill() error {
	s, more, err := b.pages.current()
	if err != nil || !more {
		return err
	}
	h := b.m.header
	b.held = blockRun{first: s.first * h.PageBlocks(), kind: s.kind}
	if s.kind != Data {
		b.held.count = b.m.blocksIn(s.first, s.count)
		b.pages.advance(s.count)
		return nil
	}
	read, err := b.reader.read(s, readPages)
	if err != nil {
		return err
	}
	count := int64(len(read) / pageSize)
	b.held.count = b.m.blocksIn(s.first, count)
	b.pages.advance(count)
	size, entry := h.digestSize(), h.entrySize()
	if size == entry {
		b.held.digests = read[:int(b.held.count)*size]
		return nil
	}
	b.packed = b.packed[:0]
	for i := range int(b.held.count) {
		b.packed = append(b.packed, read[i*entry:i*entry+size]...)
	}
	b.held.digests = b.packed
	return nil
}
