package blkmap_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/blkhash/blkhash/go/blkmap"
)

// TestVerdictOfCommand damages maps at random, repairs their hashes, and compares the full check with `blkhash map
// check`.
func TestVerdictOfCommand(t *testing.T) {
	run := command(t)
	v := readVectors(t)
	t.Chdir(t.TempDir())
	r := newRandom(9)
	accepted, refused := 0, 0
	for n := range 8 * cases(t) {
		m := v.Maps[r.IntN(len(v.Maps))]
		if m.Length > 65536 || m.BlockSize > 65536 {
			continue
		}
		b := build(m.Length, m.File)
		for range 1 + r.IntN(2) {
			damage(r, b)
		}
		repairCommit(b)
		if err := os.WriteFile("map", b, 0o600); err != nil {
			t.Fatal(err)
		}
		opened, err := blkmap.Open(bytes.NewReader(b), m.Length)
		if err == nil {
			err = opened.Check(t.Context())
		}
		_, status := run("check", "map")
		if (status == 0) != (err == nil) {
			kept := filepath.Join(os.TempDir(), fmt.Sprintf("verdict-%d.blkmap", n))
			if err := os.WriteFile(kept, b, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Errorf("%s: status %d, but %v: %s", m.Name, status, err, kept)
		}
		if err == nil {
			accepted++
		} else {
			refused++
		}
	}
	t.Logf("%d accepted, %d refused", accepted, refused)
}

// damage changes bytes that matter: in the header, the commit, and the tables.
func damage(r random, b []byte) {
	at := 0
	switch r.IntN(4) {
	case 0:
		at = r.IntN(360)
	case 1:
		at = len(b) - 4096 + r.IntN(520)
	case 2:
		at = r.IntN(len(b))
	case 3:
		at = r.IntN(len(b)/4096)*4096 + r.IntN(130)
	}
	switch r.IntN(3) {
	case 0:
		b[at] = byte(r.Uint32())
	case 1:
		b[at] += byte(1 - 2*r.IntN(2))
	case 2:
		b[at] ^= 1 << r.IntN(8)
	}
}
