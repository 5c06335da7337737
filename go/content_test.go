package blkhash_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
)

// run is an item of an image of the test vectors, such as "64k:A".
type run struct {
	length int64
	kind   byte
}

// parseImage parses an image as test-vectors/README.md defines it. Gigabytes of zeros become a hole.
func parseImage(t testing.TB, text string) (runs []run) {
	for _, item := range strings.Fields(text) {
		length, kind, _ := strings.Cut(item, ":")
		shift := 0
		if i := strings.IndexByte("kmgt", length[len(length)-1]); i >= 0 {
			length, shift = length[:len(length)-1], 10*(i+1)
		}
		n, err := strconv.ParseInt(length, 10, 64)
		if err != nil || len(kind) != 1 {
			t.Fatalf("invalid image %q", text)
		}
		if kind == "0" && n<<shift >= 1<<30 {
			kind = "-"
		}
		runs = append(runs, run{n << shift, kind[0]})
	}
	return runs
}

// image is an io.ReaderAt of the content of a test vector. Reading a hole fails.
type image struct {
	runs []run
	size int64
}

func newImage(t testing.TB, text string) *image {
	i := &image{runs: parseImage(t, text)}
	for _, run := range i.runs {
		i.size += run.length
	}
	return i
}

func (i *image) ReadAt(p []byte, offset int64) (int, error) {
	n, start := 0, int64(0)
	for _, run := range i.runs {
		end := start + run.length
		for n < len(p) && offset+int64(n) < end {
			part := p[n:min(int64(len(p)), end-offset)]
			switch run.kind {
			case '-':
				return n, fmt.Errorf("read of a hole at %d", offset)
			case '0':
				clear(part)
			case '#':
				for done, at := 0, offset+int64(n); done < len(part); {
					done += copy(part[done:], counter[(at+int64(done))%251:])
				}
			default:
				for j := range part {
					part[j] = run.kind
				}
			}
			n += len(part)
		}
		start = end
	}
	return n, nil
}

// extents reports holes as zeros, and leaves out some of the other extents.
func (i *image) extents(yield func(blkhash.Extent, error) bool) {
	start := int64(0)
	for n, run := range i.runs {
		if run.kind == '-' || n%2 == 0 {
			if !yield(blkhash.Extent{Offset: start, Length: run.length, Zero: run.kind == '-'}, nil) {
				return
			}
		}
		start += run.length
	}
}

// write writes the content to h in parts of up to n bytes.
func (i *image) write(t testing.TB, h *blkhash.Hasher, n int) {
	start := int64(0)
	for _, run := range i.runs {
		if run.kind == '-' {
			if err := h.WriteZeros(run.length); err != nil {
				t.Fatal(err)
			}
			start += run.length
			continue
		}
		for end := start + run.length; start < end; {
			part := make([]byte, min(int64(n), end-start))
			if _, err := i.ReadAt(part, start); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Write(part); err != nil {
				t.Fatal(err)
			}
			start += int64(len(part))
		}
	}
}

// vector is a line of test-vectors/constructions.json or verity.json.
type vector struct {
	Image, Digest, Construction, Salt, Hex string
	Size                                   int64
	BlockSize                              int `json:"block_size"`
}

func (v vector) parameters(t testing.TB) blkhash.Parameters {
	salt, err := hex.DecodeString(v.Salt)
	if err != nil {
		t.Fatal(err)
	}
	return blkhash.Parameters{
		Algorithm:    blkhash.Algorithm(v.Digest),
		Construction: blkhash.Construction(v.Construction),
		BlockSize:    v.BlockSize,
		Salt:         salt,
	}
}

// readVectors returns all vectors of a file.
func readVectors(t testing.TB, name string) []vector {
	text, err := os.ReadFile("../test-vectors/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Count   int
		Vectors []vector
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) != file.Count || file.Count < 200 {
		t.Fatalf("%s: %d vectors, not %d", name, len(file.Vectors), file.Count)
	}
	return file.Vectors
}

// counter is content that does not repeat in blocks: the byte at i is i mod 251.
var counter = func() []byte {
	p := make([]byte, 251<<10)
	for i := range p {
		p[i] = byte(i % 251)
	}
	return p
}()

// pattern returns n bytes of counter.
func pattern(n int) []byte {
	p := make([]byte, n)
	for done := 0; done < n; {
		done += copy(p[done:], counter)
	}
	return p
}

func newReader(p []byte) *bytes.Reader { return bytes.NewReader(p) }
