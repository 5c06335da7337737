package digests

import (
	"hash"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/xxh3"
)

// xxh64 adds Clone to the hash of its library, which is a plain value.
type xxh64 struct{ *xxhash.Digest }

func newXXH64() hash.Hash { return xxh64{xxhash.New()} }

func (h xxh64) Clone() (hash.Cloner, error) {
	copied := *h.Digest
	return xxh64{&copied}, nil
}

// xxh3x64 is the XXH3 with 64 bits. Its library cannot save the state.
type xxh3x64 struct{ *xxh3.Hasher }

func newXXH3() hash.Hash { return xxh3x64{xxh3.New()} }

func (h xxh3x64) Clone() (hash.Cloner, error) {
	copied := *h.Hasher
	return xxh3x64{&copied}, nil
}

// xxh3x128 is the XXH3 with 128 bits.
type xxh3x128 struct{ *xxh3.Hasher }

func newXXH128() hash.Hash { return xxh3x128{xxh3.New()} }

func (h xxh3x128) Size() int { return 16 }

func (h xxh3x128) Sum(b []byte) []byte {
	sum := h.Sum128().Bytes()
	return append(b, sum[:]...)
}

func (h xxh3x128) Clone() (hash.Cloner, error) {
	copied := *h.Hasher
	return xxh3x128{&copied}, nil
}
