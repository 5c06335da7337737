package blkmap_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/blkmap"
)

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 2))} }

// TestHasherFillsMap has a checksum fill a map that its constructions share.
func TestHasherFillsMap(t *testing.T) {
	r := newRandom(1)
	content := append(r.image(1024), "the end"...)
	for _, c := range []blkhash.Construction{blkhash.Streams(4), blkhash.FSVerity} {
		p := blkhash.Parameters{Construction: c, BlockSize: 1024}
		of, err := blkmap.ParametersOf(p)
		if err != nil {
			t.Fatal(err)
		}
		want := create(t, content, of, blkmap.WriterOptions{FileID: [16]byte{1}, Info: []byte("{}")})
		out := &file{}
		o := blkmap.WriterOptions{FileID: [16]byte{1}, Info: []byte("{}")}
		w, err := blkmap.NewWriter(out, int64(len(content)), of, o)
		if err != nil {
			t.Fatal(err)
		}
		h, err := blkhash.New(p, blkhash.WithSink(w))
		if err != nil {
			t.Fatal(err)
		}
		for rest := content; len(rest) > 0; {
			n := min(len(rest), 3000)
			if _, err := h.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		sum, err := h.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.data, want) {
			t.Errorf("%s: differs at %d", c, firstDifference(out.data, want))
		}
		if got, err := open(t, out.data).Checksum(t.Context(), c); err != nil || !bytes.Equal(got, sum) {
			t.Errorf("%s: %x, %v, not %x", c, got, err, sum)
		}
	}
}

// TestRecoverAnywhere cuts a map at many places, and continues after the last checkpoint.
func TestRecoverAnywhere(t *testing.T) {
	r := newRandom(2)
	p := blkmap.Parameters{BlockSize: 512}
	content := append(append(r.bytes(300_000), make([]byte, 200_000)...), r.bytes(100_001)...)
	key := []byte("0123456789abcdef")
	whole := create(t, content, p, blkmap.WriterOptions{Checkpoint: 8192, Key: key})
	for cut := int64(4096); cut < int64(len(whole)); cut += 1 + int64(r.IntN(3000)) {
		out := &file{data: append(bytes.Clone(whole[:cut]), r.bytes(r.IntN(5000))...)}
		recovered, err := blkmap.Recover(out, out.size())
		if err != nil {
			t.Fatal(err)
		}
		out.data = out.data[:recovered.End()]
		if _, err := recovered.Continue(out, int64(len(content)), blkmap.WriterOptions{}); recovered.RawInfo() != nil &&
			!errors.Is(err, blkmap.ErrSeal) {
			t.Fatalf("without a key: %v", err)
		}
		w, err := recovered.Continue(out, int64(len(content)), blkmap.WriterOptions{Checkpoint: 8192, Key: key})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if err := w.Read(t.Context(), bytes.NewReader(content), nil); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		m := open(t, out.data, blkmap.WithKey(key))
		if err := m.Check(t.Context()); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		verified := m.Verify(t.Context(), bytes.NewReader(content), int64(len(content)), nil)
		if list := differences(t, verified); list != nil {
			t.Fatalf("cut at %d: %v", cut, list)
		}
	}
	recovered, err := blkmap.Recover(bytes.NewReader(whole), int64(len(whole)))
	if err != nil || !recovered.Final() || recovered.End() != int64(len(whole)) {
		t.Errorf("finished map: %v", err)
	}
}

