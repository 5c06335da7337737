package blkmap

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/blkhash/blkhash/go/internal/zeros"
)

// A Map is a state of a block map: a final commit, and what it refers to. Its methods may be called at the same time.
type Map struct {
	r         io.ReaderAt
	size      int64
	header    *header
	headerSHA hash256
	commit    *commit
	at        int64 // the offset of the commit
	info      []byte
	key       []byte

	// zero is the digest of a block of zeros, and shortZero the digest of zeros as long as a short last block.
	zero      func() []byte
	shortZero func() []byte

	mu      sync.Mutex
	checked bool // whether page hashes and root are checked
}

// An OpenOption changes what [Open] opens.
type OpenOption func(*openOptions)

type openOptions struct {
	key      []byte
	hasKey   bool
	sequence uint64
	hasState bool
}

// WithKey has Open refuse a map that is not sealed with this key, of 16 to 4096 bytes.
func WithKey(key []byte) OpenOption {
	return func(o *openOptions) { o.key, o.hasKey = bytes.Clone(key), true }
}

// WithSequence opens the state of the final commit with this sequence number, as MAP@SEQ in the commands, instead of the
// last one.
func WithSequence(sequence uint64) OpenOption {
	return func(o *openOptions) { o.sequence, o.hasState = sequence, true }
}

// Open opens the last state of a map of size bytes in r. It reads and checks the header, the commit, the directory and
// the info. Page hashes and pages are read when they are needed, and compared with their hashes. The map must not
// change meanwhile.
//
// While a newer state is appended, and after that was interrupted, the file ends with something else, and Open returns
// the state before. It fails with [ErrNotMap], [ErrUnfinished], [ErrDamaged], [ErrUnsupported], [ErrSeal], or
// [ErrMismatch] if there is no commit with the number. Memory does not grow with the map.
func Open(r io.ReaderAt, size int64, opts ...OpenOption) (*Map, error) {
	var o openOptions
	for _, option := range opts {
		option(&o)
	}
	if o.hasKey {
		if err := checkKey(o.key); err != nil {
			return nil, err
		}
	}
	f, err := openFile(r, size)
	if err != nil {
		return nil, err
	}
	at, c, err := f.lastState()
	if err != nil {
		return nil, err
	}
	if o.hasState {
		if at, c, err = f.state(at, c, o.sequence); err != nil {
			return nil, err
		}
	}
	if o.hasKey {
		if err := c.checkSeal(o.key); err != nil {
			return nil, err
		}
	}
	m := f.mapOf(at, c)
	m.key = o.key
	return m, m.checkTables()
}

// file is a file with commits.
type file struct {
	r         io.ReaderAt
	size      int64
	header    *header
	headerSHA hash256
	// zero is the digest of a block of zeros, which takes long if blocks are large and commits are many.
	zero func() []byte
}

func openFile(r io.ReaderAt, size int64) (*file, error) {
	if size < pageSize {
		return nil, &reasonError{ErrNotMap, ErrNotMap.Error()}
	}
	b := make([]byte, pageSize)
	if err := readAt(r, b, 0); err != nil {
		return nil, err
	}
	h, err := parseHeader(b)
	if err != nil {
		return nil, err
	}
	zero := sync.OnceValue(func() []byte { return h.zeroDigest(h.BlockSize) })
	return &file{r: r, size: size, header: h, headerSHA: sha256.Sum256(b), zero: zero}, nil
}

// commitAt returns the commit at an offset.
func (f *file) commitAt(at int64) (*commit, error) {
	b := make([]byte, pageSize)
	if err := readAt(f.r, b, at); err != nil {
		return nil, err
	}
	return parseCommit(b, at, f.header, f.headerSHA)
}

// before returns the commit before the one that is given, which has one.
func (f *file) before(c *commit) (int64, *commit, error) {
	at := c.previous
	previous, err := f.commitAt(at)
	if err == nil && previous.sequence != c.sequence-1 {
		err = damaged(at, "the commit has another number than the next one says")
	}
	return at, previous, err
}

// lastState returns the final commit that counts, and its offset.
func (f *file) lastState() (int64, *commit, error) {
	if f.size%pageSize == 0 && f.size >= 2*pageSize {
		at := f.size - pageSize
		var magic [8]byte
		if err := readAt(f.r, magic[:], at); err != nil {
			return 0, nil, err
		}
		if string(magic[:]) == commitMagic {
			c, err := f.commitAt(at)
			if err == nil && !c.final {
				err = errUnfinished()
			}
			return at, c, err
		}
	}
	at, c, err := f.lastCommit()
	if err == nil && (c == nil || !c.final) {
		err = errUnfinished()
	}
	return at, c, err
}

