package blkmap

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"io"
	"os"

	"github.com/blkhash/blkhash/go"
)

// WriterOptions are the optional parts of a map. The zero value is for a map of a whole image.
type WriterOptions struct {
	// Info is a JSON object that describes the map, up to 1 MiB. The default is NewInfo's.
	Info []byte
	// Key seals all commits. It has 16 to 4096 bytes.
	Key []byte
	// FileID ties the commits to the file. The default is random, and no two files should have the same.
	FileID [16]byte
	// FirstPage and Pages make the map of a part of the image: the blocks from FirstPage * PageBlocks() on, in Pages
	// pages. Without Pages the part goes to the end of the image, and with a negative number it has no page.
	FirstPage, Pages int64
	// Checkpoint is the number of bytes of the map after which a checkpoint is written, from which Recover continues.
	// Without it there is none.
	Checkpoint int64
}

// A Writer writes a map. It is a [blkhash.ShortBlockSink], so a checksum of the image fills it:
//
//	blkhash.Sum(ctx, image, size, nil, parameters, blkhash.WithSink(writer))
//
// Blocks come in order, from the first one of the first page on. Then Finish ends the map. Nothing is overwritten, so a
// map can be written to a pipe. Memory is 32 bytes for each stored page and each run of pages.
//
// After an error the map cannot continue. Methods must not be called at the same time.
type Writer struct {
	out       *bufio.Writer
	sync      func() error
	header    *header
	headerSHA hash256
	options   WriterOptions
	info      []byte

	imageSize, blocks int64
	// page is the number of the page that the next block belongs to, and end the one after the last.
	page, end int64
	zero      []byte

	buffer [pageSize]byte
	filled int // the number of blocks in buffer
	// onlyZeros is set if the buffer has only zero blocks.
	onlyZeros bool

	position     int64 // of the next byte in the file
	commitBefore int64
	sequence     uint64
	behindCommit int64 // the position after the last commit

	every, since held
	root         *root // nil if pages are left out
	padded       []byte
	short        []byte // the digest of the short last block
	base         *base
	err          error
	finished     bool
}

// held is what the tables of a commit hold.
type held struct {
	entries    []entry
	hashes     []byte
	known      int64
	zeroBlocks int64
}

// CheckParameters returns an error if blocks with these parameters have other digests than the map. A pass calls it.
func (w *Writer) CheckParameters(p blkhash.Parameters) error {
	own := w.header.Parameters
	salted := p.Construction == blkhash.FSVerity && len(p.Salt) > 0
	if p.Algorithm != own.Algorithm || p.BlockSize != own.BlockSize || !bytes.Equal(p.Salt, own.Salt) || salted {
		return fail(ErrMismatch, "the map has %s of blocks of %d with a salt of %d bytes, and not %s of %d with %d",
			own.Algorithm, own.BlockSize, len(own.Salt), p.Algorithm, p.BlockSize, len(p.Salt))
	}
	return nil
}

// NewWriter begins a map of an image with a size in bytes, and writes its header to w. If w is an [os.File], the map
// has to begin at its start.
func NewWriter(w io.Writer, imageSize int64, p Parameters, o WriterOptions) (*Writer, error) {
	p = p.WithDefaults()
	if err := p.Check(); err != nil {
		return nil, err
	}
	p.Salt = bytes.Clone(p.Salt)
	if o.FileID == [16]byte{} {
		rand.Read(o.FileID[:])
	}
	h := newHeader(p, o.FileID)
	b := h.bytes()
	writer, err := newWriter(w, imageSize, h, sha256.Sum256(b), o)
	if err != nil {
		return nil, err
	}
	writer.write(b)
	writer.behindCommit = writer.position
	return writer, writer.err
}

func newWriter(w io.Writer, imageSize int64, h *header, headerSHA hash256, o WriterOptions) (*Writer, error) {
	if imageSize < 0 {
		return nil, fail(ErrMismatch, "an image of %d bytes", imageSize)
	}
	if o.Key != nil {
		if err := checkKey(o.Key); err != nil {
			return nil, err
		}
	}
	info, err := o.info()
	if err != nil {
		return nil, err
	}
	pages := h.pages(imageSize)
	end := pages
	if o.Pages != 0 {
		end = o.FirstPage + max(o.Pages, 0)
	}
	if o.FirstPage < 0 || o.FirstPage > pages || o.Pages > pages-o.FirstPage {
		return nil, fail(ErrMismatch, "%d pages from %d on are not in an image of %d pages",
			o.Pages, o.FirstPage, pages)
	}
	writer := &Writer{
		out:       bufio.NewWriterSize(w, 64<<10),
		sync:      syncOf(w),
		header:    h,
		headerSHA: headerSHA,
		options:   o,
		info:      info,
		imageSize: imageSize,
		blocks:    h.blocks(imageSize),
		page:      o.FirstPage,
		end:       end,
		zero:      h.zeroDigest(h.BlockSize),
		onlyZeros: true,
	}
	if o.FirstPage == 0 {
		writer.root = newRoot(h.Parameters, writer.zero)
	}
	return writer, nil
}

