package blkmap

import (
	"context"

	"github.com/blkhash/blkhash/go"
)

// maxListedZeros limits the zero blocks that are hashed one by one. A small map can have any number of them.
const maxListedZeros = 1 << 32

// listedZeros is the number of zero blocks that are hashed one by one without a look at the context.
const listedZeros = 1 << 20

// ChecksumParameters returns the parameters of the checksum that [Map.Checksum] computes. It fails with
// [ErrUnsupported] if the construction needs other digests than the map's, or another size of the image.
// [blkhash.Linear] needs a CRC, and [blkhash.DMVerity] is the only one of salted digests.
func (m *Map) ChecksumParameters(c blkhash.Construction) (blkhash.Parameters, error) {
	h := m.header
	p := blkhash.Parameters{Algorithm: h.Algorithm, Construction: c, BlockSize: h.BlockSize}
	if c == blkhash.DMVerity {
		p.Salt = h.Salt
		if size := m.ImageSize(); size == 0 || size%int64(h.BlockSize) != 0 {
			return p, fail(ErrUnsupported, "dm-verity of %d bytes is not defined: it needs whole blocks of %d",
				size, h.BlockSize)
		}
	} else if len(h.Salt) > 0 {
		return p, fail(ErrUnsupported, "has salted digests, which only dm-verity has")
	}
	if c == blkhash.Linear && crcOf(h.Algorithm) == nil {
		return p, fail(ErrUnsupported, "linear of %s does not follow from digests of blocks: a CRC does", h.Algorithm)
	}
	if err := p.Check(); err != nil {
		return p, fail(ErrUnsupported, "%v", err)
	}
	return p.WithDefaults(), nil
}

// hasTrees returns whether dm-verity is defined for an algorithm: it is cryptographic, md5 or sha1.
func hasTrees(a blkhash.Algorithm) bool {
	return blkhash.Parameters{Algorithm: a, Construction: blkhash.DMVerity}.Check() == nil
}

// Checksum returns the checksum of the image with a construction, computed from the digests alone. It equals the
// checksum of [blkhash.Sum] with [Map.ChecksumParameters]. It fails with [ErrIncomplete] if the map does not know every
// block.
func (m *Map) Checksum(ctx context.Context, c blkhash.Construction) ([]byte, error) {
	if !m.Complete() {
		return nil, fail(ErrIncomplete, "knows only %d of %d blocks", m.Known(), m.Blocks())
	}
	p, err := m.ChecksumParameters(c)
	if err != nil {
		return nil, err
	}
	if c == blkhash.Linear {
		return m.linear(ctx)
	}
	if !hasTree(c) && m.ZeroBlocks() > maxListedZeros {
		return nil, fail(ErrUnsupported, "has more than %d zero blocks, too many for %s", int64(maxListedZeros), c)
	}
	fold, err := blkhash.NewFold(p)
	if err != nil {
		return nil, err
	}
	last := m.commit.blocks - 1
	pad := c == blkhash.FSVerity && m.ImageSize()%int64(m.header.BlockSize) != 0
	if pad && m.paddedLast() == nil {
		return nil, fail(ErrUnsupported, "does not have the padded last block of fs-verity")
	}
	part := int64(listedZeros)
	if hasTree(c) {
		part = m.commit.blocks
	}
	err = m.each(ctx, part, func(r blockRun) error {
		if r.kind == Zero {
			return fold.ZeroBlocks(r.count)
		}
		if pad && r.first+r.count > last {
			if err := fold.Blocks(r.digests[:len(r.digests)-m.header.digestSize()]); err != nil {
				return err
			}
			return fold.Blocks(m.paddedLast())
		}
		return fold.Blocks(r.digests)
	})
	if err != nil {
		return nil, err
	}
	return fold.Sum(m.ImageSize())
}

// hasTree returns whether runs of zeros cost next to nothing.
func hasTree(c blkhash.Construction) bool {
	return c == blkhash.FSVerity || c == blkhash.DMVerity
}

// each passes all blocks of a complete map to f, in runs of up to part blocks. It looks at ctx between them.
func (m *Map) each(ctx context.Context, part int64, f func(blockRun) error) error {
	b, err := m.blocksFrom(0)
	if err != nil {
		return err
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r, err := b.next(part)
		if err != nil {
			return err
		}
		if r.count == 0 {
			return nil
		}
		if err := f(r); err != nil {
			return err
		}
	}
}
