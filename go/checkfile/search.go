package checkfile

import (
	"slices"

	"github.com/blkhash/blkhash/go"
)

// oVirtBlockSize is the block size of the checksums of oVirt.
const oVirtBlockSize = 4 << 20

// row is what one pass over the content, or over the bytes of the file, computes. Its parameters are never none.
type row struct {
	bytes      bool
	parameters []blkhash.Parameters
}

// digests returns the digests that a value can be of, likeliest first.
func (o *Options) digests(v Value) []blkhash.Algorithm {
	candidates := digestsOfSize(len(v.Digest))
	switch {
	case v.Algorithm != "":
		candidates = []blkhash.Algorithm{v.Algorithm}
		if len(o.Algorithms) > 0 && !slices.Contains(o.Algorithms, v.Algorithm) {
			candidates = nil
		}
	case len(o.Algorithms) > 0:
		candidates = nil
		for _, a := range o.Algorithms {
			if a.Size() == len(v.Digest) && !slices.Contains(candidates, a) {
				candidates = append(candidates, a)
			}
		}
	}
	return candidates
}

// rows returns what a value without parts can be, likeliest and cheapest first. A row is needed only if none before it
// matches. docs/reference/check-file.md lists them.
func (o *Options) rows(v Value) []row {
	digests := o.digests(v)
	if len(digests) == 0 {
		return nil
	}
	first, others := digests[:1], digests[1:]
	overBlocks, otherKinds, linear := o.overBlocks(), o.otherKinds(), []blkhash.Parameters{}
	if o.Construction == "" {
		linear = append(linear, blkhash.Parameters{Construction: blkhash.Linear})
	}
	all := []row{
		{false, combine(first, overBlocks)},
		{false, combine(first, otherKinds)},
		{true, combine(first, linear)},
		{false, combine(others, slices.Concat(overBlocks, otherKinds))},
		{true, combine(others, linear)},
	}
	return slices.DeleteFunc(all, func(r row) bool { return len(r.parameters) == 0 })
}

// combine returns each kind with each digest.
func combine(digests []blkhash.Algorithm, kinds []blkhash.Parameters) []blkhash.Parameters {
	var all []blkhash.Parameters
	for _, a := range digests {
		for _, p := range kinds {
			p.Algorithm = a
			if p = p.WithDefaults(); p.Check() == nil {
				all = append(all, p)
			}
		}
	}
	return all
}

// overBlocks returns the constructions that one pass computes of the same digests of blocks.
func (o *Options) overBlocks() []blkhash.Parameters {
	constructions := []blkhash.Construction{o.Construction}
	if o.Construction == "" {
		// The numbers of streams are from the releases of the blksum in C.
		constructions = []blkhash.Construction{
			blkhash.Streams(4), blkhash.Streams(32), blkhash.Streams(64), blkhash.Flat, blkhash.Concat,
		}
	}
	kinds := make([]blkhash.Parameters, len(constructions))
	for i, c := range constructions {
		kinds[i] = blkhash.Parameters{Construction: c, BlockSize: o.BlockSize}
	}
	return kinds
}

func (o *Options) otherKinds() []blkhash.Parameters {
	if o.Construction != "" {
		return nil
	}
	kinds := []blkhash.Parameters{{Construction: blkhash.Linear}}
	if o.BlockSize == 0 {
		kinds = append(kinds, blkhash.Parameters{Construction: blkhash.Concat, BlockSize: oVirtBlockSize})
	}
	return kinds
}

// parts returns what a value of parts can be of a file with this many bytes. It returns false if no size of a part
// gives that number.
func (o *Options) parts(v Value, length int64) (row, bool) {
	size := o.BlockSize
	if size == 0 {
		size = blkhash.MinBlockSize
		for size < blkhash.MaxBlockSize && partsOf(length, size) > int64(v.Parts) {
			size *= 2
		}
	}
	if partsOf(length, size) != int64(v.Parts) {
		return row{}, false
	}
	parameters := combine(o.digests(v), []blkhash.Parameters{{Construction: blkhash.Concat, BlockSize: size}})
	return row{true, parameters}, len(parameters) > 0
}

func partsOf(length int64, size int) int64 {
	parts := length / int64(size)
	if length%int64(size) != 0 {
		parts++
	}
	return max(parts, 1)
}
