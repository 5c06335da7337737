package blkhash_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/blkhash/blkhash/go"
)

// failsOnce is a sink that fails at the first short block.
type failsOnce struct {
	collected
	failed bool
}

func (f *failsOnce) ShortBlock([]byte) error {
	if f.failed {
		return nil
	}
	f.failed = true
	return io.ErrShortWrite
}

// TestFailureOfTheLastBlock has an error of a sink at the end, after which no checksum may come.
func TestFailureOfTheLastBlock(t *testing.T) {
	for _, c := range []blkhash.Construction{blkhash.Streams(4), blkhash.Flat, blkhash.Concat, blkhash.FSVerity} {
		h, err := blkhash.New(blkhash.Parameters{Construction: c}, blkhash.WithSink(&failsOnce{}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if sum, err := h.Close(); !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("%s: %x, %v", c, sum, err)
			}
		}
		if _, err := h.MarshalBinary(); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: state: %v", c, err)
		}
		if _, err := h.Write([]byte("abc")); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: write: %v", c, err)
		}
		if value := panicOf(func() { h.Sum(nil) }); value == nil {
			t.Errorf("%s: Sum does not panic", c)
		}
		h.Reset()
		if _, err := h.Write([]byte("abc")); err != nil {
			t.Errorf("%s: after Reset: %v", c, err)
		}
	}
}

// panicOf returns the value with which f panics.
func panicOf(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

type panics struct{}

func (panics) ReadAt([]byte, int64) (int, error) { panic("reader") }
func (panics) Blocks([]byte) error               { panic("sink") }
func (panics) ZeroBlocks(int64) error            { panic("sink") }

// TestPanics has functions of the caller that panic in any goroutine. The panic comes to the caller.
func TestPanics(t *testing.T) {
	content := pattern(20 << 20)
	size := int64(len(content))
	before := runtime.NumGoroutine()
	for _, threads := range []int{1, 2, 4} {
		sum := func(r io.ReaderAt, e blkhash.Extents, opts ...blkhash.Option) func() {
			return func() {
				_, _ = blkhash.Sum(t.Context(), r, size, e, blkhash.Parameters{}, append(opts, blkhash.WithThreads(threads))...)
			}
		}
		hasher := func() {
			h, err := blkhash.New(blkhash.Parameters{}, blkhash.WithSink(panics{}), blkhash.WithThreads(threads))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Write(content); err != nil {
				t.Error(err)
			}
			h.Sum(nil)
		}
		for want, f := range map[string]func(){
			"reader":   sum(panics{}, nil),
			"sink":     sum(newReader(content), nil, blkhash.WithSink(panics{})),
			"extents":  sum(newReader(content), func(func(blkhash.Extent, error) bool) { panic("extents") }),
			"progress": sum(newReader(content), nil, blkhash.WithProgress(func(int64, int64) { panic("progress") })),
		} {
			if value := panicOf(f); value != want {
				t.Errorf("%d threads, %s: %v", threads, want, value)
			}
		}
		if value := panicOf(hasher); value != "sink" {
			t.Errorf("%d threads, hasher: %v", threads, value)
		}
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines are left, of %d before", runtime.NumGoroutine(), before)
}

// TestDamagedStates changes each byte of states. They are refused, or hash on without a panic.
func TestDamagedStates(t *testing.T) {
	for _, a := range blkhash.Algorithms() {
		for _, c := range []blkhash.Construction{blkhash.Streams(2), blkhash.Linear} {
			p := blkhash.Parameters{Algorithm: a, Construction: c, BlockSize: 512}
			h, err := blkhash.New(p, blkhash.WithThreads(1))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Write(pattern(2100)); err != nil {
				t.Fatal(err)
			}
			state, err := h.MarshalBinary()
			if err != nil {
				continue
			}
			for i := range state {
				for _, change := range []byte{1, 0xff} {
					damaged := bytes.Clone(state)
					damaged[i] ^= change
					if h.UnmarshalBinary(damaged) != nil {
						continue
					}
					_, _ = h.Write(pattern(3000))
					if len(h.Sum(nil)) != a.Size() {
						t.Errorf("%s: byte %d gives a checksum of another length", a, i)
					}
				}
			}
		}
	}
}

// TestLargeStates has states that claim much content and hold little.
func TestLargeStates(t *testing.T) {
	p := blkhash.Parameters{Construction: blkhash.FSVerity, BlockSize: blkhash.MaxBlockSize}
	h, err := blkhash.New(p, blkhash.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.WriteZeros(math.MaxInt64 - blkhash.MaxBlockSize + 1); err != nil {
		t.Fatal(err)
	}
	state, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 1000, len(state) / 2} {
		if h.UnmarshalBinary(state[:len(state)-cut]) == nil {
			t.Errorf("a state without its last %d bytes is accepted", cut)
		}
	}
	if err := h.UnmarshalBinary(state); err != nil {
		t.Error(err)
	}
}

func TestFilesWithoutSize(t *testing.T) {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		t.Skip("skipped: there is no procfs")
	}
	defer func() { _ = f.Close() }()
	if sum, err := blkhash.SumFile(t.Context(), f, blkhash.Parameters{}); err == nil {
		t.Errorf("%x", sum)
	}
}

func TestFilesThatChange(t *testing.T) {
	name := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(name, pattern(8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // a tick of the clock of the file system
	changed := false
	sum, err := blkhash.SumFile(t.Context(), f, blkhash.Parameters{}, blkhash.WithThreads(1), blkhash.WithProgress(func(int64, int64) {
		if !changed {
			changed = true
			if _, err := f.WriteAt([]byte("new"), 0); err != nil {
				t.Error(err)
			}
			if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
				t.Error(err)
			}
		}
	}))
	if !errors.Is(err, blkhash.ErrChanged) {
		t.Errorf("%x, %v", sum, err)
	}
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	extents := blkhash.FileExtents(f, info.Size())
	if sum, err := blkhash.Sum(t.Context(), f, info.Size(), extents, blkhash.Parameters{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: %x, %v", sum, err)
	}
}

// TestEndlessExtents ends by its context.
func TestEndlessExtents(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	endless := func(yield func(blkhash.Extent, error) bool) {
		for yield(blkhash.Extent{}, nil) {
		}
	}
	if _, err := blkhash.Sum(ctx, nil, 1, endless, blkhash.Parameters{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