// TestOldStateWhileAppending opens a file with every length between two states.
func TestOldStateWhileAppending(t *testing.T) {
	r := newRandom(3)
	p := blkmap.Parameters{BlockSize: 512}
	content := r.bytes(200_000)
	old := create(t, content, p, blkmap.WriterOptions{})
	out := &file{data: bytes.Clone(old)}
	w, err := blkmap.Append(open(t, old), out, 200_000, blkmap.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	copy(content[70_000:], "changed")
	if err := w.Read(t.Context(), bytes.NewReader(content), nil); err != nil {
		t.Fatal(err)
	}
	for end := len(old); end < len(out.data); end += 512 {
		m, err := blkmap.Open(bytes.NewReader(out.data[:end]), int64(end))
		if err != nil || m.Sequence() != 1 {
			t.Fatalf("cut at %d: %v", end, err)
		}
	}
	if open(t, out.data).Sequence() != 2 {
		t.Error("the new state is not there")
	}
}

// TestKeepIsReading compares states in which blocks are kept with those that were read.
func TestKeepIsReading(t *testing.T) {
	for seed := range uint64(60) {
		r := newRandom(seed)
		p := r.parameters()
		content := r.image(p.BlockSize)
		next := r.changed(content, p.BlockSize)
		old := create(t, content, p, blkmap.WriterOptions{})
		o := blkmap.WriterOptions{Info: []byte("{}")}
		want := &file{data: bytes.Clone(old)}
		w, err := blkmap.Append(open(t, old), want, int64(len(next)), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Read(t.Context(), bytes.NewReader(next), nil); err != nil {
			t.Fatal(err)
		}
		got := &file{data: bytes.Clone(old)}
		if w, err = blkmap.Append(open(t, old), got, int64(len(next)), o); err != nil {
			t.Fatal(err)
		}
		kept, size := 0, p.BlockSize
		for at := 0; at < len(next); {
			end := min(at+size, len(next))
			same := at < len(content) && bytes.Equal(next[at:end], content[at:min(at+size, len(content))])
			if same && (end-at == size || len(content) == len(next)) {
				kept++
				at = end
				continue
			}
			if err := w.Keep(int64(kept)); err != nil {
				t.Fatal(err)
			}
			kept = 0
			block := next[at:end]
			if len(block) < size {
				if err := w.ShortBlock(block); err != nil {
					t.Fatal(err)
				}
			}
			h := p.Algorithm.New()
			h.Write(p.Salt)
			h.Write(block)
			if err := w.Blocks(h.Sum(nil)); err != nil {
				t.Fatal(err)
			}
			at = end
		}
		if err := errors.Join(w.Keep(int64(kept)), w.Finish()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.data, want.data) {
			t.Errorf("seed %d, %v: differs at %d", seed, p, firstDifference(got.data, want.data))
		}
	}
}

func TestWriterRefusesWrongBlocks(t *testing.T) {
	p := blkmap.Parameters{BlockSize: 512}
	begin := func(size int64) *blkmap.Writer {
		w, err := blkmap.NewWriter(&file{}, size, p, blkmap.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	digests := make([]byte, 64)
	for name, err := range map[string]error{
		"too many":                begin(512).Blocks(digests),
		"too many zeros":          begin(512).ZeroBlocks(2),
		"half a digest":           begin(512).Blocks(digests[:31]),
		"short block among zeros": begin(513).ZeroBlocks(2),
		"no short block":          begin(513).Blocks(digests),
		"other short block":       begin(513).ShortBlock(make([]byte, 2)),
		"missing":                 begin(513).Finish(),
		"keep without a base":     begin(512).Keep(1),
		"no checkpoints":          begin(512).Checkpoint(),
	} {
		if !isOurs(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]blkmap.WriterOptions{
		"info":      {Info: []byte("[]")},
		"surrogate": {Info: []byte(`{"a":"\ud800"}`)},
		"deep":      {Info: []byte(`{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}")},
		"key":       {Key: []byte("short")},
		"pages":     {Pages: 2},
	} {
		if _, err := blkmap.NewWriter(&file{}, 512, p, o); !isOurs(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFile writes to a file, and stops a comparison in the middle.
func TestFile(t *testing.T) {
	r := newRandom(5)
	content := r.bytes(3 << 20)
	f, err := os.Create(filepath.Join(t.TempDir(), "map"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var done, total int64
	progress := blkhash.WithProgress(func(d, of int64) { done, total = d, of })
	p := blkmap.Parameters{BlockSize: 512}
	size := int64(len(content))
	err = blkmap.Create(t.Context(), f, bytes.NewReader(content), size, nil, p, blkmap.WriterOptions{}, progress)
	if err != nil || done != int64(len(content)) || total != done {
		t.Fatalf("%d of %d: %v", done, total, err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	m, err := blkmap.Open(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	if known, err := m.Info(); err != nil || known.Created == "" || string(known.Made) != `"read"` {
		t.Errorf("info %v, %v", known, err)
	}
	for at := 0; at < len(content); at += 2048 {
		content[at] ^= 1
	}
	for d, err := range m.Verify(t.Context(), bytes.NewReader(content), int64(len(content)), nil) {
		if err != nil || d != (blkmap.Difference{Offset: 0, Length: 512, Kind: blkmap.Changed}) {
			t.Errorf("%v, %v", d, err)
		}
		break
	}
	if n := len(differences(t, m.Verify(t.Context(), bytes.NewReader(content), size, nil))); n != len(content)/2048 {
		t.Errorf("%d differences", n)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("no time")
	cancel(cause)
	var failed []error
	for _, err := range m.Verify(ctx, bytes.NewReader(content), int64(len(content)), nil) {
		failed = append(failed, err)
	}
	if !slices.Equal(failed, []error{cause}) {
		t.Errorf("cancelled: %v", failed)
	}
	if err := m.Check(ctx); err != cause {
		t.Errorf("check: %v", err)
	}
}

// TestSizesDiffer compares images of which one ends in the last block of the other.
func TestSizesDiffer(t *testing.T) {
	p := blkmap.Parameters{BlockSize: 512}
	content := newRandom(6).bytes(1000)
	longer := append(bytes.Clone(content), make([]byte, 10)...)
	m := open(t, create(t, content, p, blkmap.WriterOptions{}))
	other := open(t, create(t, longer, p, blkmap.WriterOptions{}))
	right := []blkmap.Difference{{Offset: 1000, Length: 10, Kind: blkmap.RightOnly}}
	left := []blkmap.Difference{{Offset: 1000, Length: 10, Kind: blkmap.LeftOnly}}
	if got := differences(t, blkmap.Diff(m, other)); !slices.Equal(got, right) {
		t.Errorf("diff: %v", got)
	}
	if got := differences(t, blkmap.Diff(other, m)); !slices.Equal(got, left) {
		t.Errorf("diff: %v", got)
	}
	if got := differences(t, m.Verify(t.Context(), bytes.NewReader(longer), 1010, nil)); !slices.Equal(got, right) {
		t.Errorf("verify: %v", got)
	}
	if got := differences(t, other.Verify(t.Context(), bytes.NewReader(content), 1000, nil)); !slices.Equal(got, left) {
		t.Errorf("verify: %v", got)
	}
	p.BlockSize = 1024
	for _, err := range blkmap.Diff(m, open(t, create(t, content, p, blkmap.WriterOptions{}))) {
		if !errors.Is(err, blkmap.ErrMismatch) {
			t.Errorf("other blocks: %v", err)
		}
	}
}
