package blkmap_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/blkmap"
)

// hexBytes is a string of hexadecimal digits in JSON.
type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// patch is [offset, bytes] in JSON.
type patch struct {
	offset int64
	bytes  hexBytes
}

func (p *patch) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&p.offset, &p.bytes})
}

type mapVector struct {
	Name, Image, Digest, Info string
	Size                      int64
	BlockSize                 int      `json:"block_size"`
	FileID                    hexBytes `json:"file_id"`
	Salt, Key                 hexBytes
	Pages                     [2]int64
	Checkpoints               []int64
	Length                    int64
	SHA256, Root              hexBytes
	ContentID                 hexBytes `json:"content_id"`
	Checksums                 map[blkhash.Construction]hexBytes
	File                      []patch
}

type appendedVector struct {
	Name, Base, Info string
	Image            *string
	Key              hexBytes
	Sequence         uint64
	Length           int64
	SHA256, Root     hexBytes
	ContentID        hexBytes `json:"content_id"`
	Diff             []diffRun
	File             []patch
}

type refusedVector struct {
	Reason, Base, When string
	Length             int64
	Changes            []patch
}

// diffRun is [block, blocks, kind] in JSON.
type diffRun struct {
	block, blocks int64
	kind          blkmap.Kind
}

func (d *diffRun) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&d.block, &d.blocks, &d.kind})
}

type vectors struct {
	Count    int
	Maps     []mapVector
	Appended []appendedVector
	Refused  []refusedVector
}

func readVectors(t testing.TB) vectors {
	text, err := os.ReadFile("../../test-vectors/maps.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if n := len(v.Maps) + len(v.Appended) + len(v.Refused); n != v.Count || n < 167 {
		t.Fatalf("%d vectors, not %d", n, v.Count)
	}
	return v
}

// build returns a file of a length that has some bytes.
func build(length int64, patches []patch) []byte {
	b := make([]byte, length)
	for _, p := range patches {
		copy(b[p.offset:], p.bytes)
	}
	return b
}

func (v *mapVector) parameters() blkmap.Parameters {
	return blkmap.Parameters{Algorithm: blkhash.Algorithm(v.Digest), BlockSize: v.BlockSize, Salt: v.Salt}
}

