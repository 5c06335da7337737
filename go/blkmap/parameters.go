package blkmap

import (
	"bytes"
	"fmt"
	"math/bits"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/internal/zeros"
)

// MaxSalt is the length of the longest salt in bytes.
const MaxSalt = 256

// pageSize is the length of a page, of the header and of a commit.
const pageSize = 4096

// Parameters are the definition of the digests in a map. Maps with equal parameters can be compared.
type Parameters struct {
	// Algorithm is any but [blkhash.Null]. The default is blkhash's.
	Algorithm blkhash.Algorithm
	// BlockSize is a power of two from [blkhash.MinBlockSize] to [blkhash.MaxBlockSize], by default
	// [blkhash.DefaultBlockSize].
	BlockSize int
	// Salt is hashed before each block. It has up to MaxSalt bytes.
	Salt []byte
}

// ParametersOf returns the parameters of the map that a checksum with p fills when it has a [Writer] as its sink.
func ParametersOf(p blkhash.Parameters) (Parameters, error) {
	p = p.WithDefaults()
	if err := p.Check(); err != nil {
		return Parameters{}, err
	}
	if !p.Construction.HasBlocks() || p.Construction == blkhash.FSVerity && len(p.Salt) > 0 {
		return Parameters{}, fail(ErrUnsupported, "%s of %q has other digests than a map", p.Construction, p.Salt)
	}
	of := Parameters{Algorithm: p.Algorithm, BlockSize: p.BlockSize, Salt: p.Salt}
	return of, of.Check()
}

// WithDefaults returns the parameters with a value in each field but the salt.
func (p Parameters) WithDefaults() Parameters {
	if p.Algorithm == "" {
		p.Algorithm = blkhash.SHA256
	}
	if p.BlockSize == 0 {
		p.BlockSize = blkhash.DefaultBlockSize
	}
	return p
}

// Check returns an error if a field is not valid.
func (p Parameters) Check() error {
	p = p.WithDefaults()
	if !hasMaps(p.Algorithm) {
		return fail(ErrUnsupported, "has digests %q, which are unknown", string(p.Algorithm))
	}
	if err := blkhash.CheckBlockSize(p.BlockSize); err != nil {
		return fmt.Errorf("blkmap: %w", err)
	}
	if len(p.Salt) > MaxSalt {
		return fail(ErrUnsupported, "has a salt of %d bytes: %d are possible", len(p.Salt), MaxSalt)
	}
	return nil
}

// Equal returns whether both parameters mean the same digests.
func (p Parameters) Equal(other Parameters) bool {
	p, other = p.WithDefaults(), other.WithDefaults()
	return p.Algorithm == other.Algorithm && p.BlockSize == other.BlockSize && bytes.Equal(p.Salt, other.Salt)
}

// PageBlocks returns the number of blocks in a page, which is the unit of the parts of a map.
func (p Parameters) PageBlocks() int64 {
	return int64(pageSize / p.WithDefaults().entrySize())
}

func hasMaps(a blkhash.Algorithm) bool {
	for _, known := range blkhash.Algorithms() {
		if known == a {
			return a != blkhash.Null
		}
	}
	return false
}

func (p Parameters) digestSize() int { return p.Algorithm.Size() }

// entrySize returns the distance between digests in a page.
func (p Parameters) entrySize() int {
	return max(4, 1<<bits.Len(uint(p.digestSize()-1)))
}

// blocks returns the number of blocks of an image.
func (p Parameters) blocks(imageSize int64) int64 {
	return divideUp(imageSize, int64(p.BlockSize))
}

// pages returns the number of pages of an image.
func (p Parameters) pages(imageSize int64) int64 {
	return divideUp(p.blocks(imageSize), p.PageBlocks())
}

// appendDigest appends the digest of a block with zeros after it.
func (p Parameters) appendDigest(b, block []byte, behind int) []byte {
	h := p.Algorithm.New()
	h.Write(p.Salt)
	h.Write(block)
	zeros.Hash(h, int64(behind))
	return h.Sum(b)
}

// zeroDigest returns the digest of this many zeros.
func (p Parameters) zeroDigest(length int) []byte {
	return p.appendDigest(nil, nil, length)
}

// divideUp returns n / unit, rounded up. It does not overflow.
func divideUp(n, unit int64) int64 {
	quotient := n / unit
	if n%unit != 0 {
		quotient++
	}
	return quotient
}

// padding returns the number of bytes from a length to the next multiple of pageSize.
func padding(length int64) int64 {
	return -length & (pageSize - 1)
}
