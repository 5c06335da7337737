package blkmap

import (
	"bytes"
	"fmt"
	"io"
)

// base is the state that a newer one is appended to.
type base struct {
	m      *Map
	pages  *pages
	hashes *hashReader
	reader *pageReader
}

// Append begins the next state of a map: the state of an image with a size in bytes. base is the last state of the map,
// and w writes to its file after that ([Map.End]). If w is an [io.Seeker], such as the file itself, it is moved there.
// Pages that are equal are not written again. All blocks come as in [NewWriter], or stay as they are with
// [Writer.Keep]. Until Finish, readers see the old state.
//
// The parameters are the base's, and the options must not have a part or a file id. The next state of a sealed
// map needs the same key.
func Append(baseMap *Map, w io.Writer, imageSize int64, o WriterOptions) (*Writer, error) {
	if o.FirstPage != 0 || o.Pages != 0 || o.FileID != [16]byte{} {
		return nil, fail(ErrUnsupported, "a next state has the pages of the whole image, and the id of its file")
	}
	if baseMap.End() != baseMap.size {
		return nil, fail(ErrMismatch, "the file does not end with the map: %d bytes follow", baseMap.size-baseMap.End())
	}
	if err := baseMap.checkNext(o.Key); err != nil {
		return nil, err
	}
	if err := baseMap.checkHashes(); err != nil {
		return nil, err
	}
	if err := seekTo(w, baseMap.End()); err != nil {
		return nil, err
	}
	writer, err := newWriter(w, imageSize, baseMap.header, baseMap.headerSHA, o)
	if err != nil {
		return nil, err
	}
	writer.continueAt(baseMap.at, baseMap.commit)
	writer.base = &base{m: baseMap, pages: baseMap.pagesOf(0, baseMap.header.pages(baseMap.ImageSize())),
		hashes: baseMap.hashReader(hashPart), reader: baseMap.pageReader()}
	return writer, nil
}

// seekTo moves the offset of a writer that has one.
func seekTo(w io.Writer, end int64) error {
	if s, ok := w.(io.Seeker); ok {
		if _, err := s.Seek(end, io.SeekStart); err != nil {
			return fmt.Errorf("blkmap: cannot write at the end of the map, %d: %w", end, err)
		}
	}
	return nil
}

// checkNext returns an error unless the next state of a map can have this key, nil for none.
func (m *Map) checkNext(key []byte) error {
	if !m.commit.sealed {
		return nil
	}
	if key == nil {
		return errNoKey()
	}
	return m.commit.checkSeal(key)
}

func errNoKey() error { return fail(ErrSeal, "is sealed, and the key is needed") }

// continueAt continues after a commit.
func (w *Writer) continueAt(at int64, c *commit) {
	w.position = at + pageSize
	w.behindCommit, w.commitBefore, w.sequence = w.position, at, c.sequence
}

// span returns the pages of the base from the current page of the writer on.
func (b *base) span(page int64) (span, error) {
	b.pages.page = page
	s, more, err := b.pages.current()
	if !more {
		s = span{first: page, count: 1, kind: Unknown}
	}
	return s, err
}

// find returns the offset of the current page of the writer in the base, 0 if it is another one there.
func (b *base) find(w *Writer, hash hash256) int64 {
	if b == nil {
		return 0
	}
	s, err := b.span(w.page)
	if err == nil && s.kind == Data {
		var known []byte
		if known, err = b.hashes.get(s.hash, 1); err == nil && hash256(known) == hash {
			return s.offset
		}
	}
	w.fail(err)
	return 0
}

// Keep adds n blocks that are as they were in the state before, without their content. Only a writer of [Append] has
// one. It fails if that state does not know one of them, or a block has another length.
func (w *Writer) Keep(n int64) error {
	if err := w.room(n); err != nil {
		return err
	}
	for n > 0 {
		kept, err := w.keep(n)
		if err != nil {
			w.err = err
			return err
		}
		n -= kept
	}
	return w.checkpointIfDue()
}

