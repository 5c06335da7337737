package blkmap

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/blkhash/blkhash/go"
)

const (
	headerMagic = "\x89BLKMAP\n"
	version     = 1
	// saltAt is the offset of the salt in the header.
	saltAt = 96
)

// header is the first page of a map.
type header struct {
	Parameters
	fileID [16]byte
	// Looking these up for each block takes longer than everything else.
	size, entry int
	per         int64
}

func newHeader(p Parameters, fileID [16]byte) *header {
	return &header{p, fileID, p.digestSize(), p.entrySize(), p.PageBlocks()}
}

func (h *header) digestSize() int   { return h.size }
func (h *header) entrySize() int    { return h.entry }
func (h *header) PageBlocks() int64 { return h.per }

func (h *header) bytes() []byte {
	b := make([]byte, pageSize)
	le := binary.LittleEndian
	copy(b, headerMagic)
	le.PutUint32(b[8:], version)
	le.PutUint32(b[12:], pageSize)
	copy(b[16:], h.fileID[:])
	copy(b[32:64], h.Algorithm)
	le.PutUint32(b[64:], uint32(h.digestSize()))
	le.PutUint32(b[68:], uint32(h.entrySize()))
	le.PutUint32(b[72:], uint32(h.BlockSize))
	le.PutUint32(b[76:], pageSize)
	le.PutUint16(b[84:], uint16(len(h.Salt)))
	copy(b[saltAt:], h.Salt)
	return b
}

func parseHeader(b []byte) (*header, error) {
	le := binary.LittleEndian
	if string(b[:8]) != headerMagic {
		return nil, &reasonError{ErrNotMap, ErrNotMap.Error()}
	}
	if v := le.Uint32(b[8:]); v != version {
		return nil, errVersion(v)
	}
	name, _, _ := strings.Cut(string(b[32:64]), "\x00")
	// Only the name that is written is read, so that a map has one form.
	if !hasMaps(blkhash.Algorithm(name)) {
		return nil, fail(ErrUnsupported, "has digests %q, which are unknown", name)
	}
	blockSize := le.Uint32(b[72:])
	if blockSize > blkhash.MaxBlockSize || blkhash.CheckBlockSize(int(blockSize)) != nil {
		return nil, damaged(72, "a block size of %d", blockSize)
	}
	if le.Uint32(b[80:]) != 0 {
		return nil, fail(ErrUnsupported, "has digests with a key, which are not supported")
	}
	salt := int(le.Uint16(b[84:]))
	if salt > MaxSalt {
		return nil, damaged(84, "a salt of %d bytes", salt)
	}
	p := Parameters{blkhash.Algorithm(name), int(blockSize), bytes.Clone(b[saltAt : saltAt+salt])}
	h := newHeader(p, [16]byte(b[16:]))
	// Sizes, padding and reserved bytes have one value each.
	for i, want := range h.bytes() {
		if b[i] != want {
			return nil, damaged(int64(i), "a field of the header has another value")
		}
	}
	return h, nil
}

func errVersion(v uint32) error {
	return fail(ErrUnsupported, "has version %d of the format: only version %d is known", v, version)
}
