package checkfile

import (
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
)

func image(a blkhash.Algorithm, c blkhash.Construction, size int, salt ...byte) Tag {
	return TagOf(blkhash.Parameters{Algorithm: a, Construction: c, BlockSize: size, Salt: salt})
}

func TestTags(t *testing.T) {
	withContent := image(blkhash.SHA512, blkhash.DMVerity, 65536, 0x5a)
	withContent.Content = Content{Snapshot: "a-b", HasSnapshot: true, Partition: 2}
	for text, tag := range map[string]Tag{
		"BLKSUM-SHA256-STREAMS4-64K":                                 TagOf(blkhash.Parameters{}),
		"BLKSUM-BLAKE2B256-CONCAT-4M":                                image(blkhash.BLAKE2b256, blkhash.Concat, 4<<20),
		"BLKSUM-SHA512-256-FLAT-512":                                 image(blkhash.SHA512_256, blkhash.Flat, 512),
		"BLKSUM-SHA3-256-STREAMS128-1K":                              image(blkhash.SHA3_256, blkhash.Streams(128), 1024),
		"BLKSUM-SHA3-512-LINEAR":                                     image(blkhash.SHA3_512, blkhash.Linear, 0),
		"BLKSUM-SHA256-FSVERITY-4K":                                  image(blkhash.SHA256, blkhash.FSVerity, 4096),
		"BLKSUM-SHA1-DMVERITY-512":                                   image(blkhash.SHA1, blkhash.DMVerity, 512),
		"BLKSUM-SHA512-FSVERITY-64K-SALT00ff":                        image(blkhash.SHA512, blkhash.FSVerity, 65536, 0, 0xff),
		"BLKSUM-SHA512-DMVERITY-64K-SALT5a":                          image(blkhash.SHA512, blkhash.DMVerity, 65536, 0x5a),
		"BLKSUM-SHA512-DMVERITY-64K-SALT5a/SNAPSHOT=a-b/PARTITION=2": withContent,
		"SHA256":      PlainTag(blkhash.SHA256),
		"MD5":         PlainTag(blkhash.MD5),
		"SHA3-256":    PlainTag(blkhash.SHA3_256),
		"BLAKE2b":     PlainTag(blkhash.BLAKE2b512),
		"BLAKE2b-256": PlainTag(blkhash.BLAKE2b256),
		"BLAKE2s-256": PlainTag(blkhash.BLAKE2s256),
		"BLAKE3":      PlainTag(blkhash.BLAKE3),
		"XXH64":       PlainTag(blkhash.XXH64),
		"CRC64NVME":   PlainTag(blkhash.CRC64NVME),
	} {
		got, err := ParseTag(text)
		if err != nil || !got.Equal(tag) || tag.String() != text || tag.Check() != nil {
			t.Errorf("%s: %+v, %v, %s", text, got, err, tag)
		}
	}
	for text, tag := range map[string]Tag{
		"SHA2-224":                            PlainTag(blkhash.SHA224),
		"SHA2-384":                            PlainTag(blkhash.SHA384),
		"SHA2-512":                            PlainTag(blkhash.SHA512),
		"SHA2-512/224":                        PlainTag(blkhash.SHA512_224),
		"SHA2-512/256":                        PlainTag(blkhash.SHA512_256),
		"BLAKE2B-512":                         PlainTag(blkhash.BLAKE2b512),
		"BLAKE2B-256":                         PlainTag(blkhash.BLAKE2b256),
		"BLAKE2S-256":                         PlainTag(blkhash.BLAKE2s256),
		"BLAKE2b512":                          PlainTag(blkhash.BLAKE2b512),
		"blake2s":                             PlainTag(blkhash.BLAKE2s256),
		"sha256":                              PlainTag(blkhash.SHA256),
		"SHA-256":                             PlainTag(blkhash.SHA256),
		"Sha-1":                               PlainTag(blkhash.SHA1),
		"sha-512-256":                         PlainTag(blkhash.SHA512_256),
		"SHA512/256":                          PlainTag(blkhash.SHA512_256),
		"BLKSUM-SHA256-FLAT-65536":            image(blkhash.SHA256, blkhash.Flat, 65536),
		"BLKSUM-SHA512-FSVERITY-64K-SALT00FF": image(blkhash.SHA512, blkhash.FSVerity, 65536, 0, 0xff),
	} {
		if got, err := ParseTag(text); err != nil || !got.Equal(tag) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestEveryTagRoundTrips(t *testing.T) {
	for _, a := range blkhash.Algorithms() {
		for _, c := range []blkhash.Construction{
			blkhash.Streams(1), blkhash.Streams(64), blkhash.Flat, blkhash.Concat, blkhash.Linear, blkhash.FSVerity,
			blkhash.DMVerity,
		} {
			for _, tag := range []Tag{PlainTag(a), image(a, c, 0)} {
				if tag.Check() != nil {
					if _, err := ParseTag(tag.String()); err == nil {
						t.Errorf("%s is accepted", tag)
					}
					continue
				}
				if got, err := ParseTag(tag.String()); err != nil || !got.Equal(tag) {
					t.Errorf("%s: %+v, %v", tag, got, err)
				}
			}
		}
	}
}

func TestOtherTags(t *testing.T) {
	for _, text := range []string{
		"", "SHA-", "-SHA256", "SHA--256", "SHA 256", "SHA256/", "SHA3/256", "SHA2", "SHA257", "BLAKE2", "BLAKE2b-512-", "SIPHASH", "NULL", "BLKSUM-", "BLKSUM-SHA256",
		"BLKSUM-SHA256-STREAMS-64K", "BLKSUM-SHA256-STREAMS0-64K", "BLKSUM-SHA256-STREAMS04-64K",
		"BLKSUM-SHA256-STREAMS129-64K", "BLKSUM-SHA256-STREAMS4", "BLKSUM-SHA256-STREAMS4-64k",
		"BLKSUM-SHA256-STREAMS4-+64K", "BLKSUM-SHA256-STREAMS4-65K", "BLKSUM-SHA256-STREAMS4-256",
		"BLKSUM-SHA256-STREAMS4-K", "BLKSUM-SHA256-STREAMS4-0", "BLKSUM-SHA256-STREAMS4-",
		"BLKSUM-SHA256-STREAMS4-64K-SALT00",
		"BLKSUM-SHA256-DMVERITY-4K-SALT", "BLKSUM-SHA256-DMVERITY-4K-SALT0", "BLKSUM-SHA256-DMVERITY-4K-SALT0g",
		"BLKSUM-SHA256-DMVERITY-SALT00", "BLKSUM-SHA256-DM-VERITY-4K", "BLKSUM-SHA256-FSVERITY",
		"BLKSUM-BLAKE3-FSVERITY-4K", "BLKSUM-CRC32C-DMVERITY-4K", "BLKSUM-SHA256-LINEAR-SALT00",
		"BLKSUM-SHA256-STREAMS4-128M", "BLKSUM-SHA256-STREAMS4-18446744073709551615M", "BLKSUM-SHA256-LINEAR-64K",
		"BLKSUM-sha256-LINEAR", "BLKSUM-NULL-FLAT-64K", "BLKSUM-SIPHASH-FLAT-64K", "blksum-SHA256-LINEAR",
		"BLKSUM-SHA256-LINEAR/", "BLKSUM-SHA256/PARTITION=1", "BLKSUM-SHA256-STREAMS4-64K/OFFSET=1",
		"BLKSUM-SHA256-STREAMS4-64K/PARTITION=1-SALT00", "SHA256/PARTITION=1",
	} {
		if tag, err := ParseTag(text); err != ErrTag {
			t.Errorf("%s: %+v, %v", text, tag, err)
		}
	}
	for _, tag := range []Tag{
		{Parameters: blkhash.Parameters{}, Bytes: true},
		{Parameters: linear(blkhash.SHA256), Bytes: true, Content: Content{Partition: 1}},
		{Parameters: blkhash.Parameters{Algorithm: "md6"}},
		{Content: Content{Offset: 1}},
	} {
		if tag.Check() == nil {
			t.Errorf("%+v is valid", tag)
		}
	}
}

func TestContents(t *testing.T) {
	for text, content := range map[string]Content{
		"":                 {},
		"/FORMAT=raw":      {Format: "raw"},
		"/VPCSIZE=current": {VPCSize: "current"},
		"/SNAPSHOT=1":      {Snapshot: "1"},
		"/SNAPSHOT=":       {HasSnapshot: true},
		"/SNAPSHOT=a%20%28b%29%2F%25%0A%C3%A9-._~": {Snapshot: "a (b)/%\né-._~"},
		"/PARTITION=2":                           {Partition: 2},
		"/PARTITION=4294967295":                  {Partition: 1<<32 - 1},
		"/SNAPSHOT=a/PARTITION=2":                {Snapshot: "a", Partition: 2},
		"/OFFSET=1048576":                        {Offset: 1 << 20},
		"/LENGTH=512":                            {Length: 512},
		"/LENGTH=18446744073709551104":           {Length: 1<<64 - 512},
		"/OFFSET=512/LENGTH=1024":                {Offset: 512, Length: 1024},
		"/SNAPSHOT=" + strings.Repeat("a", 1024): {Snapshot: strings.Repeat("a", 1024)},
		"/FORMAT=qcow2/VPCSIZE=geometry/SNAPSHOT=s/OFFSET=512/LENGTH=1024": {"qcow2", "geometry", "s", true, 0, 512, 1024},
	} {
		got, ok := parseContent(text)
		if !ok || !got.Equal(content) || string(content.append(nil)) != text || content.Check() != nil {
			t.Errorf("%q: %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"/", "/partition=1", "/PARTITION", "/PARTITION=", "/PARTITION=0", "/PARTITION=01", "/PARTITION=+1",
		"/PARTITION=4294967296", "/PARTITION=1/PARTITION=1", "/PARTITION=1/SNAPSHOT=a", "/PARTITION=1/OFFSET=512",
		"/OFFSET=512/PARTITION=1", "/PARTITION=1/", "/OFFSET=0", "/OFFSET=513", "/OFFSET=512/LENGTH=0", "/LENGTH=511",
		"/LENGTH=1K", "/LENGTH=512/OFFSET=512", "/LENGTH=18446744073709551616", "/SNAPSHOT=a/SNAPSHOT=b", "/SNAPSHOT=%61",
		"/SNAPSHOT=%2f", "/SNAPSHOT=%2", "/SNAPSHOT=%+1", "/SNAPSHOT=%00", "/SNAPSHOT=%FF", "/SNAPSHOT=é", "/SNAPSHOT=a b",
		"/FORMAT=RAW", "/FORMAT=vhd", "/FORMAT=", "/VPCSIZE=auto", "/VPCSIZE=", "/SNAPSHOT=a/FORMAT=raw", "/WHAT=1",
		"/SNAPSHOT=" + strings.Repeat("a", 1025), "/PARTITION=1/LENGTH=512",
	} {
		if got, ok := parseContent(text); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if len(Formats()) != 17 || (Content{}).String() != "all" || (Content{Partition: 2}).String() != "PARTITION=2" {
		t.Error(Formats())
	}
}
