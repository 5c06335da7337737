package blkhash

import (
	"fmt"
	"strconv"
	"strings"
)

// A Construction is the way in which the digests of blocks make one checksum: Streams(n) or one of the constants.
// docs/reference/constructions.md of the project defines them.
type Construction string

// The constructions without a parameter.
const (
	Flat     Construction = "flat"
	Concat   Construction = "concat"
	Linear   Construction = "linear"
	FSVerity Construction = "fs-verity"
	DMVerity Construction = "dm-verity"
)

const maxStreams = 128

// Streams returns the construction `streams:n`, for n from 1 to 128. [Parameters.Check] refuses other numbers.
func Streams(n int) Construction {
	return Construction("streams:" + strconv.Itoa(n))
}

// ParseConstruction returns the construction with a name. `streams` alone is `streams:4`.
func ParseConstruction(name string) (Construction, error) {
	if name == "streams" {
		return Streams(4), nil
	}
	if text, found := strings.CutPrefix(name, "streams:"); found {
		if n, err := strconv.ParseUint(text, 10, 8); err == nil {
			name = string(Streams(int(n)))
		}
	}
	c := Construction(name)
	return c, c.check()
}

// HasBlocks returns whether the construction cuts the content into blocks. Only [Linear] does not.
func (c Construction) HasBlocks() bool {
	return c != Linear
}

// streams returns n of `streams:n`, or 0.
func (c Construction) streams() int {
	text, found := strings.CutPrefix(string(c), "streams:")
	n, err := strconv.Atoi(text)
	if !found || err != nil || n < 1 || n > maxStreams || c != Streams(n) {
		return 0
	}
	return n
}

func (c Construction) check() error {
	switch c {
	case Flat, Concat, Linear, FSVerity, DMVerity:
		return nil
	}
	if c.streams() == 0 {
		return fmt.Errorf("blkhash: unknown construction %q: use streams:N with N from 1 to %d, flat, concat, linear, "+
			"fs-verity or dm-verity", string(c), maxStreams)
	}
	return nil
}
