package checkfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blkhash/blkhash/go"
)

// A Reading is a way in which a value can be a checksum.
type Reading struct {
	Parameters blkhash.Parameters
	// Bytes is set if it is of the bytes of the file that stores the image, and not of the content.
	Bytes bool
}

// String describes the reading without what is the default, as `blksum --expect` does: "flat", "sha512, bytes of the
// file", "blake2b256, concat, blocks of 4 MiB".
func (r Reading) String() string {
	p := r.Parameters.WithDefaults()
	words := []string{r.way()}
	if p.Algorithm != blkhash.SHA256 {
		words = slices.Insert(words, 0, string(p.Algorithm))
	}
	if blocks := blocksOf(p); blocks != "" {
		words = append(words, blocks)
	}
	return strings.Join(words, ", ")
}

func (r Reading) way() string {
	p := r.Parameters.WithDefaults()
	if r.Bytes && p.Construction == blkhash.Linear {
		return "bytes of the file"
	}
	return string(p.Construction)
}

// blocksOf describes the blocks, if they do not have the default size.
func blocksOf(p blkhash.Parameters) string {
	usual := blkhash.Parameters{Construction: p.Construction}.WithDefaults().BlockSize
	switch size := p.BlockSize; {
	case size == usual:
		return ""
	case size%(1<<20) == 0:
		return fmt.Sprintf("blocks of %d MiB", size>>20)
	case size%(1<<10) == 0:
		return fmt.Sprintf("blocks of %d KiB", size>>10)
	default:
		return fmt.Sprintf("blocks of %d bytes", size)
	}
}

// A Doubt is a reason why a checksum that equals a value proves nothing: anyone who can read the image that the value
// was computed of can make other content that has it.
type Doubt int

const (
	// NoDoubt is the zero value.
	NoDoubt Doubt = iota
	// ListOfDigests is content that may be a list of the digests of another image.
	ListOfDigests
	// InnerImage is content that is itself an image. The value may belong to the file of another image.
	InnerImage
	// InnerArchive is content that is itself a tar archive. The value may belong to an appliance.
	InnerArchive
	// InnerCompressed is content that is itself a compressed file. The value may belong to a compressed image.
	InnerCompressed
)

// String says in words what the content is.
func (d Doubt) String() string {
	switch d {
	case ListOfDigests:
		return "it could be a list of the digests of another image"
	case InnerImage:
		return "its content is an image itself"
	case InnerArchive:
		return "its content is an archive"
	case InnerCompressed:
		return "its content is a compressed file"
	}
	return ""
}

// A Match is the result of a search: whether an image has a value, and as what.
type Match struct {
	// OK is set if the image has the value. The other results are no errors.
	OK bool
	// Reading is the way in which the image has the value. It is the zero value if OK is not set.
	Reading Reading
	// Tag is for the line that needs no search the next time. It is the zero value if OK is not set.
	Tag Tag
	// Doubt is why the value does not count although a checksum equals it, and Doubted is that checksum. OK is not set
	// then.
	Doubt   Doubt
	Doubted Reading
	// Uncovered is the error of reading the content, if only the bytes of the file have the value. They say nothing
	// about content that cannot be read.
	Uncovered error
	// Tried has all checksums that were computed, in this order.
	Tried []Reading
	// Untried says in words what was not tried, and why.
	Untried []string
}

// ErrNoMatch is the error of [Match.Err].
var ErrNoMatch = errors.New("checkfile: the image does not have the value")

// Err returns an error with the reason, [ErrNoMatch], unless the image has the value.
func (m Match) Err() error {
	if m.OK {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNoMatch, m)
}

// String describes the result in a few words.
func (m Match) String() string {
	switch {
	case m.OK:
		return m.Reading.String()
	case m.Doubt != NoDoubt:
		return fmt.Sprintf("has this value as %s, but %s: Options.Construction takes it", m.Doubted, m.Doubt)
	case len(m.Tried) == 0:
		return strings.Join(append([]string{"nothing was tried"}, m.Untried...), ": ")
	}
	var ways, digests []string
	for _, r := range m.Tried {
		way := r.way()
		if blocks := blocksOf(r.Parameters.WithDefaults()); blocks != "" {
			way += " with " + blocks
		}
		ways, digests = appendNew(ways, way), appendNew(digests, string(r.Parameters.Algorithm))
	}
	text := fmt.Sprintf("is not %s of %s", and(ways), and(digests))
	for _, why := range m.Untried {
		text += "; not everything was tried: " + why
	}
	return text
}

func appendNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// and joins words as a sentence does.
func and(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