func errUnfinished() error { return &reasonError{ErrUnfinished, ErrUnfinished.Error()} }

const (
	// searchPart is the number of bytes that are searched at once.
	searchPart = 1 << 20
	// maxSearch limits what is searched for a commit. An interrupted writer leaves less after one.
	maxSearch = 4 << 30
)

// lastCommit returns the last intact commit and its offset, nil if there is none.
func (f *file) lastCommit() (int64, *commit, error) {
	end := f.size - f.size%pageSize
	part := make([]byte, min(searchPart, end))
	for end > pageSize {
		if f.size-end > maxSearch {
			return 0, nil, damaged(end, "there is no commit from here on")
		}
		start := max(end-searchPart, pageSize)
		part = part[:end-start]
		if err := readAt(f.r, part, start); err != nil {
			return 0, nil, err
		}
		for i := len(part) - pageSize; i >= 0; i -= pageSize {
			page := part[i : i+pageSize]
			if !bytes.Equal(page[16:32], f.header.fileID[:]) {
				continue
			}
			if c, err := parseCommit(page, start+int64(i), f.header, f.headerSHA); err == nil {
				return start + int64(i), c, nil
			}
		}
		end = start
	}
	return 0, nil, nil
}

// state returns the final commit with a number, beginning with a commit.
func (f *file) state(at int64, c *commit, sequence uint64) (int64, *commit, error) {
	for c.sequence != sequence {
		if c.previous == 0 || c.sequence < sequence {
			return 0, nil, fail(ErrMismatch, "has no commit with the number %d", sequence)
		}
		var err error
		if at, c, err = f.before(c); err != nil {
			return 0, nil, err
		}
	}
	if !c.final {
		return 0, nil, fail(ErrMismatch, "has no final commit with the number %d", sequence)
	}
	return at, c, nil
}

// mapOf returns what the tables of a commit hold. It may be a checkpoint.
func (f *file) mapOf(at int64, c *commit) *Map {
	p := f.header.Parameters
	return &Map{r: f.r, size: f.size, header: f.header, headerSHA: f.headerSHA, commit: c, at: at, zero: f.zero,
		shortZero: sync.OnceValue(func() []byte { return p.zeroDigest(int(c.imageSize % int64(p.BlockSize))) }),
	}
}

// checkTables checks the directory and the info.
func (m *Map) checkTables() error {
	d, whole := newDirectory(m.r, m.header, m.commit), sha256.New()
	var known, zeroBlocks int64
	for {
		e, more, err := d.read(whole)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		blocks := m.blocksIn(e.first, e.count)
		known += blocks
		if e.zero() {
			zeroBlocks += blocks
		}
	}
	if err := d.end(); err != nil {
		return err
	}
	at := m.commit.directory.offset
	if hash256(whole.Sum(nil)) != m.commit.directorySHA {
		return damaged(at, "the directory has another hash")
	}
	if known != m.commit.known || zeroBlocks != m.commit.zeroBlocks {
		return damaged(at, "the directory has another number of blocks")
	}
	m.info = make([]byte, m.commit.info.count)
	at = m.commit.info.offset
	if err := readAt(m.r, m.info, at); err != nil {
		return err
	}
	if sha256.Sum256(m.info) != m.commit.infoSHA {
		return damaged(at, "the info has another hash")
	}
	if !isObject(m.info) {
		return damaged(at, "the info is no JSON object")
	}
	return nil
}

// blocksIn returns the number of blocks of the image in a range of its pages.
func (m *Map) blocksIn(first, count int64) int64 {
	per := m.header.PageBlocks()
	return min((first+count)*per, m.commit.blocks) - first*per
}

