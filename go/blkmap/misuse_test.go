package blkmap_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/blkmap"
)

// TestAppendFindsTheEnd appends to a file whose offset is at its start.
func TestAppendFindsTheEnd(t *testing.T) {
	name := filepath.Join(t.TempDir(), "map")
	if err := os.WriteFile(name, mapOfBytes(t, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	open := func() *blkmap.Map {
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		m, err := blkmap.Open(file, info.Size())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	w, err := blkmap.Append(open(), file, 1<<20, blkmap.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Read(t.Context(), bytes.NewReader(bytes.Repeat([]byte{2}, 1<<20)), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	if err := blkmap.AppendSeal(open(), file, bytes.Repeat([]byte{7}, 32)); err != nil {
		t.Fatal(err)
	}
	m := open()
	if err := m.Check(t.Context()); err != nil || m.Sequence() != 3 {
		t.Errorf("commit %d, %v", m.Sequence(), err)
	}
}

// TestSinksOfOtherDigests passes digests to a map of others.
func TestSinksOfOtherDigests(t *testing.T) {
	for _, p := range []blkhash.Parameters{
		{Algorithm: blkhash.BLAKE3}, {BlockSize: 4096}, {Construction: blkhash.DMVerity, BlockSize: 65536, Salt: []byte{1}},
	} {
		w, err := blkmap.NewWriter(&bytes.Buffer{}, 1<<20, blkmap.Parameters{}, blkmap.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := blkhash.New(p, blkhash.WithSink(w)); !errors.Is(err, blkmap.ErrMismatch) {
			t.Errorf("%+v: hasher: %v", p, err)
		}
		content := bytes.NewReader(make([]byte, 1<<20))
		if _, err := blkhash.Sum(t.Context(), content, 1<<20, nil, p, blkhash.WithSink(w)); !errors.Is(err, blkmap.ErrMismatch) {
			t.Errorf("%+v: sum: %v", p, err)
		}
	}
}
