package blkmap

import (
	"encoding/binary"
	"hash"
	"io"
	"math"
)

// entry is a run of neighbouring pages.
type entry struct {
	first, count int64
	// offset is the first stored page's, 0 for zero pages.
	offset int64
	// hash is the index of the hash of the first stored page.
	hash int64
}

func (e entry) end() int64 { return e.first + e.count }
func (e entry) zero() bool { return e.offset == 0 }

// continues returns whether the next entry must be one with this one.
func (e entry) continues(next entry) bool {
	if e.end() != next.first || e.zero() != next.zero() {
		return false
	}
	return e.zero() || e.offset+e.count*pageSize == next.offset
}

func (e entry) append(b []byte) []byte {
	for _, n := range [...]int64{e.first, e.count, e.offset, e.hash} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// join appends an entry to a directory. The hashes of its pages follow those before.
func join(list []entry, next entry) []entry {
	if n := len(list); n > 0 && list[n-1].continues(next) {
		list[n-1].count += next.count
		return list
	}
	return append(list, next)
}

// directory reads the entries of a commit in order, a part at a time, and checks each of them. So it takes little
// memory, and a file that changes cannot make numbers that are not valid.
type directory struct {
	r      io.ReaderAt
	area   area
	pages  int64 // of the image
	hashes int64
	short  bool // whether the last block of the image is short

	next    int64 // the number of the next entry
	page    int64 // the first page that the next entry may have
	hash    int64 // the index of the next page hash, negative if it is not known
	last    entry
	part    []byte
	partAt  int64 // the number of the first entry in part
	scratch [entryLength]byte
}

// directoryPart is the number of entries that are read at once.
const directoryPart = 2048

func newDirectory(r io.ReaderAt, h *header, c *commit) *directory {
	return &directory{r: r, area: c.directory, pages: h.pages(c.imageSize), hashes: c.hashes.count,
		short: c.imageSize%int64(h.BlockSize) != 0}
}

// read returns the next entry, false after the last one. It hashes what it reads, if whole is not nil.
func (d *directory) read(whole hash.Hash) (entry, bool, error) {
	if d.next == d.area.count {
		return entry{}, false, nil
	}
	if d.next >= d.partAt+int64(len(d.part)/entryLength) || d.next < d.partAt {
		count := min(directoryPart, d.area.count-d.next)
		if int64(cap(d.part)) < count*entryLength {
			d.part = make([]byte, count*entryLength)
		}
		d.part = d.part[:count*entryLength]
		d.partAt = d.next
		if err := readAt(d.r, d.part, d.area.offset+d.next*entryLength); err != nil {
			d.part = d.part[:0]
			return entry{}, false, err
		}
		if whole != nil {
			whole.Write(d.part)
		}
	}
	e, err := d.check(d.part[(d.next-d.partAt)*entryLength:])
	if err != nil {
		return entry{}, false, err
	}
	d.next++
	d.page, d.last = e.end(), e
	if !e.zero() {
		d.hash = e.hash + e.count
	}
	return e, true, nil
}

// check parses the next entry.
func (d *directory) check(b []byte) (entry, error) {
	at := d.area.offset + d.next*entryLength
	var numbers [4]int64
	for i := range numbers {
		n := binary.LittleEndian.Uint64(b[8*i:])
		if n > math.MaxInt64 {
			return entry{}, damaged(at, "pages that are not in the image, or not in the file")
		}
		numbers[i] = int64(n)
	}
	e := entry{numbers[0], numbers[1], numbers[2], numbers[3]}
	switch {
	case e.count == 0 || e.first < d.page || e.first > d.pages || e.count > d.pages-e.first:
		return e, damaged(at, "pages that are not in order, or not in the image")
	case e.zero() && e.hash != 0:
		return e, damaged(at, "zero pages with hashes")
	case e.zero() && d.short && e.end() == d.pages:
		return e, damaged(at, "zero pages with the short block at the end of the image")
	case e.zero():
	case e.offset%pageSize != 0 || e.offset < pageSize || e.offset > d.area.offset ||
		e.count > (d.area.offset-e.offset)/pageSize:
		return e, damaged(at, "pages that are not in the file before the directory")
	case d.hash >= 0 && e.hash != d.hash || e.hash > d.hashes || e.count > d.hashes-e.hash:
		return e, damaged(at, "pages without hashes")
	}
	if d.last.count > 0 && d.last.continues(e) {
		return e, damaged(at, "two entries that should be one")
	}
	return e, nil
}

// end returns an error if there are hashes of no pages.
func (d *directory) end() error {
	if d.hash != d.hashes {
		return damaged(d.area.offset, "hashes without pages")
	}
	return nil
}

// seek goes to the first entry that ends after a page. It reads a few entries.
func (d *directory) seek(page int64) error {
	low, high := int64(0), d.area.count
	for low < high {
		middle := low + (high-low)/2
		first, count, err := d.peek(middle)
		if err != nil {
			return err
		}
		// Numbers that are not valid are found when the entry is read.
		if first+count > uint64(page) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	d.next, d.page, d.last = low, 0, entry{}
	d.hash = -1
	return nil
}

func (d *directory) peek(number int64) (first, count uint64, err error) {
	if err := readAt(d.r, d.scratch[:], d.area.offset+number*entryLength); err != nil {
		return 0, 0, err
	}
	return binary.LittleEndian.Uint64(d.scratch[:]), binary.LittleEndian.Uint64(d.scratch[8:]), nil
}