// checkHashes checks page hashes and root, once.
func (m *Map) checkHashes() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.checked {
		return nil
	}
	whole, d, hashes := sha256.New(), newDirectory(m.r, m.header, m.commit), m.hashReader(hashPart)
	var tree *root
	if m.Complete() {
		tree = newRoot(m.header.Parameters, m.zero())
	}
	for {
		e, more, err := d.read(nil)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if e.zero() {
			if tree != nil {
				err = tree.zeroBlocks(m.blocksIn(e.first, e.count))
			}
			if err != nil {
				return err
			}
			continue
		}
		for at, end := e.hash, e.hash+e.count; at < end; {
			part, err := hashes.get(at, end-at)
			if err != nil {
				return err
			}
			whole.Write(part)
			if tree != nil {
				if err := tree.hashes(part); err != nil {
					return err
				}
			}
			at += int64(len(part) / hashLength)
		}
	}
	if hash256(whole.Sum(nil)) != m.commit.hashesSHA {
		return damaged(m.commit.hashes.offset, "the page hashes have another hash")
	}
	if tree != nil {
		sum, err := tree.sum()
		if err != nil {
			return err
		}
		if sum != m.commit.root {
			return damaged(m.at+272, "the pages have another root")
		}
	}
	m.checked = true
	return nil
}

// Parameters returns the definition of the digests.
func (m *Map) Parameters() Parameters {
	p := m.header.Parameters
	p.Salt = bytes.Clone(p.Salt)
	return p
}

// FileID returns the random bytes that tie the commits to their file.
func (m *Map) FileID() [16]byte { return m.header.fileID }

// ImageSize returns the size of the image in bytes.
func (m *Map) ImageSize() int64 { return m.commit.imageSize }

// Blocks returns the number of blocks of the image.
func (m *Map) Blocks() int64 { return m.commit.blocks }

// Known returns the number of blocks that the map knows.
func (m *Map) Known() int64 { return m.commit.known }

// ZeroBlocks returns the number of known blocks in pages that have only zeros, and are not stored.
func (m *Map) ZeroBlocks() int64 { return m.commit.zeroBlocks }

// StoredPages returns the number of pages with digests.
func (m *Map) StoredPages() int64 { return m.commit.hashes.count }

// Complete returns whether the map knows every block.
func (m *Map) Complete() bool { return m.commit.complete() }

// Sequence returns the number of the commit, from 1.
func (m *Map) Sequence() uint64 { return m.commit.sequence }

// Root returns the root of the tree over all pages, and false if the map is not complete.
func (m *Map) Root() ([32]byte, bool) { return m.commit.root, m.Complete() }

// ContentID returns the identity of the content and the parameters, and false if the map is not complete. Complete maps
// with the same id have the same content.
func (m *Map) ContentID() ([32]byte, bool) { return m.commit.contentID, m.Complete() }

// Seal describes the seal of a map.
type Seal struct {
	// Sealed is set if there is a seal.
	Sealed bool
	// Checked is set if Open had a key, and the seal was made with it.
	Checked bool
	// KeyID is the id of the key, as KeyID returns it.
	KeyID [8]byte
}

// Seal returns the seal.
func (m *Map) Seal() Seal {
	return Seal{Sealed: m.commit.sealed, Checked: m.key != nil, KeyID: m.commit.keyID}
}

// RawInfo returns the JSON object that describes the map.
func (m *Map) RawInfo() []byte { return bytes.Clone(m.info) }

// Info returns the fields of the info that this package knows. It fails if one of them has another type, because any
// program may write any object.
func (m *Map) Info() (Info, error) {
	var info Info
	if err := json.Unmarshal(m.info, &info); err != nil {
		return Info{}, fail(ErrUnsupported, "has an info of other types: %v", err)
	}
	return info, nil
}

// End returns the offset in the file after the commit. What follows belongs to other states.
func (m *Map) End() int64 { return m.at + pageSize }

// paddedLast returns the digest of a short last block with zeros after it, nil if it is not known.
func (m *Map) paddedLast() []byte {
	if b := m.commit.paddedLast[:m.header.digestSize()]; !zeros.Is(b) {
		return b
	}
	return nil
}

// lengthOf returns the length of a block in bytes.
func (m *Map) lengthOf(block int64) int64 {
	size := int64(m.header.BlockSize)
	return min(m.commit.imageSize-block*size, size)
}

// isZeroBlock returns whether a block with this digest has only zeros.
func (m *Map) isZeroBlock(block int64, digest []byte) bool {
	if m.lengthOf(block) < int64(m.header.BlockSize) {
		return bytes.Equal(digest, m.shortZero())
	}
	return bytes.Equal(digest, m.zero())
}

// readAt fills b.
func readAt(r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &readError{offset, err}
}