// keep adds some of n blocks, and returns their number.
func (w *Writer) keep(n int64) (int64, error) {
	b := w.base
	if b == nil {
		return 0, fail(ErrUnsupported, "has no state before: blocks can stay only in a map that Append began")
	}
	first, per := w.NextBlock(), w.header.PageBlocks()
	s, err := b.span(w.page)
	if err != nil {
		return 0, err
	}
	if s.kind == Unknown {
		return 0, fail(ErrIncomplete, "does not know block %d of the state before", first)
	}
	// A last block may have another length, and the last page other blocks.
	last := min(first+n, w.blocks, b.m.commit.blocks) - 1
	if first > last || w.isShort(last) != (b.m.lengthOf(last) < int64(w.header.BlockSize)) ||
		w.isShort(last) && w.imageSize != b.m.ImageSize() {
		return 0, fail(ErrMismatch, "block %d has another length than in the state before", max(first, last))
	}
	if w.isShort(last) {
		w.padded = bytes.Clone(b.m.paddedLast())
	}
	whole := (last + 1) / per
	if last+1 == w.blocks && w.blocks == b.m.commit.blocks {
		whole = divideUp(w.blocks, per)
	}
	if w.filled == 0 && w.page < whole {
		return w.keepPages(s, min(s.count, whole-w.page))
	}
	count := min(per-int64(w.filled), last+1-first)
	if s.kind == Zero {
		return count, w.ZeroBlocks(count)
	}
	page, err := b.reader.read(s, 1)
	if err != nil {
		return 0, err
	}
	size, entry := w.header.digestSize(), w.header.entrySize()
	digests := make([]byte, 0, int(count)*size)
	for i := w.filled; i < w.filled+int(count); i++ {
		digests = append(digests, page[i*entry:i*entry+size]...)
	}
	if w.isShort(first + count - 1) {
		w.short = digests[len(digests)-size:]
	}
	return count, w.Blocks(digests)
}

// keepPages adds whole pages of the base, and returns the number of their blocks.
func (w *Writer) keepPages(s span, count int64) (int64, error) {
	if s.kind == Zero {
		blocks := w.blocksIn(count)
		w.zeroPages(count)
		return blocks, w.err
	}
	hashes, err := w.base.hashes.get(s.hash, count)
	if err != nil {
		return 0, err
	}
	blocks := w.blocksIn(int64(len(hashes) / hashLength))
	w.stored(s.offset, hashes)
	return blocks, w.err
}

// AppendSeal seals the last state of a map: it appends a commit to w that says the same, with a seal. w writes
// to the file of the map as in [Append]. A map that is sealed already needs the same key.
func AppendSeal(m *Map, w io.Writer, key []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if m.End() != m.size {
		return fail(ErrMismatch, "the file does not end with the map: %d bytes follow", m.size-m.End())
	}
	if err := m.checkNext(key); err != nil {
		return err
	}
	if err := seekTo(w, m.End()); err != nil {
		return err
	}
	o := WriterOptions{Info: m.info, Key: key}
	writer, err := newWriter(w, m.ImageSize(), m.header, m.headerSHA, o)
	if err != nil {
		return err
	}
	writer.continueAt(m.at, m.commit)
	c := *m.commit
	c.sequence, c.previous = c.sequence+1, m.at
	from := c.directory.offset
	for _, table := range [...]*area{&c.directory, &c.hashes, &c.info} {
		table.offset += writer.position - from
	}
	part := make([]byte, 64<<10)
	for at := from; at < m.at && writer.err == nil; {
		part := part[:min(int64(len(part)), m.at-at)]
		if err := readAt(m.r, part, at); err != nil {
			return err
		}
		writer.write(part)
		at += int64(len(part))
	}
	writer.writeCommit(&c)
	return writer.err
}