func (o *WriterOptions) info() ([]byte, error) {
	if o.Info == nil {
		return json.Marshal(NewInfo())
	}
	if !isObject(o.Info) {
		return nil, fail(ErrUnsupported, "an info of %d bytes that is no JSON object", len(o.Info))
	}
	return bytes.Clone(o.Info), nil
}

// syncOf returns the function that brings what was written to w to the disk. Pipes and the like have none.
func syncOf(w io.Writer) func() error {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return func() error { return nil }
		}
		return func() error { return syncData(f) }
	}
	if s, ok := w.(interface{ Sync() error }); ok {
		return s.Sync
	}
	return func() error { return nil }
}

// NextBlock returns the number of the block that comes next. [Recover] begins after the blocks that are in the file.
func (w *Writer) NextBlock() int64 {
	// The last page may have fewer blocks.
	return min(w.page*w.header.PageBlocks()+int64(w.filled), w.blocks)
}

// lastBlock returns the number after the last block of the part.
func (w *Writer) lastBlock() int64 {
	return min(w.end*w.header.PageBlocks(), w.blocks)
}

// room returns an error if n more blocks are too many.
func (w *Writer) room(n int64) error {
	switch {
	case w.err != nil:
		return w.err
	case w.finished:
		w.err = fail(ErrMismatch, "the map is finished")
	case n < 0 || n > w.lastBlock()-w.NextBlock():
		w.err = fail(ErrMismatch, "%d blocks from %d on are more than the image has", n, w.NextBlock())
	}
	return w.err
}

// isShort returns whether a block is a short last block.
func (w *Writer) isShort(block int64) bool {
	return block == w.blocks-1 && w.imageSize%int64(w.header.BlockSize) != 0
}

// ShortBlock receives the content of a last block that is shorter than a block, before its digest.
func (w *Writer) ShortBlock(content []byte) error {
	if int64(len(content)) != w.imageSize%int64(w.header.BlockSize) {
		w.err = fail(ErrMismatch, "a last block of %d bytes in an image of %d", len(content), w.imageSize)
		return w.err
	}
	w.short = w.header.appendDigest(nil, content, 0)
	w.padded = w.header.appendDigest(nil, content, w.header.BlockSize-len(content))
	return nil
}

// Blocks receives the digests of blocks, one after the other. The digest of a short last block is computed by
// ShortBlock, because [blkhash.FSVerity] has another one.
func (w *Writer) Blocks(digests []byte) error {
	size, entry := w.header.digestSize(), w.header.entrySize()
	if len(digests)%size != 0 {
		w.err = fail(ErrMismatch, "digests of %d bytes: one has %d", len(digests), size)
		return w.err
	}
	if err := w.room(int64(len(digests) / size)); err != nil {
		return err
	}
	per := int(w.header.PageBlocks())
	for len(digests) > 0 {
		count := min(per-w.filled, len(digests)/size)
		part := digests[:count*size]
		digests = digests[len(part):]
		at := w.filled * entry
		for i := range count {
			digest := part[i*size : (i+1)*size]
			w.onlyZeros = w.onlyZeros && bytes.Equal(digest, w.zero)
			copy(w.buffer[at+i*entry:], digest)
		}
		if next := w.NextBlock() + int64(count); w.isShort(next - 1) {
			if w.short == nil {
				w.err = fail(ErrMismatch, "the content of the short last block did not come before its digest")
				return w.err
			}
			copy(w.buffer[at+(count-1)*entry:], w.short)
			w.onlyZeros = false
		}
		w.filled += count
		w.endPage()
	}
	return w.checkpointIfDue()
}

// ZeroBlocks receives n whole blocks of zeros.
func (w *Writer) ZeroBlocks(n int64) error {
	if err := w.room(n); err != nil {
		return err
	}
	if n > 0 && w.isShort(w.NextBlock()+n-1) {
		w.err = fail(ErrMismatch, "a short last block among whole blocks of zeros")
		return w.err
	}
	per := w.header.PageBlocks()
	for n > 0 {
		if w.filled == 0 && n >= per {
			w.zeroPages(n / per)
			n %= per
			continue
		}
		count := min(n, per-int64(w.filled))
		for range count {
			copy(w.buffer[w.filled*w.header.entrySize():], w.zero)
			w.filled++
		}
		n -= count
		w.endPage()
	}
	return w.checkpointIfDue()
}

// endPage adds the page in the buffer, if it is full or the last one.
func (w *Writer) endPage() {
	if int64(w.filled) < w.header.PageBlocks() && w.NextBlock() < w.blocks || w.filled == 0 {
		return
	}
	onlyZeros := w.onlyZeros
	w.filled, w.onlyZeros = 0, true
	if onlyZeros {
		w.zeroPages(1)
	} else {
		hash := sha256.Sum256(w.buffer[:])
		offset := w.base.find(w, hash)
		if offset == 0 {
			offset = w.position
			w.write(w.buffer[:])
		}
		w.stored(offset, hash[:])
	}
	clear(w.buffer[:])
}

