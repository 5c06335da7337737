package blkhash

import (
	"bytes"
	"fmt"
	"math/bits"

	"github.com/blkhash/blkhash/go/internal/digests"
)

// The limits of block sizes, and the default one.
const (
	MinBlockSize     = 512
	MaxBlockSize     = 64 << 20
	DefaultBlockSize = 64 << 10
)

const (
	verityBlockSize    = 4096
	maxSaltOfFSVerity  = 32
	maxSaltOfDMVerity  = 256
	sizeOfFSDescriptor = 256
)

// Parameters determine the value of a checksum, together with the content. Fields that are not set have the defaults
// of blksum: sha256, streams:4 and blocks of 64 KiB, or of 4 KiB with [FSVerity] and [DMVerity].
type Parameters struct {
	Algorithm    Algorithm
	Construction Construction
	// BlockSize is a power of two from MinBlockSize to MaxBlockSize. Linear has no blocks and ignores it.
	BlockSize int
	// Salt is up to 32 bytes with FSVerity and up to 256 with DMVerity. Other constructions have none.
	Salt []byte
}

// WithDefaults returns the parameters with a value in each field. Equal parameters are then equal in all fields.
func (p Parameters) WithDefaults() Parameters {
	if p.Algorithm == "" {
		p.Algorithm = SHA256
	}
	if p.Construction == "" {
		p.Construction = Streams(4)
	}
	switch {
	case p.Construction == Linear:
		p.BlockSize = 0
	case p.BlockSize != 0:
	case p.Construction == FSVerity || p.Construction == DMVerity:
		p.BlockSize = verityBlockSize
	default:
		p.BlockSize = DefaultBlockSize
	}
	if len(p.Salt) == 0 {
		p.Salt = nil
	}
	return p
}

// Equal returns whether both parameters give the same checksum of any content.
func (p Parameters) Equal(other Parameters) bool {
	p, other = p.WithDefaults(), other.WithDefaults()
	return p.Algorithm == other.Algorithm && p.Construction == other.Construction && p.BlockSize == other.BlockSize &&
		bytes.Equal(p.Salt, other.Salt)
}

// Check returns an error if a field is not valid, or the construction is not defined for the digest.
func (p Parameters) Check() error {
	p = p.WithDefaults()
	if err := p.Algorithm.check(); err != nil {
		return err
	}
	if err := p.Construction.check(); err != nil {
		return err
	}
	if p.Construction.HasBlocks() {
		if err := CheckBlockSize(p.BlockSize); err != nil {
			return err
		}
	}
	longest := 0
	switch p.Construction {
	case FSVerity:
		longest = maxSaltOfFSVerity
		if p.Algorithm != SHA256 && p.Algorithm != SHA512 {
			return fmt.Errorf("blkhash: fs-verity is not defined for %s: use sha256 or sha512", p.Algorithm)
		}
	case DMVerity:
		longest = maxSaltOfDMVerity
		if p.Algorithm.row().Strength < digests.Broken {
			return fmt.Errorf("blkhash: dm-verity is not defined for %s: use a cryptographic digest", p.Algorithm)
		}
	}
	if len(p.Salt) > longest {
		return fmt.Errorf("blkhash: salt of %d bytes: %s has at most %d", len(p.Salt), p.Construction, longest)
	}
	return nil
}

// CheckBlockSize returns an error if size is not a valid block size.
func CheckBlockSize(size int) error {
	if size < MinBlockSize || size > MaxBlockSize || bits.OnesCount(uint(size)) != 1 {
		return fmt.Errorf("blkhash: invalid block size %d: use a power of two from %d to %d",
			size, MinBlockSize, MaxBlockSize)
	}
	return nil
}

// checkLength returns an error if the checksum of content of this length is not defined. dm-verity has whole blocks.
func (p Parameters) checkLength(length int64) error {
	if p.Construction == DMVerity && (length == 0 || length%int64(p.BlockSize) != 0) {
		return fmt.Errorf("blkhash: dm-verity of %d bytes is not defined: use whole blocks of %d, and one at least",
			length, p.BlockSize)
	}
	return nil
}
