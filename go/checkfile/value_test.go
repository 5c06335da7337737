package checkfile

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
)

// The digest of nothing.
const (
	emptyHex    = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	emptyBase64 = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
)

func TestValues(t *testing.T) {
	digest, _ := decodeHex(emptyHex)
	plain, parts := Value{Digest: digest}, Value{Digest: digest, Parts: 38}
	named := Value{Digest: digest, Algorithm: blkhash.SHA256}
	tag := PlainTag(blkhash.SHA256)
	flat := TagOf(blkhash.Parameters{Construction: blkhash.Flat})
	flat.Content.Partition = 1
	for text, want := range map[string]Value{
		emptyHex:                            plain,
		strings.ToUpper(emptyHex):           plain,
		emptyBase64:                         plain,
		strings.TrimRight(emptyBase64, "="): plain,
		"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU":          plain,
		"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=":         plain,
		"sha256:" + emptyHex:                                   named,
		"sha256:" + emptyBase64:                                named,
		"SHA256=" + emptyHex:                                   named,
		"sha_256=" + emptyHex:                                  named,
		" \"" + emptyBase64 + "\"\r\n":                         plain,
		"\"sha256:" + emptyHex + "\"":                          named,
		"sha256-" + emptyBase64:                                named,
		emptyBase64 + "-38":                                    parts,
		emptyHex + "-38":                                       parts,
		emptyHex + "  disk.img":                                {Digest: digest, Name: "disk.img"},
		"sha256:" + emptyHex + "  disk.img":                    {Digest: digest, Algorithm: blkhash.SHA256, Name: "disk.img"},
		"SHA256 (x) = " + emptyHex:                             {Digest: digest, Tag: &tag, Name: "x"},
		"SHA256 (x:y) = " + emptyHex + "\n":                    {Digest: digest, Tag: &tag, Name: "x:y"},
		"  " + emptyHex + " *a b ":                             {Digest: digest, Name: "a b"},
		"BLKSUM-SHA256-FLAT-64K/PARTITION=1 (x) = " + emptyHex: {Digest: digest, Tag: &flat, Name: "x"},
	} {
		if got, err := ParseValue(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	// 48 bytes of base64 are not read as 32 of hexadecimal digits, and the reverse.
	for text, size := range map[string]int{
		strings.Repeat("A", 64): 32, strings.Repeat("A", 63) + "z": 48, "00112233": 4,
		"AAAAAAAAAAA": 8,
	} {
		if got, err := ParseValue(text); err != nil || len(got.Digest) != size {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestOtherTextsAreNoValues(t *testing.T) {
	hex := strings.Repeat("0", 64)
	for _, text := range []string{
		"", " ", "sha256:", "disk.img", hex[1:], hex + "0", `""`, `"`, `"` + hex, hex + " " + hex, hex + "  " + hex,
		"sha512:" + hex, "sha256:" + hex[2:], "null:" + hex, "null:", "blake2b:" + hex, "md6:" + hex,
		"sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuF=", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuF",
		"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=", "47DEQpj8HBSa-/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
		"47DEQpj8HBSa+/TImW+5JC\neuQeRkm5NMpJWZG3hSuFU=", "47DEQpj8HBSa+/TImW+5JC\reuQeRkm5NMpJWZG3hSuFU=",
		"HQRJyTNl3EUd3wkR6dBbJQ==q+75Wwrehv+7mROytnBUSQ==", strings.Repeat("A", 63),
		hex + "-0", hex + "-01", hex + "-10001", hex + "-", hex + "-+1", "sha256:" + hex + "-2", "#" + hex,
		hex + "  x\n" + hex + "  y", hex + "  \xff", "BLKSUM-SHA256-FLAT (x) = " + hex,
	} {
		if got, err := ParseValue(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
	for _, v := range []Value{
		{}, {Digest: make([]byte, 33)}, {Digest: make([]byte, 32), Algorithm: "md6"},
		{Digest: make([]byte, 32), Parts: -1},
		{Digest: make([]byte, 32), Algorithm: "SHA256"}, {Digest: make([]byte, 32), Algorithm: blkhash.MD5},
		{Digest: make([]byte, 32), Tag: &Tag{Parameters: linear(blkhash.MD5)}},
	} {
		if v.Check() == nil {
			t.Errorf("%+v is valid", v)
		}
	}
}

func TestDigestsOfALength(t *testing.T) {
	for size, want := range map[int][]blkhash.Algorithm{
		0:  nil,
		4:  {blkhash.CRC32, blkhash.CRC32C},
		16: {blkhash.MD5}, // xxh128 can be forged
		20: {blkhash.SHA1},
		28: {blkhash.SHA224, blkhash.SHA512_224, blkhash.SHA3_224},
		32: {
			blkhash.SHA256, blkhash.BLAKE3, blkhash.BLAKE2b256, blkhash.SHA512_256, blkhash.SHA3_256, blkhash.BLAKE2s256,
		},
		33: nil,
		48: {blkhash.SHA384, blkhash.SHA3_384},
		64: {blkhash.SHA512, blkhash.BLAKE2b512, blkhash.SHA3_512},
	} {
		if got := digestsOfSize(size); !slices.Equal(got, want) {
			t.Errorf("%d: %v", size, got)
		}
	}
}
