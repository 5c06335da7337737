package checkfile

import (
	"cmp"
	"slices"

	"github.com/blkhash/blkhash/go"
)

// digestsOfSize returns the digests of a length in bytes, the most common ones first. A checksum that anyone can forge
// is none of them where a cryptographic digest has that length: it would take less to match it.
func digestsOfSize(size int) []blkhash.Algorithm {
	return bySize[size]
}

var bySize = func() map[int][]blkhash.Algorithm {
	sizes := map[int][]blkhash.Algorithm{}
	for _, a := range blkhash.Algorithms() {
		if size := a.Size(); size > 0 {
			sizes[size] = append(sizes[size], a)
		}
	}
	for size, all := range sizes {
		if slices.ContainsFunc(all, isHard) {
			all = slices.DeleteFunc(all, func(a blkhash.Algorithm) bool { return !isHard(a) })
		}
		slices.SortStableFunc(all, func(a, b blkhash.Algorithm) int { return cmp.Compare(rank(a), rank(b)) })
		sizes[size] = all
	}
	return sizes
}()

// isHard returns whether it takes an attack on a digest to give other content its value. For md5 and sha1 it needs two
// chosen contents.
func isHard(a blkhash.Algorithm) bool {
	return a.Cryptographic() || a == blkhash.MD5 || a == blkhash.SHA1
}

// rank returns the place of a digest among the most common ones in check files.
func rank(a blkhash.Algorithm) int {
	if i := slices.Index(common, a); i >= 0 {
		return i
	}
	return len(common)
}

var common = []blkhash.Algorithm{
	blkhash.MD5, blkhash.SHA1, blkhash.CRC32, blkhash.SHA256, blkhash.SHA384, blkhash.SHA512, blkhash.BLAKE2b512,
	blkhash.BLAKE3, blkhash.BLAKE2b256,
}
