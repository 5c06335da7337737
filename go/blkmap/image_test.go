package blkmap_test

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
)

// image is the content of a test vector. Reading a hole fails.
type image struct {
	runs []imageRun
	size int64
}

type imageRun struct {
	start, length int64
	kind          byte
}

// newImage parses an image such as "64k:A 8t:- 1:#", as test-vectors/README.md defines it.
func newImage(t testing.TB, text string) *image {
	i := &image{}
	for _, item := range strings.Fields(text) {
		length, kind, _ := strings.Cut(item, ":")
		shift := 0
		if at := strings.IndexByte("kmgt", length[len(length)-1]); at >= 0 {
			length, shift = length[:len(length)-1], 10*(at+1)
		}
		n, err := strconv.ParseInt(length, 10, 64)
		if err != nil || len(kind) != 1 {
			t.Fatalf("invalid image %q", text)
		}
		i.runs = append(i.runs, imageRun{i.size, n << shift, kind[0]})
		i.size += n << shift
	}
	return i
}

func (i *image) ReadAt(p []byte, offset int64) (int, error) {
	n := 0
	for _, run := range i.runs {
		for n < len(p) && offset+int64(n) >= run.start && offset+int64(n)-run.start < run.length {
			part := p[n:min(int64(len(p)), int64(n)+run.length-(offset+int64(n)-run.start))]
			for j := range part {
				switch run.kind {
				case '-':
					return n, fmt.Errorf("read of a hole at %d", offset)
				case '0':
					part[j] = 0
				case '#':
					part[j] = byte((offset + int64(n+j)) % 251)
				default:
					part[j] = run.kind
				}
			}
			n += len(part)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// extents reports holes.
func (i *image) extents(yield func(blkhash.Extent, error) bool) {
	for _, run := range i.runs {
		if run.kind == '-' && !yield(blkhash.Extent{Offset: run.start, Length: run.length, Zero: true}, nil) {
			return
		}
	}
}

// part returns the content from start up to and without end.
func (i *image) part(start, end int64) *image {
	p := &image{size: end - start}
	for _, run := range i.runs {
		first, last := max(run.start, start), min(run.start+run.length, end)
		if first < last {
			p.runs = append(p.runs, imageRun{first - start, last - first, run.kind})
		}
	}
	return p
}

// file is a growing file in memory.
type file struct {
	data  []byte
	syncs int
}

func (f *file) Write(p []byte) (int, error) {
	f.data = append(f.data, p...)
	return len(p), nil
}

func (f *file) Sync() error {
	f.syncs++
	return nil
}

func (f *file) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 || offset > int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.data[offset:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) size() int64 { return int64(len(f.data)) }

// always is an interval of checkpoints that are only written on demand.
const always = math.MaxInt64
