package blkhash_test

import (
	"bytes"
	"testing"

	"github.com/blkhash/blkhash/go"
)

// FuzzSum compares content that is read with extents, written in parts, and hashed by the model.
func FuzzSum(f *testing.F) {
	f.Add(uint64(1), []byte("abc"))
	f.Add(uint64(2), make([]byte, 5000))
	f.Fuzz(func(t *testing.T, seed uint64, content []byte) {
		r := seeded(seed)
		p := randomParameters(r)
		if p.Construction == blkhash.FSVerity || p.Construction == blkhash.DMVerity {
			return
		}
		p.BlockSize = blkhash.MinBlockSize
		want := model(content, p)
		// Zeros at the ends are reported as zeros, in two parts.
		start := len(content) - len(bytes.TrimLeft(content, "\x00"))
		end := len(bytes.TrimRight(content, "\x00"))
		extents := func(yield func(blkhash.Extent, error) bool) {
			for _, cut := range [][2]int{{0, start / 2}, {start / 2, start}, {max(start, end), len(content)}} {
				if !yield(blkhash.Extent{Offset: int64(cut[0]), Length: int64(cut[1] - cut[0]), Zero: true}, nil) {
					return
				}
			}
		}
		got, err := blkhash.Sum(t.Context(), newReader(content), int64(len(content)), extents, p, blkhash.WithThreads(2))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%+v: %x, %v, not %x", p, got, err, want)
		}
		got, err = written(r, content, p)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%+v written: %x, %v, not %x", p, got, err, want)
		}
	})
}

// FuzzExtents takes extents as they come: they are refused, or cover data that reads as what it is.
func FuzzExtents(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 8, 0})
	content := bytes.Repeat(pattern(251), 40)
	want := model(content, blkhash.Parameters{BlockSize: blkhash.MinBlockSize})
	f.Fuzz(func(t *testing.T, list []byte) {
		zeros := false
		extents := func(yield func(blkhash.Extent, error) bool) {
			for rest := list; len(rest) > 2; rest = rest[3:] {
				e := blkhash.Extent{Offset: int64(int8(rest[0])) * 200, Length: int64(int8(rest[1])) * 100, Zero: rest[2]%4 == 0}
				zeros = zeros || e.Zero && e.Length > 0
				if !yield(e, nil) {
					return
				}
			}
		}
		got, err := blkhash.Sum(t.Context(), newReader(content), int64(len(content)), extents, blkhash.Parameters{BlockSize: blkhash.MinBlockSize})
		if err == nil && bytes.Equal(got, want) == zeros {
			t.Errorf("%x", got)
		}
	})
}

// FuzzState restores any state: it is refused, or hashes on.
func FuzzState(f *testing.F) {
	for _, p := range []blkhash.Parameters{{}, {Construction: blkhash.FSVerity}, {Algorithm: blkhash.BLAKE3, Construction: blkhash.Linear}} {
		h, err := blkhash.New(p)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := h.Write(pattern(100_000)); err != nil {
			f.Fatal(err)
		}
		state, err := h.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(state)
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		for _, p := range []blkhash.Parameters{{}, {Construction: blkhash.FSVerity}, {Algorithm: blkhash.BLAKE3, Construction: blkhash.Linear}} {
			h, err := blkhash.New(p, blkhash.WithThreads(1))
			if err != nil {
				t.Fatal(err)
			}
			if err := h.UnmarshalBinary(state); err != nil {
				continue
			}
			again, err := h.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			if err := h.WriteZeros(9000); err != nil {
				continue // the state may belong to content of nearly 2^63 bytes
			}
			first := h.Sum(nil)
			if err := h.UnmarshalBinary(again); err != nil {
				t.Fatalf("own state: %v", err)
			}
			if err := h.WriteZeros(9000); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(h.Sum(nil), first) {
				t.Error("another value after the same state")
			}
		}
	})
}