func (w *Writer) blocksIn(count int64) int64 {
	per := w.header.PageBlocks()
	return min((w.page+count)*per, w.blocks) - w.page*per
}

// zeroPages adds pages of zero blocks.
func (w *Writer) zeroPages(count int64) {
	blocks := w.blocksIn(count)
	if w.root != nil {
		w.fail(w.root.zeroBlocks(blocks))
	}
	w.add(entry{first: w.page, count: count}, nil, blocks)
}

// stored adds pages that are in the file from an offset on.
func (w *Writer) stored(offset int64, hashes []byte) {
	if w.root != nil {
		w.fail(w.root.hashes(hashes))
	}
	count := int64(len(hashes) / hashLength)
	w.add(entry{first: w.page, count: count, offset: offset}, hashes, w.blocksIn(count))
}

func (w *Writer) add(e entry, hashes []byte, blocks int64) {
	w.every.add(e, hashes, blocks)
	if w.options.Checkpoint > 0 {
		w.since.add(e, hashes, blocks)
	}
	w.page += e.count
}

func (h *held) add(e entry, hashes []byte, blocks int64) {
	h.entries = join(h.entries, e)
	h.hashes = append(h.hashes, hashes...)
	h.known += blocks
	if e.zero() {
		h.zeroBlocks += blocks
	}
}

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *Writer) write(b []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(b)
		w.position += int64(len(b))
	}
}

// checkpointIfDue writes a checkpoint if there is a page for it, and enough was written since the last commit.
func (w *Writer) checkpointIfDue() error {
	if w.options.Checkpoint <= 0 || w.position-w.behindCommit < w.options.Checkpoint || len(w.since.entries) == 0 {
		return w.err
	}
	return w.Checkpoint()
}

// Checkpoint writes a checkpoint with all pages since the last one. It fails unless the options have an interval.
func (w *Writer) Checkpoint() error {
	if err := w.room(0); err != nil {
		return err
	}
	if w.options.Checkpoint <= 0 {
		return fail(ErrUnsupported, "has no checkpoints")
	}
	w.commit(false, &w.since)
	w.since = held{}
	return w.err
}

// Finish writes the final commit. It returns when the map is on the disk, if it is in a file, and fails if blocks are
// missing. It does not close the file.
func (w *Writer) Finish() error {
	if err := w.room(0); err != nil {
		return err
	}
	if next, end := w.NextBlock(), w.lastBlock(); next != end {
		w.err = fail(ErrIncomplete, "has blocks up to %d of %d: a Hasher with a sink passes the last one on Close", next, end)
		return w.err
	}
	w.commit(true, &w.every)
	w.finished = w.err == nil
	return w.err
}

// commit writes tables and the commit that refers to them.
func (w *Writer) commit(isFinal bool, held *held) {
	c := &commit{
		final:     isFinal,
		fileID:    w.header.fileID,
		sequence:  w.sequence + 1,
		previous:  w.commitBefore,
		imageSize: w.imageSize,
		blocks:    w.blocks,
		known:     held.known, zeroBlocks: held.zeroBlocks,
		headerSHA: w.headerSHA,
	}
	directory, index := sha256.New(), int64(0)
	c.directory = area{w.position, int64(len(held.entries))}
	part := make([]byte, 0, entryLength)
	for _, e := range held.entries {
		if !e.zero() {
			e.hash = index
			index += e.count
		}
		part = e.append(part[:0])
		directory.Write(part)
		w.write(part)
	}
	w.pad()
	c.directorySHA = hash256(directory.Sum(nil))
	c.hashes = area{w.position, index}
	c.hashesSHA = w.table(held.hashes)
	c.info = area{w.position, int64(len(w.info))}
	c.infoSHA = w.table(w.info)
	copy(c.zeroBlock[:], w.zero)
	if n := len(held.entries); n > 0 && held.entries[n-1].end() == w.header.pages(w.imageSize) {
		copy(c.paddedLast[:], w.padded)
	}
	if c.complete() && w.err == nil {
		c.root, w.err = w.root.sum()
		c.contentID = contentID(w.header, w.imageSize, c.root)
	}
	w.writeCommit(c)
}

// table writes a table, and returns its hash.
func (w *Writer) table(b []byte) hash256 {
	w.write(b)
	w.pad()
	return sha256.Sum256(b)
}

func (w *Writer) pad() {
	w.write(make([]byte, padding(w.position)))
}

// writeCommit writes a commit. It says that the rest is there, so the rest has to be on the disk before.
func (w *Writer) writeCommit(c *commit) {
	if w.options.Key != nil {
		c.seal(w.options.Key)
	}
	w.flush()
	w.commitBefore, w.sequence = w.position, c.sequence
	w.write(c.bytes())
	w.behindCommit = w.position
	w.flush()
}

func (w *Writer) flush() {
	if w.err == nil {
		w.err = w.out.Flush()
	}
	if w.err == nil {
		w.err = w.sync()
	}
}

var _ blkhash.ShortBlockSink = (*Writer)(nil)
