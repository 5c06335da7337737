package blkhash_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
)

// model computes a checksum as docs/reference/constructions.md defines it, for the constructions without a tree.
func model(content []byte, p blkhash.Parameters) []byte {
	p = p.WithDefaults()
	digest := func(input []byte) []byte {
		h := p.Algorithm.New()
		h.Write(input)
		return h.Sum(nil)
	}
	if p.Construction == blkhash.Linear {
		return digest(content)
	}
	var digests [][]byte
	for block := range slices.Chunk(content, p.BlockSize) {
		digests = append(digests, digest(block))
	}
	switch p.Construction {
	case blkhash.Concat:
		return digest(bytes.Join(digests, nil))
	case blkhash.Flat:
		return digest(binary.LittleEndian.AppendUint64(bytes.Join(digests, nil), uint64(len(content))))
	}
	count, err := strconv.Atoi(strings.TrimPrefix(string(p.Construction), "streams:"))
	if err != nil {
		panic(err)
	}
	var streams []byte
	for k := range count {
		var list []byte
		for i := k; i < len(digests); i += count {
			list = append(list, digests[i]...)
		}
		streams = append(streams, digest(list)...)
	}
	return digest(streams)
}

// randomContent returns content with zeros in places, and extents that report some of them.
func randomContent(r *rand.Rand) ([]byte, []blkhash.Extent) {
	var content []byte
	var extents []blkhash.Extent
	for range r.IntN(12) {
		length := r.IntN(1 << r.IntN(20))
		if r.IntN(4) > 0 {
			length = (length + 511) &^ 511
		}
		part := make([]byte, length)
		zero := r.IntN(2) == 0
		if !zero {
			for i := range part {
				part[i] = byte(i>>8) ^ byte(i) ^ byte(r.IntN(2))
			}
		}
		if r.IntN(3) > 0 {
			extents = append(extents, blkhash.Extent{Offset: int64(len(content)), Length: int64(length), Zero: zero})
		}
		content = append(content, part...)
	}
	return content, extents
}

func randomParameters(r *rand.Rand) blkhash.Parameters {
	all := blkhash.Algorithms()
	constructions := []blkhash.Construction{
		blkhash.Streams(1 + r.IntN(6)), blkhash.Streams(4), blkhash.Flat, blkhash.Concat, blkhash.Linear, blkhash.FSVerity, blkhash.DMVerity,
	}
	p := blkhash.Parameters{
		Algorithm:    all[r.IntN(len(all))],
		Construction: constructions[r.IntN(len(constructions))],
		BlockSize:    512 << r.IntN(10),
	}
	switch p.Construction {
	case blkhash.FSVerity:
		p.Algorithm = []blkhash.Algorithm{blkhash.SHA256, blkhash.SHA512}[r.IntN(2)]
		p.Salt = make([]byte, r.IntN(33))
	case blkhash.DMVerity:
		if !p.Algorithm.Cryptographic() {
			p.Algorithm = blkhash.MD5
		}
		p.Salt = make([]byte, r.IntN(257))
	}
	for i := range p.Salt {
		p.Salt[i] = byte(r.IntN(256))
	}
	return p
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// collected is a sink that keeps the digests.
type collected struct {
	digests, zero []byte
}

func (c *collected) Blocks(digests []byte) error {
	c.digests = append(c.digests, digests...)
	return nil
}

func (c *collected) ZeroBlocks(n int64) error {
	for range n {
		c.digests = append(c.digests, c.zero...)
	}
	return nil
}

// TestRandom compares all ways to a checksum with each other, and with the model where it has the construction.
func TestRandom(t *testing.T) {
	for seed := range uint64(400) {
		r := seeded(seed)
		content, extents := randomContent(r)
		p := randomParameters(r)
		if p.Construction == blkhash.DMVerity {
			whole := max(len(content)/p.BlockSize, 1) * p.BlockSize
			content = append(content, make([]byte, p.BlockSize)...)[:whole]
			extents = slices.DeleteFunc(extents, func(e blkhash.Extent) bool { return e.End() > int64(whole) })
		}
		size := int64(len(content))
		want, err := blkhash.Sum(t.Context(), bytes.NewReader(content), size, nil, p, blkhash.WithThreads(1))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if p.Construction != blkhash.FSVerity && p.Construction != blkhash.DMVerity && !bytes.Equal(want, model(content, p)) {
			t.Errorf("seed %d: %+v: another value than the model", seed, p)
		}

		zero := p.Algorithm.New()
		zero.Write(make([]byte, p.BlockSize))
		sink := &collected{zero: zero.Sum(nil)}
		opts := []blkhash.Option{blkhash.WithThreads(1 + r.IntN(4))}
		if p.Construction.HasBlocks() && p.Salt == nil {
			opts = append(opts, blkhash.WithSink(sink))
		}
		pairs := func(yield func(blkhash.Extent, error) bool) {
			for _, e := range extents {
				if !yield(e, nil) {
					return
				}
			}
		}
		got, err := blkhash.Sum(t.Context(), bytes.NewReader(content), size, pairs, p, opts...)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("seed %d: %+v with extents: %x, %v", seed, p, got, err)
		}
		if p.Construction.HasBlocks() && p.Construction != blkhash.FSVerity && p.Salt == nil {
			list := blkhash.Parameters{Algorithm: p.Algorithm, Construction: blkhash.Concat, BlockSize: p.BlockSize}
			outer := p.Algorithm.New()
			outer.Write(sink.digests)
			if !bytes.Equal(outer.Sum(nil), model(content, list)) {
				t.Errorf("seed %d: %+v: other digests in the sink", seed, p)
			}
		}

		for range 2 {
			got, err := written(r, content, p)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("seed %d: %+v written: %x, %v", seed, p, got, err)
			}
		}
	}
}

