package digests

import (
	"encoding/binary"
	"errors"
	"hash"
)

// crc64 is the CRC-64/ECMA-182 of the Linux kernel: the highest bit first, and an initial value of 0. The one of the
// standard library is reflected.
type crc64 uint64

const crc64Polynomial = 0x42f0e1eba9ea3693

// crc64Tables[k][b] is the CRC of the byte b with k zero bytes after it.
var crc64Tables = func() (tables [8][256]uint64) {
	for b := range tables[0] {
		crc := uint64(b) << 56
		for range 8 {
			carry := crc >> 63
			crc = crc<<1 ^ carry*crc64Polynomial
		}
		tables[0][b] = crc
	}
	for k := 1; k < len(tables); k++ {
		for b, crc := range tables[k-1] {
			tables[k][b] = crc<<8 ^ tables[0][crc>>56]
		}
	}
	return tables
}()

func newCRC64() hash.Hash { return new(crc64) }

func (h *crc64) Write(p []byte) (int, error) {
	n := len(p)
	crc, t := uint64(*h), &crc64Tables
	for len(p) >= 8 {
		crc ^= binary.BigEndian.Uint64(p)
		crc = t[7][crc>>56] ^ t[6][crc>>48&0xff] ^ t[5][crc>>40&0xff] ^ t[4][crc>>32&0xff] ^
			t[3][crc>>24&0xff] ^ t[2][crc>>16&0xff] ^ t[1][crc>>8&0xff] ^ t[0][crc&0xff]
		p = p[8:]
	}
	for _, b := range p {
		crc = crc<<8 ^ t[0][byte(crc>>56)^b]
	}
	*h = crc64(crc)
	return n, nil
}

func (h *crc64) Sum(b []byte) []byte { return binary.BigEndian.AppendUint64(b, uint64(*h)) }
func (h *crc64) Reset()              { *h = 0 }
func (h *crc64) Size() int           { return 8 }
func (h *crc64) BlockSize() int      { return 1 }

func (h *crc64) Clone() (hash.Cloner, error) {
	copied := *h
	return &copied, nil
}

func (h *crc64) MarshalBinary() ([]byte, error) { return h.Sum(nil), nil }

func (h *crc64) UnmarshalBinary(state []byte) error {
	if len(state) != 8 {
		return errors.New("crc64: invalid state")
	}
	*h = crc64(binary.BigEndian.Uint64(state))
	return nil
}