func open(t testing.TB, b []byte, opts ...blkmap.OpenOption) *blkmap.Map {
	t.Helper()
	m, err := blkmap.Open(bytes.NewReader(b), int64(len(b)), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// splitter passes digests to a writer, and has it write checkpoints after some pages.
type splitter struct {
	*blkmap.Writer
	size   int
	per    int64
	behind []int64
}

func (s *splitter) room() int64 {
	return s.per - s.NextBlock()%s.per
}

func (s *splitter) checkpoint() error {
	next := s.NextBlock()
	if page := (next - 1) / s.per; slices.Contains(s.behind, page) && (next%s.per == 0 || next == s.last()) {
		return s.Checkpoint()
	}
	return nil
}

func (s *splitter) last() int64 { return s.behind[len(s.behind)-1] }

func (s *splitter) Blocks(digests []byte) error {
	for len(digests) > 0 {
		n := min(len(digests), int(s.room())*s.size)
		if err := s.Writer.Blocks(digests[:n]); err != nil {
			return err
		}
		if err := s.checkpoint(); err != nil {
			return err
		}
		digests = digests[n:]
	}
	return nil
}

func (s *splitter) ZeroBlocks(n int64) error {
	for n > 0 {
		count := n
		if len(s.behind) > 1 {
			count = min(n, s.room())
		}
		if err := s.Writer.ZeroBlocks(count); err != nil {
			return err
		}
		if err := s.checkpoint(); err != nil {
			return err
		}
		n -= count
	}
	return nil
}

func (v *mapVector) options() blkmap.WriterOptions {
	o := blkmap.WriterOptions{Info: []byte(v.Info), FileID: [16]byte(v.FileID), Checkpoint: always,
		FirstPage: v.Pages[0], Pages: v.Pages[1] - v.Pages[0]}
	if o.Pages == 0 {
		o.Pages = -1
	}
	if len(v.Key) > 0 {
		o.Key = v.Key
	}
	return o
}

// write returns the map of a vector.
func (v *mapVector) write(t testing.TB) []byte {
	p := v.parameters()
	out, image := &file{}, newImage(t, v.Image)
	w, err := blkmap.NewWriter(out, image.size, p, v.options())
	if err != nil {
		t.Fatal(err)
	}
	unit := p.PageBlocks() * int64(p.BlockSize)
	start, end := v.Pages[0]*unit, image.size
	if v.Pages[1] <= image.size/unit {
		end = v.Pages[1] * unit
	}
	blocks := image.size / int64(p.BlockSize)
	if image.size%int64(p.BlockSize) != 0 {
		blocks++
	}
	s := &splitter{w, p.Algorithm.Size(), p.PageBlocks(), append(slices.Clone(v.Checkpoints), blocks)}
	part := image.part(start, end)
	if part.size > huge {
		// A pass takes zeros in parts, which are many here.
		err = errors.Join(w.ZeroBlocks(blocks-1), w.ShortBlock(make([]byte, image.size%int64(p.BlockSize))),
			w.Blocks(make([]byte, p.Algorithm.Size())), w.Finish())
		if err != nil {
			t.Fatal(err)
		}
		return out.data
	}
	err = blkhash.BlockDigests(t.Context(), part, part.size, part.extents, p.Algorithm, p.BlockSize, p.Salt, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return out.data
}

func TestVectorsOfMaps(t *testing.T) {
	for _, v := range readVectors(t).Maps {
		t.Run(v.Name, func(t *testing.T) {
			b := build(v.Length, v.File)
			if sum := sha256.Sum256(b); !bytes.Equal(sum[:], v.SHA256) {
				t.Fatal("the vector has another hash")
			}
			if got := v.write(t); !bytes.Equal(got, b) {
				t.Errorf("writes %d bytes, which differ from %d at %d", len(got), len(b), firstDifference(got, b))
			}
			m := open(t, b)
			v.check(t, m)
			if len(v.Key) > 0 {
				if err := open(t, b, blkmap.WithKey(v.Key)).Check(t.Context()); err != nil {
					t.Error(err)
				}
				other := append([]byte{1}, v.Key...)
				_, err := blkmap.Open(bytes.NewReader(b), v.Length, blkmap.WithKey(other))
				if !errors.Is(err, blkmap.ErrSeal) {
					t.Errorf("another key: %v", err)
				}
			}
		})
	}
}

// huge is the size of images that are not read, not even as zeros.
const huge = 1 << 50

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func (v *mapVector) check(t *testing.T, m *blkmap.Map) {
	if err := m.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if m.ImageSize() != v.Size || !m.Parameters().Equal(v.parameters()) || string(m.RawInfo()) != v.Info {
		t.Errorf("size %d, parameters %v, info %s", m.ImageSize(), m.Parameters(), m.RawInfo())
	}
	root, complete := m.Root()
	id, _ := m.ContentID()
	if !bytes.Equal(root[:], v.Root) || !bytes.Equal(id[:], v.ContentID) {
		t.Errorf("root %x, content id %x", root, id)
	}
	for c, want := range v.Checksums {
		if got, err := m.Checksum(t.Context(), c); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v", c, got, err)
		}
	}
	image := newImage(t, v.Image)
	if _, err := m.ChecksumParameters(blkhash.Linear); err == nil && complete {
		p := blkhash.Parameters{Algorithm: m.Parameters().Algorithm, Construction: blkhash.Linear}
		want, err := blkhash.Sum(t.Context(), image, image.size, image.extents, p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.Checksum(t.Context(), blkhash.Linear); err != nil || !bytes.Equal(got, want) {
			t.Errorf("linear: %x, %v, not %x", got, err, want)
		}
	}
	if image.size > huge {
		return
	}
	for d, err := range m.Verify(t.Context(), image, image.size, image.extents) {
		if err != nil || d.Kind != blkmap.Unknown {
			t.Errorf("verify: %v, %v", d, err)
		}
	}
	if m.Blocks() < 10_000 {
		checkRuns(t, m)
	}
}

// checkRuns compares runs with single digests.
func checkRuns(t *testing.T, m *blkmap.Map) {
	size := m.Parameters().Algorithm.Size()
	next, known, offset := int64(0), int64(0), int64(0)
	zero := make([]byte, m.Parameters().BlockSize)
	h := m.Parameters().Algorithm.New()
	h.Write(m.Parameters().Salt)
	h.Write(zero)
	for run, err := range m.Runs() {
		if err != nil || run.Block != next || run.Offset != offset {
			t.Fatalf("run at block %d, offset %d: %v", run.Block, run.Offset, err)
		}
		for i := range run.Blocks {
			digest, err := m.Digest(run.Block + i)
			var want []byte
			switch run.Kind {
			case blkmap.Data:
				want = run.Digests[int(i)*size : int(i+1)*size]
			case blkmap.Zero:
				want = h.Sum(nil)
			}
			if err != nil || !bytes.Equal(digest, want) {
				t.Fatalf("block %d: %x, %v, not %x", run.Block+i, digest, err, want)
			}
		}
		if run.Kind != blkmap.Unknown {
			known += run.Blocks
		}
		next += run.Blocks
		offset += run.Length
	}
	if next != m.Blocks() || known != m.Known() || offset != m.ImageSize() {
		t.Errorf("%d blocks, %d known, %d bytes", next, known, offset)
	}
}

func (v *vectors) base(t testing.TB, name string) *mapVector {
	for i := range v.Maps {
		if v.Maps[i].Name == name {
			return &v.Maps[i]
		}
	}
	t.Fatalf("no map %q", name)
	return nil
}

func TestVectorsAppended(t *testing.T) {
	all := readVectors(t)
	for _, v := range all.Appended {
		t.Run(v.Name, func(t *testing.T) {
			base := all.base(t, v.Base)
			old := build(base.Length, base.File)
			b := build(v.Length, v.File)
			copy(b, old)
			if sum := sha256.Sum256(b); !bytes.Equal(sum[:], v.SHA256) {
				t.Fatal("the vector has another hash")
			}
			out := &file{data: bytes.Clone(old)}
			m := open(t, old)
			if v.Image == nil {
				if err := blkmap.AppendSeal(m, out, v.Key); err != nil {
					t.Fatal(err)
				}
			} else {
				image := newImage(t, *v.Image)
				o := blkmap.WriterOptions{Info: []byte(v.Info)}
				if len(v.Key) > 0 {
					o.Key = v.Key
				}
				w, err := blkmap.Append(m, out, image.size, o)
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Read(t.Context(), image, image.extents); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(out.data, b) {
				t.Errorf("writes %d bytes, which differ from %d at %d", len(out.data), len(b),
					firstDifference(out.data, b))
			}
			var opts []blkmap.OpenOption
			if len(v.Key) > 0 {
				opts = append(opts, blkmap.WithKey(v.Key))
			}
			m = open(t, b, opts...)
			if err := m.Check(t.Context()); err != nil || m.Sequence() != v.Sequence {
				t.Errorf("commit %d: %v", m.Sequence(), err)
			}
			root, _ := m.Root()
			if !bytes.Equal(root[:], v.Root) {
				t.Errorf("root %x", root)
			}
			older := open(t, b, blkmap.WithSequence(v.Sequence-1))
			if got := diffRuns(t, older, m); !slices.Equal(got, v.Diff) {
				t.Errorf("diff %v, not %v", got, v.Diff)
			}
		})
	}
}

// diffRuns returns the differences in the form of the vectors.
func diffRuns(t testing.TB, left, right *blkmap.Map) []diffRun {
	runs := []diffRun{}
	size := int64(left.Parameters().BlockSize)
	for d, err := range blkmap.Diff(left, right) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Kind != blkmap.LeftOnly && d.Kind != blkmap.RightOnly {
			runs = append(runs, diffRun{d.Offset / size, (d.Length + size - 1) / size, d.Kind})
		}
	}
	return runs
}

func TestVectorsRefused(t *testing.T) {
	all := readVectors(t)
	for _, v := range all.Refused {
		t.Run(v.Reason, func(t *testing.T) {
			base := all.base(t, v.Base)
			b := build(base.Length, base.File)
			b = append(b, make([]byte, max(0, v.Length-base.Length))...)[:v.Length]
			for _, p := range v.Changes {
				copy(b[p.offset:], p.bytes)
			}
			m, err := blkmap.Open(bytes.NewReader(b), v.Length)
			if v.When == "check" {
				if err != nil {
					t.Fatalf("open: %v", err)
				}
				err = m.Check(context.Background())
			}
			if err == nil {
				t.Fatal("is accepted")
			}
			if !isOurs(err) {
				t.Errorf("an error without a reason: %v", err)
			}
		})
	}
}

// isOurs returns whether an error is one of the package.
func isOurs(err error) bool {
	for _, reason := range []error{blkmap.ErrNotMap, blkmap.ErrUnfinished, blkmap.ErrDamaged, blkmap.ErrUnsupported,
		blkmap.ErrMismatch, blkmap.ErrIncomplete, blkmap.ErrSeal} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}
