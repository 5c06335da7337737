// Package digests is the table of digest algorithms. Each hash in it implements [hash.Cloner].
package digests

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"hash"
	"hash/crc32"

	"github.com/minio/crc64nvme"
	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/blake2s"
)

// Strength is the protection that a digest gives.
type Strength int

// The strengths. A broken digest was designed as a cryptographic one, but collisions are known.
const (
	None Strength = iota
	ErrorDetection
	Broken
	Cryptographic
)

// A Row describes an algorithm.
type Row struct {
	Name     string
	Aliases  []string
	Size     int
	Strength Strength
	New      func() hash.Hash
}

// Table has all algorithms, from no digest to the strongest.
var Table = []Row{
	{"null", nil, 0, None, newNull},
	{"crc32", []string{"crc-32"}, 4, ErrorDetection, func() hash.Hash { return crc32.NewIEEE() }},
	{"crc32c", []string{"crc-32c"}, 4, ErrorDetection, func() hash.Hash { return crc32.New(castagnoli) }},
	{"crc64", []string{"crc64-ecma", "crc-64"}, 8, ErrorDetection, newCRC64},
	{"crc64nvme", []string{"crc64-nvme"}, 8, ErrorDetection, marshaled(func() hash.Hash { return crc64nvme.New() })},
	{"xxh64", []string{"xxhash", "xxhash64"}, 8, ErrorDetection, newXXH64},
	{"xxh3", []string{"xxh3-64"}, 8, ErrorDetection, newXXH3},
	{"xxh128", []string{"xxh3-128"}, 16, ErrorDetection, newXXH128},
	{"md5", nil, 16, Broken, md5.New},
	{"sha1", []string{"sha-1"}, 20, Broken, sha1.New},
	{"sha224", []string{"sha-224", "sha2-224"}, 28, Cryptographic, sha256.New224},
	{"sha256", []string{"sha-256", "sha2-256"}, 32, Cryptographic, sha256.New},
	{"sha384", []string{"sha-384", "sha2-384"}, 48, Cryptographic, sha512.New384},
	{"sha512", []string{"sha-512", "sha2-512"}, 64, Cryptographic, sha512.New},
	{"sha512-224", []string{"sha512/224"}, 28, Cryptographic, sha512.New512_224},
	{"sha512-256", []string{"sha512/256"}, 32, Cryptographic, sha512.New512_256},
	{"sha3-224", nil, 28, Cryptographic, func() hash.Hash { return sha3.New224() }},
	{"sha3-256", nil, 32, Cryptographic, func() hash.Hash { return sha3.New256() }},
	{"sha3-384", nil, 48, Cryptographic, func() hash.Hash { return sha3.New384() }},
	{"sha3-512", nil, 64, Cryptographic, func() hash.Hash { return sha3.New512() }},
	{"blake2b256", []string{"blake2b-256"}, 32, Cryptographic, marshaled(withoutKey(blake2b.New256))},
	{"blake2b512", []string{"blake2b-512"}, 64, Cryptographic, marshaled(withoutKey(blake2b.New512))},
	{"blake2s256", []string{"blake2s-256", "blake2s"}, 32, Cryptographic, marshaled(withoutKey(blake2s.New256))},
	{"blake3", []string{"blake3-256"}, 32, Cryptographic, newBLAKE3},
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var byName = func() map[string]*Row {
	rows := map[string]*Row{}
	for i := range Table {
		rows[Table[i].Name] = &Table[i]
	}
	return rows
}()

// Get returns the row with this name, or nil.
func Get(name string) *Row { return byName[name] }

// Find returns the row with this name or alias, or nil.
func Find(name string) *Row {
	if row := Get(name); row != nil {
		return row
	}
	for i := range Table {
		row := &Table[i]
		for _, alias := range row.Aliases {
			if alias == name {
				return row
			}
		}
	}
	return nil
}

// withoutKey adapts the constructors of golang.org/x/crypto, which fail only for a key that is too long.
func withoutKey(newHash func(key []byte) (hash.Hash, error)) func() hash.Hash {
	return func() hash.Hash {
		h, err := newHash(nil)
		if err != nil {
			panic(err)
		}
		return h
	}
}

// null is the empty digest of any input.
type null struct{}

func newNull() hash.Hash { return null{} }

func (null) Write(p []byte) (int, error)    { return len(p), nil }
func (null) Sum(b []byte) []byte            { return b }
func (null) Reset()                         {}
func (null) Size() int                      { return 0 }
func (null) BlockSize() int                 { return 1 }
func (null) Clone() (hash.Cloner, error)    { return null{}, nil }
func (null) MarshalBinary() ([]byte, error) { return nil, nil }
func (null) UnmarshalBinary([]byte) error   { return nil }
