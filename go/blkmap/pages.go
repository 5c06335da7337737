package blkmap

import (
	"crypto/sha256"
	"io"
)

// span is a run of pages of one kind. Pages that are not known have a span as well.
type span struct {
	first, count int64
	kind         Kind
	// offset and hash are the first page's, if it is stored.
	offset, hash int64
}

// behind returns what follows n pages of the span.
func (s span) behind(n int64) span {
	s.first, s.count = s.first+n, s.count-n
	if s.kind == Data {
		s.offset, s.hash = s.offset+n*pageSize, s.hash+n
	}
	return s
}

// pages goes through the pages of a map in order.
type pages struct {
	directory *directory
	page, end int64
	next      entry
	more      bool
	started   bool
}

// pagesOf returns the pages from first up to and without end.
func (m *Map) pagesOf(first, end int64) *pages {
	return &pages{directory: newDirectory(m.r, m.header, m.commit), page: first, end: end}
}

// current returns the pages from the current one on that are of one kind, false at the end.
func (p *pages) current() (span, bool, error) {
	if p.page >= p.end {
		return span{}, false, nil
	}
	if !p.started {
		if p.page > 0 {
			if err := p.directory.seek(p.page); err != nil {
				return span{}, false, err
			}
		}
		p.started, p.more = true, true
		p.next = entry{}
	}
	for p.more && p.next.end() <= p.page {
		var err error
		if p.next, p.more, err = p.directory.read(nil); err != nil {
			return span{}, false, err
		}
	}
	switch {
	case !p.more:
		return span{first: p.page, count: p.end - p.page, kind: Unknown}, true, nil
	case p.page < p.next.first:
		return span{first: p.page, count: min(p.end, p.next.first) - p.page, kind: Unknown}, true, nil
	}
	s := span{first: p.next.first, count: p.next.count, kind: Zero}
	if !p.next.zero() {
		s.kind, s.offset, s.hash = Data, p.next.offset, p.next.hash
	}
	s = s.behind(p.page - p.next.first)
	s.count = min(s.count, p.end-p.page)
	return s, true, nil
}

func (p *pages) advance(count int64) { p.page += count }

// hashReader reads page hashes, a part at a time.
type hashReader struct {
	r     io.ReaderAt
	area  area
	first int64 // the index of the first hash in part
	part  []byte
	limit int64
}

// hashPart is the number of hashes that are read at once.
const hashPart = 4096

func (m *Map) hashReader(limit int64) *hashReader {
	return &hashReader{r: m.r, area: m.commit.hashes, limit: limit}
}

// get returns hashes from an index on: count, or fewer that are available.
func (h *hashReader) get(index, count int64) ([]byte, error) {
	if held := int64(len(h.part) / hashLength); index < h.first || index >= h.first+held {
		n := min(h.limit, h.area.count-index)
		if int64(cap(h.part)) < n*hashLength {
			h.part = make([]byte, n*hashLength)
		}
		h.part = h.part[:n*hashLength]
		h.first = index
		if err := readAt(h.r, h.part, h.area.offset+index*hashLength); err != nil {
			h.part = h.part[:0]
			return nil, err
		}
	}
	part := h.part[(index-h.first)*hashLength:]
	return part[:min(int64(len(part)), count*hashLength)], nil
}

// pageReader reads stored pages and compares them with their hashes.
type pageReader struct {
	m      *Map
	hashes *hashReader
	buffer []byte
}

// readPages is the number of pages that are read at once.
const readPages = 64

func (m *Map) pageReader() *pageReader {
	return &pageReader{m: m, hashes: m.hashReader(hashPart)}
}

// read returns the first pages of a span of stored ones: up to count and readPages.
func (p *pageReader) read(s span, count int64) ([]byte, error) {
	hashes, err := p.hashes.get(s.hash, min(s.count, count, readPages))
	if err != nil {
		return nil, err
	}
	length := len(hashes) / hashLength * pageSize
	if cap(p.buffer) < length {
		p.buffer = make([]byte, length)
	}
	b := p.buffer[:length]
	if err := readAt(p.m.r, b, s.offset); err != nil {
		return nil, err
	}
	for i := range len(hashes) / hashLength {
		if sha256.Sum256(b[i*pageSize:(i+1)*pageSize]) != hash256(hashes[i*hashLength:]) {
			return nil, damaged(s.offset+int64(i)*pageSize, "page %d has another hash", s.first+int64(i))
		}
	}
	return b, nil
}
