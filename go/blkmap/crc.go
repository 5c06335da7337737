package blkmap

import (
	"context"
	"encoding/binary"
	"math/bits"

	"github.com/blkhash/blkhash/go"
)

// crc joins the CRCs of neighbouring contents. A CRC is a polynomial over GF(2) with the coefficient of the highest
// power in the lowest bit.
type crc struct {
	width      int
	polynomial uint64
	// reversed is set if digests have the highest power in the highest bit.
	reversed bool
}

var crcs = map[blkhash.Algorithm]*crc{
	blkhash.CRC32:     {width: 32, polynomial: 0xedb88320},
	blkhash.CRC32C:    {width: 32, polynomial: 0x82f63b78},
	blkhash.CRC64:     {width: 64, polynomial: bits.Reverse64(0x42f0e1eba9ea3693), reversed: true},
	blkhash.CRC64NVME: {width: 64, polynomial: 0x9a6c9329ac4bc9b5},
}

// crcOf returns nil if a digest is no CRC.
func crcOf(a blkhash.Algorithm) *crc { return crcs[a] }

func (c *crc) parse(digest []byte) uint64 {
	if c.width == 32 {
		return uint64(binary.BigEndian.Uint32(digest))
	}
	n := binary.BigEndian.Uint64(digest)
	if c.reversed {
		n = bits.Reverse64(n)
	}
	return n
}

func (c *crc) digest(n uint64) []byte {
	if c.width == 32 {
		return binary.BigEndian.AppendUint32(nil, uint32(n))
	}
	if c.reversed {
		n = bits.Reverse64(n)
	}
	return binary.BigEndian.AppendUint64(nil, n)
}

// multiply returns the product of two polynomials modulo the polynomial of the CRC.
func (c *crc) multiply(a, b uint64) uint64 {
	var product uint64
	for bit := uint64(1) << (c.width - 1); bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		carry := b & 1
		b = b>>1 ^ -carry&c.polynomial
	}
	return product
}

// shift returns the factor by which length bytes of other content move what is before them: x^(8*length).
func (c *crc) shift(length int64) uint64 {
	// x^0 is the highest bit.
	factor := uint64(1) << (c.width - 1)
	for square := factor >> 8; length != 0; length >>= 1 {
		if length&1 != 0 {
			factor = c.multiply(factor, square)
		}
		square = c.multiply(square, square)
	}
	return factor
}

// repeat returns the CRC of n times the same content of length bytes, n from 1 on, and the shift of all of it.
func (c *crc) repeat(sum uint64, length, n int64) (whole, factor uint64) {
	factor = uint64(1) << (c.width - 1)
	for shift := c.shift(length); n != 0; n >>= 1 {
		if n&1 != 0 {
			whole = c.multiply(whole, shift) ^ sum
			factor = c.multiply(factor, shift)
		}
		sum ^= c.multiply(sum, shift)
		shift = c.multiply(shift, shift)
	}
	return whole, factor
}

// linear returns the CRC of the image.
//
// The CRCs with an initial value of all ones are complemented at the end as well. The CRC of joined contents is then
// the sum of the last one's and the one before, shifted.
func (m *Map) linear(ctx context.Context) ([]byte, error) {
	c := crcOf(m.header.Algorithm)
	size, blockSize := m.header.digestSize(), int64(m.header.BlockSize)
	whole := c.shift(blockSize)
	var sum uint64
	err := m.each(ctx, m.commit.blocks, func(r blockRun) error {
		if r.kind == Zero {
			zeros, factor := c.repeat(c.parse(m.zero()), blockSize, r.count)
			sum = c.multiply(sum, factor) ^ zeros
			return nil
		}
		for i := range r.count {
			factor := whole
			if length := m.lengthOf(r.first + i); length < blockSize {
				factor = c.shift(length)
			}
			sum = c.multiply(sum, factor) ^ c.parse(r.digests[int(i)*size:int(i+1)*size])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.digest(sum), nil
}