// written writes the content in random ways to hashers that are copied, saved and restored in between.
func written(r *rand.Rand, content []byte, p blkhash.Parameters) ([]byte, error) {
	h, err := blkhash.New(p, blkhash.WithThreads(1+r.IntN(3)))
	if err != nil {
		return nil, err
	}
	for len(content) > 0 {
		n := 1 + r.IntN(len(content))
		part := content[:n]
		content = content[n:]
		switch {
		case len(bytes.Trim(part, "\x00")) == 0:
			err = h.WriteZeros(int64(n))
		case r.IntN(2) == 0:
			_, err = io.Copy(h, struct{ io.Reader }{bytes.NewReader(part)})
		default:
			_, err = h.Write(part)
		}
		if err != nil {
			return nil, err
		}
		switch r.IntN(8) {
		case 0:
			cloned, err := h.Clone()
			if err != nil {
				return nil, err
			}
			if _, err := h.Write([]byte("this is not in the copy")); err != nil {
				return nil, err
			}
			h = cloned.(*blkhash.Hasher)
		case 1:
			state, err := h.MarshalBinary()
			if errors.Is(err, errors.ErrUnsupported) && (p.Algorithm == blkhash.XXH3 || p.Algorithm == blkhash.XXH128) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if h, err = blkhash.New(p); err != nil {
				return nil, err
			}
			if _, err := h.Write([]byte("this is replaced")); err != nil {
				return nil, err
			}
			if err := h.UnmarshalBinary(state); err != nil {
				return nil, err
			}
		}
	}
	return h.Close()
}

func TestSumAllReadsOnce(t *testing.T) {
	content := pattern(5 << 20)
	read := &counted{newReader(content), 0}
	var all []blkhash.Parameters
	for _, c := range []blkhash.Construction{blkhash.Streams(4), blkhash.Flat, blkhash.Linear, blkhash.Concat, blkhash.FSVerity} {
		all = append(all, blkhash.Parameters{Construction: c}, blkhash.Parameters{Construction: c, Algorithm: blkhash.SHA512, BlockSize: 2 << 20})
	}
	sums, err := blkhash.SumAll(t.Context(), read, int64(len(content)), nil, all, blkhash.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	if read.bytes != int64(len(content)) {
		t.Errorf("read %d of %d bytes", read.bytes, len(content))
	}
	for i, p := range all {
		one, err := blkhash.Sum(t.Context(), newReader(content), int64(len(content)), nil, p)
		if err != nil || !bytes.Equal(one, sums[i]) {
			t.Errorf("%+v: %x alone and %x among others, %v", p, one, sums[i], err)
		}
	}
}

// counted counts the bytes that are read.
type counted struct {
	io.ReaderAt
	bytes int64
}

func (c *counted) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, offset)
	c.bytes += int64(n)
	return n, err
}

