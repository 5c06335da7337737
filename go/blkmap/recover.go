package blkmap

import (
	"bytes"
	"crypto/sha256"
	"io"
	"slices"
)

// Recovered is a map whose writing may have been interrupted.
type Recovered struct {
	file *file
	at   int64
	last *commit // nil if there is none
	info []byte
}

// Recover finds the last intact commit of a map of size bytes in r. What follows it, up to 4 GiB, is ignored.
func Recover(r io.ReaderAt, size int64) (*Recovered, error) {
	f, err := openFile(r, size)
	if err != nil {
		return nil, err
	}
	at, c, err := f.lastCommit()
	if err != nil {
		return nil, err
	}
	recovered := &Recovered{file: f, at: at, last: c}
	if c != nil {
		m := f.mapOf(at, c)
		if err := m.checkTables(); err != nil {
			return nil, err
		}
		recovered.info = m.info
	}
	return recovered, nil
}

// End returns the offset after the last commit, or after the header if there is none. The file has to be cut there
// before it is continued or appended to.
func (r *Recovered) End() int64 { return r.at + pageSize }

// Final returns whether the last commit is final. Then there is nothing to continue, and [Open] opens the map.
func (r *Recovered) Final() bool { return r.last != nil && r.last.final }

// Parameters returns the definition of the digests.
func (r *Recovered) Parameters() Parameters { return r.file.header.Parameters }

// ImageSize returns the size of the image in bytes, and false if there is no commit that has it.
func (r *Recovered) ImageSize() (int64, bool) {
	if r.last == nil {
		return 0, false
	}
	return r.last.imageSize, true
}

// RawInfo returns the JSON object of the last commit, nil if there is none. It describes the image, which nothing else
// does.
func (r *Recovered) RawInfo() []byte { return bytes.Clone(r.info) }

// Continue continues after the last checkpoint. w writes to the file, which was cut at
// [Recovered.End], after that, as in [Append]. The blocks from [Writer.NextBlock] on have to come.
//
// Every page so far is read and compared with its hash. It fails with [ErrMismatch] if the map is finished or of an
// image of another size, and with [ErrSeal] unless all checkpoints are sealed with the key of the options, or not
// sealed without one. FirstPage and Pages have to be those with which the map was begun.
func (r *Recovered) Continue(w io.Writer, imageSize int64, o WriterOptions) (*Writer, error) {
	if r.Final() {
		return nil, fail(ErrMismatch, "is finished: there is nothing to continue")
	}
	if err := seekTo(w, r.End()); err != nil {
		return nil, err
	}
	f := r.file
	writer, err := newWriter(w, imageSize, f.header, f.headerSHA, o)
	if err != nil {
		return nil, err
	}
	writer.position, writer.behindCommit = r.End(), r.End()
	if r.last == nil {
		return writer, nil
	}
	series, err := r.series(o.Key, imageSize)
	if err != nil {
		return nil, err
	}
	for _, at := range slices.Backward(series) {
		c, err := f.commitAt(at)
		if err != nil {
			return nil, err
		}
		if err := writer.take(f.mapOf(at, c)); err != nil {
			return nil, err
		}
	}
	writer.since = held{}
	writer.continueAt(r.at, r.last)
	return writer, nil
}

// series checks the commits of the checkpoints, and returns their offsets, from the last one back.
func (r *Recovered) series(key []byte, imageSize int64) ([]int64, error) {
	var offsets []int64
	entries := int64(0)
	for at, c := r.at, r.last; ; {
		if c.final {
			return nil, fail(ErrUnsupported, "has a state before the checkpoints, and cannot be continued")
		}
		if c.imageSize != imageSize {
			return nil, fail(ErrMismatch, "is the map of an image of %d bytes", c.imageSize)
		}
		if key != nil {
			if err := c.checkSeal(key); err != nil {
				return nil, err
			}
		} else if c.sealed {
			return nil, errNoKey()
		}
		if entries += c.directory.count; entries > maxSeries {
			return nil, fail(ErrUnsupported, "has too many runs of pages to continue")
		}
		offsets = append(offsets, at)
		if c.previous == 0 {
			return offsets, nil
		}
		var err error
		if at, c, err = r.file.before(c); err != nil {
			return nil, err
		}
	}
}

// take adds the pages of a checkpoint, after comparing all of them with their hashes.
func (w *Writer) take(m *Map) error {
	if err := m.checkTables(); err != nil {
		return err
	}
	if err := m.checkHashes(); err != nil {
		return err
	}
	p := m.pagesOf(0, w.header.pages(w.imageSize))
	reader := m.pageReader()
	for {
		s, more, err := p.current()
		if err != nil || !more {
			return err
		}
		n := s.count
		switch {
		case s.kind == Unknown:
			p.advance(n)
			continue
		case s.first != w.page || n > w.end-w.page:
			return damaged(m.at, "a checkpoint does not continue where the one before ended")
		case s.kind == Zero:
			w.zeroPages(n)
		default:
			b, err := reader.read(s, readPages)
			if err != nil {
				return err
			}
			n = int64(len(b) / pageSize)
			for i := range n {
				hash := sha256.Sum256(b[i*pageSize : (i+1)*pageSize])
				w.stored(s.offset+i*pageSize, hash[:])
			}
		}
		if w.page == w.header.pages(w.imageSize) && w.isShort(w.blocks-1) {
			w.padded = bytes.Clone(m.paddedLast())
		}
		p.advance(n)
	}
}
