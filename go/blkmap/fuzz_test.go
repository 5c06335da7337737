package blkmap_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/blkmap"
)

// FuzzOpen changes maps, and repairs their hashes so that more than the first one is looked at. Open must return a map
// or an error of the package, and all that a map has must be read without a panic.
func FuzzOpen(f *testing.F) {
	v := readVectors(f)
	var bases [][]byte
	for _, m := range v.Maps {
		if m.Length <= 65536 && m.BlockSize <= 65536 {
			bases = append(bases, build(m.Length, m.File))
		}
	}
	for i := range bases {
		f.Add(uint16(i), uint32(72), []byte{1}, true)
		f.Add(uint16(i), uint32(len(bases[i])-4096+96), []byte{1, 2}, true)
	}
	f.Fuzz(func(t *testing.T, base uint16, at uint32, change []byte, repair bool) {
		b := bytes.Clone(bases[int(base)%len(bases)])
		// Each 6 bytes are a place and two bytes there.
		copy(b[int(at)%len(b):], change[:min(len(change), 8)])
		for rest := change[min(len(change), 8):]; len(rest) >= 6; rest = rest[6:] {
			copy(b[int(binary.LittleEndian.Uint32(rest))%len(b):], rest[4:6])
		}
		if repair {
			repairCommit(b)
		}
		read(t, b)
	})
}

// repairCommit makes the hashes of the last commit match again, as far as its tables are in the file.
func repairCommit(b []byte) {
	if len(b) < 8192 {
		return
	}
	c := b[len(b)-4096:]
	header := sha256.Sum256(b[:4096])
	copy(c[144:], header[:])
	for i, entry := range []uint64{32, 32, 1} {
		offset, count := binary.LittleEndian.Uint64(c[88+16*i:]), binary.LittleEndian.Uint64(c[96+16*i:])
		if offset > uint64(len(b)) || count > uint64(len(b))/entry || offset+count*entry > uint64(len(b)) {
			continue
		}
		sum := sha256.Sum256(b[offset : offset+count*entry])
		copy(c[176+32*i:], sum[:])
	}
	id := append([]byte("blkmap content 1"), make([]byte, 16)...)
	id = append(id, b[32:352]...)
	id = append(id, c[48:56]...)
	id = append(id, c[272:304]...)
	if sum := sha256.Sum256(id); !bytes.Equal(c[432:464], make([]byte, 32)) {
		copy(c[432:], sum[:])
	}
	own := sha256.Sum256(c[:4064])
	copy(c[4064:], own[:])
}

// read uses everything of a map, if it is one.
func read(t *testing.T, b []byte) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	defer func() {
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20 {
			t.Errorf("%d bytes of memory for a file of %d", used, len(b))
		}
	}()
	if recovered, err := blkmap.Recover(bytes.NewReader(b), int64(len(b))); err == nil {
		size, _ := recovered.ImageSize()
		_, err := recovered.Continue(&file{}, size, blkmap.WriterOptions{Info: []byte("{}")})
		if err != nil && !isOurs(err) {
			t.Errorf("continue: %v", err)
		}
	}
	m, err := blkmap.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		if !isOurs(err) {
			t.Errorf("open: %v", err)
		}
		return
	}
	again, err := blkmap.Open(bytes.NewReader(b), int64(len(b)), blkmap.WithSequence(m.Sequence()))
	if err != nil || again.End() != m.End() {
		t.Errorf("open again: %v", err)
	}
	checked := m.Check(t.Context())
	if checked != nil && !isOurs(checked) {
		t.Errorf("check: %v", checked)
	}
	steps := 0
	for run, err := range m.Runs() {
		if err != nil {
			if checked == nil {
				t.Errorf("runs of a map that is checked: %v", err)
			}
			break
		}
		if _, err := m.Digest(run.Block); err != nil && checked == nil {
			t.Errorf("digest: %v", err)
		}
		if steps++; steps > 1000 {
			break
		}
	}
	for d, err := range blkmap.Diff(m, again) {
		if d.Kind != blkmap.Unknown && err == nil || err != nil && checked == nil {
			t.Errorf("a map differs from itself: %v, %v", d, err)
		}
	}
	if m.ZeroBlocks() > 1<<16 {
		return
	}
	for _, c := range []blkhash.Construction{blkhash.Streams(2), blkhash.FSVerity, blkhash.DMVerity, blkhash.Linear} {
		if _, err := m.Checksum(t.Context(), c); err != nil && !isOurs(err) {
			t.Errorf("%s: %v", c, err)
		}
	}
}

// FuzzWriter writes images, and reads them again.
func FuzzWriter(f *testing.F) {
	f.Add([]byte("\x01\x02\x03"), uint8(3), uint16(100), uint8(1), []byte("salt"), uint16(9000))
	f.Fuzz(func(t *testing.T, runs []byte, algorithm uint8, tail uint16, shift uint8, salt []byte, interval uint16) {
		all := blkhash.Algorithms()[1:]
		p := blkmap.Parameters{
			Algorithm: all[int(algorithm)%len(all)],
			BlockSize: 512 << (shift % 3),
			Salt:      salt[:min(len(salt), 256)],
		}
		var content []byte
		for i, n := range runs[:min(len(runs), 40)] {
			// Odd numbers are blocks of zeros.
			block := make([]byte, p.BlockSize)
			if n%2 == 0 {
				for j := range block {
					block[j] = byte(i + j*int(n))
				}
			}
			content = append(content, bytes.Repeat(block, int(n))...)
		}
		content = append(content, bytes.Repeat(salt, 1)...)
		content = append(content, make([]byte, int(tail)%p.BlockSize)...)
		o := blkmap.WriterOptions{Checkpoint: int64(interval)}
		b := create(t, content, p, o)
		m := open(t, b)
		if err := m.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		verified := m.Verify(t.Context(), bytes.NewReader(content), int64(len(content)), holes(content, 512))
		if list := differences(t, verified); list != nil {
			t.Fatalf("%v", list)
		}
		if !m.Complete() || m.ImageSize() != int64(len(content)) {
			t.Fatal("the map is not complete")
		}
		if sum, err := m.Checksum(t.Context(), blkhash.Flat); err == nil {
			want, err := blkhash.Sum(t.Context(), bytes.NewReader(content), int64(len(content)), nil,
				blkhash.Parameters{Algorithm: p.Algorithm, Construction: blkhash.Flat, BlockSize: p.BlockSize})
			if err != nil || !bytes.Equal(sum, want) {
				t.Fatalf("%x, not %x, %v", sum, want, err)
			}
		}
	})
}
