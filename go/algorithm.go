//lint:file-ignore ST1003 SHA512_256 and SHA3_256 are the names of package crypto.

package blkhash

import (
	"fmt"
	"hash"
	"strings"

	"github.com/blkhash/blkhash/go/internal/digests"
)

// An Algorithm is the name of a digest algorithm, as `blksum --list-digests` prints it.
type Algorithm string

// The algorithms. Null is for measurements: its digest is empty.
const (
	Null       Algorithm = "null"
	CRC32      Algorithm = "crc32"
	CRC32C     Algorithm = "crc32c"
	CRC64      Algorithm = "crc64"
	CRC64NVME  Algorithm = "crc64nvme"
	XXH64      Algorithm = "xxh64"
	XXH3       Algorithm = "xxh3"
	XXH128     Algorithm = "xxh128"
	MD5        Algorithm = "md5"
	SHA1       Algorithm = "sha1"
	SHA224     Algorithm = "sha224"
	SHA256     Algorithm = "sha256"
	SHA384     Algorithm = "sha384"
	SHA512     Algorithm = "sha512"
	SHA512_224 Algorithm = "sha512-224"
	SHA512_256 Algorithm = "sha512-256"
	SHA3_224   Algorithm = "sha3-224"
	SHA3_256   Algorithm = "sha3-256"
	SHA3_384   Algorithm = "sha3-384"
	SHA3_512   Algorithm = "sha3-512"
	BLAKE2b256 Algorithm = "blake2b256"
	BLAKE2b512 Algorithm = "blake2b512"
	BLAKE2s256 Algorithm = "blake2s256"
	BLAKE3     Algorithm = "blake3"
)

// Algorithms returns all algorithms, from no digest to the strongest.
func Algorithms() []Algorithm {
	all := make([]Algorithm, len(digests.Table))
	for i, row := range digests.Table {
		all[i] = Algorithm(row.Name)
	}
	return all
}

// ParseAlgorithm returns the algorithm with a name or another spelling of it: capitals, `_` for `-`, or an alias
// such as "sha-256".
func ParseAlgorithm(name string) (Algorithm, error) {
	wanted := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	if wanted == "blake2b" {
		return "", fmt.Errorf("blkhash: digest %q has two lengths: use blake2b512 or blake2b256", name)
	}
	if row := digests.Find(wanted); row != nil {
		return Algorithm(row.Name), nil
	}
	return "", unknownAlgorithm(name)
}

// New returns a hash with this algorithm. It panics if the algorithm is unknown.
//
// The hash implements [hash.Cloner]. It implements [encoding.BinaryMarshaler] too, except for [XXH3] and [XXH128].
func (a Algorithm) New() hash.Hash {
	return a.row().New()
}

// Size returns the length of a digest in bytes. It panics if the algorithm is unknown.
func (a Algorithm) Size() int {
	return a.row().Size
}

// Cryptographic returns whether the digest detects attacks. No other content with the same digest is known, or can be
// made.
func (a Algorithm) Cryptographic() bool {
	row := digests.Get(string(a))
	return row != nil && row.Strength == digests.Cryptographic
}

// check returns an error if the algorithm is unknown.
func (a Algorithm) check() error {
	if digests.Get(string(a)) == nil {
		return unknownAlgorithm(string(a))
	}
	return nil
}

func (a Algorithm) row() *digests.Row {
	row := digests.Get(string(a))
	if row == nil {
		panic(unknownAlgorithm(string(a)))
	}
	return row
}

func unknownAlgorithm(name string) error {
	return fmt.Errorf("blkhash: unknown digest %q: ParseAlgorithm takes other spellings of the names in Algorithms", name)
}
