package checkfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/checkfile"
)

// disk is the content of an image.
var disk = bytes.Repeat([]byte("disk"), 100_000)

// A list of the checksums of images, as blksum writes it. Malformed lines are reported and left out.
func ExampleRead() {
	list := strings.NewReader(`# images
BLKSUM-SHA256-STREAMS4-64K (disk.qcow2) = 1eb4c41ab71b4baf28b21d99e8be2ee1ce0b7da38bd47b8d7cbf78fb8cc63062
1eb4c41ab71b4baf28b21d99e8be2ee1ce0b7da38bd47b8d7cbf78fb8cc63062  other.img
nonsense
`)
	for entry, err := range checkfile.Read(list) {
		var malformed *checkfile.MalformedError
		switch {
		case errors.As(err, &malformed) && !malformed.ImageTag:
			fmt.Println("left out:", malformed)
		case err != nil:
			log.Fatal(err)
		case entry.Tag != nil:
			fmt.Println(entry.Name, "has the tag", entry.Tag)
		default:
			fmt.Println(entry.Name, "has no tag")
		}
	}
	// Output:
	// disk.qcow2 has the tag BLKSUM-SHA256-STREAMS4-64K
	// other.img has no tag
	// left out: checkfile: malformed line 4: no form of a line: neither a known tag nor a checksum begins it
}

// The line that `blksum --tag` writes.
func ExampleEntry() {
	p := blkhash.Parameters{}
	digest, err := blkhash.Sum(context.Background(), bytes.NewReader(disk), int64(len(disk)), nil, p)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(checkfile.NewEntry("disk.img", digest, checkfile.TagOf(p)))
	// Output:
	// BLKSUM-SHA256-STREAMS4-64K (disk.img) = 251a97d9e5acad2d7fdc216b49a045108eaafa44fb926647afbce8b751f87755
}

// A value from elsewhere, which does not say how it was computed.
func ExampleExpect() {
	value, err := checkfile.ParseValue("sKIJ9xo2iUTE49VX5EJBmyAM6e+vT2rc6B6X0+S2z8g=")
	if err != nil {
		log.Fatal(err)
	}
	// A raw image. For another format, Bytes has the bytes of the file.
	options := checkfile.Options{IsFile: true}
	match, err := checkfile.Expect(context.Background(), bytes.NewReader(disk), int64(len(disk)), nil, value, options)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(match.OK, match)
	fmt.Println(checkfile.NewEntry("disk.img", value.Digest, match.Tag))
	// Output:
	// true flat
	// BLKSUM-SHA256-FLAT-64K (disk.img) = b0a209f71a368944c4e3d557e442419b200ce9efaf4f6adce81e97d3e4b6cfc8
}

// The tag of a partition in an image.
func ExampleTag() {
	tag := checkfile.TagOf(blkhash.Parameters{Algorithm: blkhash.BLAKE3, BlockSize: 1 << 20})
	tag.Content = checkfile.Content{Snapshot: "before upgrade", Partition: 2}
	fmt.Println(tag)
	parsed, err := checkfile.ParseTag(tag.String())
	fmt.Println(parsed.Parameters.Algorithm, parsed.Content.Snapshot, err)
	// Output:
	// BLKSUM-BLAKE3-STREAMS4-1M/SNAPSHOT=before%20upgrade/PARTITION=2
	// blake3 before upgrade <nil>
}