func TestErrors(t *testing.T) {
	content := newReader(pattern(3 << 20))
	wrong := errors.New("wrong")
	one := func(e blkhash.Extent, err error) blkhash.Extents {
		return func(yield func(blkhash.Extent, error) bool) {
			_ = yield(blkhash.Extent{Length: 4096}, nil) && yield(e, err)
		}
	}
	for _, threads := range []int{1, 3} {
		for name, extents := range map[string]blkhash.Extents{
			"before":   one(blkhash.Extent{Offset: 4095, Length: 1}, nil),
			"beyond":   one(blkhash.Extent{Offset: 4096, Length: 3<<20 - 4095}, nil),
			"outside":  one(blkhash.Extent{Offset: 4 << 20, Length: 1}, nil),
			"negative": one(blkhash.Extent{Offset: 4096, Length: -1}, nil),
		} {
			_, err := blkhash.Sum(t.Context(), content, 3<<20, extents, blkhash.Parameters{}, blkhash.WithThreads(threads))
			if !errors.Is(err, blkhash.ErrExtents) {
				t.Errorf("%s: %v", name, err)
			}
		}
		sum := func(ctx context.Context, size int64, extents blkhash.Extents, p blkhash.Parameters, opts ...blkhash.Option) error {
			_, err := blkhash.Sum(ctx, content, size, extents, p, append(opts, blkhash.WithThreads(threads))...)
			return err
		}
		if err := sum(t.Context(), 3<<20, one(blkhash.Extent{}, wrong), blkhash.Parameters{}); !errors.Is(err, wrong) {
			t.Errorf("error of extents: %v", err)
		}
		if err := sum(t.Context(), 3<<20+1, nil, blkhash.Parameters{}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("short content: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(wrong)
		if err := sum(ctx, 3<<20, nil, blkhash.Parameters{}); !errors.Is(err, wrong) {
			t.Errorf("cancelled: %v", err)
		}
		if err := sum(t.Context(), 3<<20, nil, blkhash.Parameters{}, blkhash.WithSink(full{})); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("error of a sink: %v", err)
		}
		if err := sum(t.Context(), 3<<20, nil, blkhash.Parameters{Construction: blkhash.Linear}, blkhash.WithSink(full{})); err == nil {
			t.Error("linear with a sink")
		}
		if err := sum(t.Context(), 3<<20-1, nil, blkhash.Parameters{Construction: blkhash.DMVerity}); err == nil {
			t.Error("dm-verity of a part of a block")
		}
		if err := sum(t.Context(), -1, nil, blkhash.Parameters{}); err == nil {
			t.Error("negative size")
		}
	}
	for _, p := range []blkhash.Parameters{
		{Algorithm: "siphash"}, {Construction: "streams:0"}, {Construction: "streams:129"}, {Construction: "streams:04"}, {BlockSize: 256},
		{BlockSize: 1000}, {BlockSize: 128 << 20}, {BlockSize: -4096}, {Salt: []byte{1}}, {Construction: blkhash.FSVerity, Algorithm: blkhash.SHA384},
		{Construction: blkhash.FSVerity, Salt: make([]byte, 33)}, {Construction: blkhash.DMVerity, Algorithm: blkhash.CRC32},
		{Construction: blkhash.DMVerity, Salt: make([]byte, 257)},
	} {
		if _, err := blkhash.New(p); err == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
}

// full is a sink that fails.
type full struct{}

func (full) Blocks([]byte) error    { return io.ErrShortWrite }
func (full) ZeroBlocks(int64) error { return io.ErrShortWrite }

func TestHasherFails(t *testing.T) {
	h, err := blkhash.New(blkhash.Parameters{}, blkhash.WithSink(full{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.WriteZeros(1 << 20); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("zeros: %v", err)
	}
	if _, err := h.Write([]byte("more")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("write: %v", err)
	}
	if _, err := h.Close(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("close: %v", err)
	}
	h, _ = blkhash.New(blkhash.Parameters{})
	if err := h.WriteZeros(-1); err == nil {
		t.Error("negative zeros")
	}
	if err := h.WriteZeros(1); err != nil {
		t.Fatal(err)
	}
	if err := h.WriteZeros(1<<63 - 1); err == nil {
		t.Error("content of 2^63 bytes")
	}
}

func TestClosedHasher(t *testing.T) {
	for _, c := range []blkhash.Construction{blkhash.Streams(4), blkhash.Flat, blkhash.Linear, blkhash.FSVerity} {
		h, err := blkhash.New(blkhash.Parameters{Construction: c})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		sum, err := h.Close()
		if err != nil {
			t.Fatal(err)
		}
		cloned, err := h.Clone()
		if err != nil {
			t.Fatal(err)
		}
		want, err := blkhash.Sum(t.Context(), newReader([]byte("abc")), 3, nil, blkhash.Parameters{Construction: c})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range [][]byte{sum, h.Sum(nil), cloned.Sum(nil)} {
			if !bytes.Equal(got, want) {
				t.Errorf("%s: %x, not %x", c, got, want)
			}
		}
		if _, err := h.Write(nil); err == nil {
			t.Errorf("%s: write after the end", c)
		}
		if _, err := h.ReadFrom(newReader([]byte("more"))); err == nil {
			t.Errorf("%s: read after the end", c)
		}
		if _, err := h.Close(); err == nil {
			t.Errorf("%s: closed twice", c)
		}
		h.Reset()
		if err := h.WriteZeros(1); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
	h, err := blkhash.New(blkhash.Parameters{Construction: blkhash.DMVerity})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.WriteZeros(4095); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Close(); err == nil {
		t.Error("dm-verity of a part of a block")
	}
	if err := h.WriteZeros(1); err != nil {
		t.Error(err)
	}
	if _, err := h.Close(); err != nil {
		t.Error(err)
	}
}

// TestLargestContent has sizes up to which a sum of offsets would overflow.
func TestLargestContent(t *testing.T) {
	for _, size := range []int64{math.MaxInt64, math.MaxInt64 - 511, math.MaxInt64 - 1<<20 + 1, math.MaxInt64 - 1<<20} {
		p := blkhash.Parameters{Construction: blkhash.FSVerity, BlockSize: 1 << 20}
		hole := func(yield func(blkhash.Extent, error) bool) {
			yield(blkhash.Extent{Length: size, Zero: true}, nil)
		}
		done := int64(0)
		sum, err := blkhash.Sum(t.Context(), nil, size, hole, p, blkhash.WithThreads(1), blkhash.WithProgress(func(n, _ int64) {
			if n <= done {
				t.Fatalf("%d after %d", n, done)
			}
			done = n
		}))
		if err != nil || done != size {
			t.Fatalf("%d of %d: %v", done, size, err)
		}
		h, err := blkhash.New(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.WriteZeros(size); err != nil || !bytes.Equal(h.Sum(nil), sum) {
			t.Errorf("%d zeros: %x, not %x, %v", size, h.Sum(nil), sum, err)
		}
	}
}

func TestHasherHasNoProgress(t *testing.T) {
	if _, err := blkhash.New(blkhash.Parameters{}, blkhash.WithProgress(func(int64, int64) {})); err == nil {
		t.Error("a progress function is accepted")
	}
}

func TestProgress(t *testing.T) {
	content := pattern(9<<20 + 5)
	last := int64(0)
	_, err := blkhash.Sum(t.Context(), newReader(content), int64(len(content)), nil, blkhash.Parameters{},
		blkhash.WithProgress(func(done, total int64) {
			if done <= last || total != int64(len(content)) {
				t.Errorf("%d after %d, of %d", done, last, total)
			}
			last = done
		}))
	if err != nil || last != int64(len(content)) {
		t.Errorf("ends at %d, %v", last, err)
	}
}
