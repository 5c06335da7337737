package blkmap_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/blkmap"
)

// mapOfBytes returns a map of 1 MiB of one byte.
func mapOfBytes(t *testing.T, b byte) []byte {
	t.Helper()
	content := bytes.Repeat([]byte{b}, 1<<20)
	var out bytes.Buffer
	err := blkmap.Create(t.Context(), &out, bytes.NewReader(content), 1<<20, nil, blkmap.Parameters{}, blkmap.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestForgedRoot has a map with the root and the content id of another one.
func TestForgedRoot(t *testing.T) {
	one, other := mapOfBytes(t, 1), mapOfBytes(t, 2)
	from, to := one[len(one)-4096:], other[len(other)-4096:]
	copy(to[272:304], from[272:304])
	copy(to[432:464], from[432:464])
	sum := sha256.Sum256(to[:4064])
	copy(to[4064:], sum[:])
	left, err := blkmap.Open(bytes.NewReader(one), int64(len(one)))
	if err != nil {
		t.Fatal(err)
	}
	right, err := blkmap.Open(bytes.NewReader(other), int64(len(other)))
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range blkmap.Diff(left, right) {
	}
	if !errors.Is(err, blkmap.ErrDamaged) {
		t.Errorf("compared: %v", err)
	}
}

func TestVerifyRefusesInvalidExtents(t *testing.T) {
	file := mapOfBytes(t, 1)
	m, err := blkmap.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []blkhash.Extent{{Length: 1<<20 + 1, Zero: true}, {Length: 1<<63 - 1, Zero: true}, {Offset: 1, Length: -1}} {
		extents := func(yield func(blkhash.Extent, error) bool) { yield(e, nil) }
		var err error
		for _, err = range m.Verify(t.Context(), bytes.NewReader(make([]byte, 1<<20)), 1<<20, extents) {
		}
		if !errors.Is(err, blkhash.ErrExtents) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// TestVerifyEndsWithTheCause cancels while the differences are read.
func TestVerifyEndsWithTheCause(t *testing.T) {
	file := mapOfBytes(t, 1)
	m, err := blkmap.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("cause")
	for range 20 {
		ctx, cancel := context.WithCancelCause(t.Context())
		image := &cancels{cancel: func() { cancel(cause) }}
		var err error
		// One thread asks for more after the read that cancels. Others may have found the end before it.
		for _, err = range m.Verify(ctx, image, 1<<20, nil, blkhash.WithThreads(1)) {
		}
		if !errors.Is(err, cause) {
			t.Fatal(err)
		}
	}
}

// TestVerifyPanics has an image that panics, which comes to the caller.
func TestVerifyPanics(t *testing.T) {
	file := mapOfBytes(t, 1)
	m, err := blkmap.Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if value := recover(); value != "read" {
			t.Errorf("%v", value)
		}
	}()
	for _, err := range m.Verify(t.Context(), &cancels{cancel: func() { panic("read") }}, 1<<20, nil) {
		t.Error(err)
	}
}

// cancels is an image of zeros and ones in turn, and cancels when it is read.
type cancels struct{ cancel func() }

func (c *cancels) ReadAt(p []byte, offset int64) (int, error) {
	c.cancel()
	for i := range p {
		p[i] = byte((offset + int64(i)) >> 16 & 1)
	}
	return len(p), nil
}
