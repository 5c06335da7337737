package checkfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/blkhash/blkhash/go"
)

// Options say what an image is, and narrow a search. The zero value is for the content of an image of which no more is
// known.
type Options struct {
	// IsFile is set if the content is all bytes of a file or a device, as they are: a raw image. Such content may
	// itself be an image or an archive. Do not set it for content that was read through a format, and only set it if
	// the file is raw for all who read it.
	IsFile bool
	// Bytes are all bytes of the file that stores the image, if they are not the content. BytesSize is their number,
	// and BytesExtents are their extents, which may be nil. Without them, values of the file are not found.
	Bytes        io.ReaderAt
	BytesSize    int64
	BytesExtents blkhash.Extents
	// Decoded is set if the content is what Bytes hold in compressed form, and decoding them to their end succeeded
	// with the checksums in them. Bytes that decode are no list of digests.
	Decoded bool
	// Content is what the content is of its image: a snapshot, a partition, a range, or all of it. A tag must record
	// the same. The bytes of the file are not tried for a part of it.
	Content Content

	// Algorithms are the digests to try. Without them, the ones of a value's length are tried, except those that can
	// be forged where others cannot.
	Algorithms []blkhash.Algorithm
	// Construction is the one to try. Nothing else is computed then, so no match is doubted.
	Construction blkhash.Construction
	// BlockSize is the one to try. Without it that is 64 KiB, and 4 MiB for concat, as in oVirt.
	BlockSize int
	// AllZeros is set if no row is left out because it hashes many zeros that are not stored, which takes minutes.
	AllZeros bool

	// Hash are the options of each pass, such as [blkhash.WithThreads]. A progress function begins again with each pass. A
	// sink is not for searches, because linear has no blocks.
	Hash []blkhash.Option
}

const (
	// maxZeros are the zeros that are not stored and hashed all the same, for all digests of a row together.
	maxZeros = 64 << 30
	// maxFolds are the blocks of zeros whose digests are folded, for all checksums of a row together.
	maxFolds = 1 << 29
	// maxLineSize is the size of an image for which all digests are tried for a line of a check file.
	maxLineSize = 1 << 30
)

// Expect tells whether an image has a value, however the value was computed. The content is the first size bytes of a
// reader, and extents may be nil, as for [blkhash.Sum]. The extents are iterated several times.
//
// A value with a tag is computed as the tag says. For others the rows of the table in docs/reference/check-file.md are tried in
// their order: each is one pass over the content, or over [Options.Bytes], and the search ends with the first match. A
// match of a list of digests, of a part of a tree of verity, and of content that is an image, an archive or a
// compressed file does not count: see [Doubt]. [Options.Construction] lifts this, and so do a tag and a value of parts.
//
// A value that nothing has is no error: OK of the result is not set. An error means that the content cannot be read,
// the value or the options are not valid, or ctx ended. If only the content cannot be read, or the reader is nil, the
// bytes of the file are tried all the same.
//
// Unlike `blksum --expect`, this function reads no formats, and knows of them only the magic numbers at both ends. The
// caller reads the content of an image, and passes the bytes of its file as well. It does not know of backing files: if
// [Reading.Bytes] of the result is set, the value says nothing about content in other files. Values of fs-verity and
// dm-verity are not searched for. A limit for zeros that are not stored is left to ctx.
func Expect(
	ctx context.Context, content io.ReaderAt, size int64, extents blkhash.Extents, v Value, o Options,
) (Match, error) {
	return expect(ctx, source{content, size, extents}, v, o, true)
}

// ExpectLine is [Expect] for a line of a check file. For a line without a tag and content of more than 1 GiB, only the
// most common digest of that length is tried, as by `blksum -c`.
func ExpectLine(
	ctx context.Context, content io.ReaderAt, size int64, extents blkhash.Extents, e Entry, o Options,
) (Match, error) {
	return expect(ctx, source{content, size, extents}, e.Value(), o, false)
}

// source is bytes that are hashed.
type source struct {
	reader  io.ReaderAt
	size    int64
	extents blkhash.Extents
}

// search is the state of a search.
type search struct {
	options *Options
	value   Value
	content source
	// file has the bytes of the file. Its reader is nil if they are not known.
	file source
	// hasOther is set if the bytes of the file are not the content.
	hasOther bool
	// isPatient is set if all digests are tried for large images as well.
	isPatient bool
	match     Match
}

func expect(ctx context.Context, content source, v Value, o Options, isPatient bool) (Match, error) {
	if err := v.Check(); err != nil {
		return Match{}, err
	}
	s := &search{options: &o, value: v, content: content, isPatient: isPatient}
	switch {
	case content.size < 0 || o.BytesSize < 0:
		return Match{}, errors.New("checkfile: negative size of the content")
	case o.IsFile && (o.Bytes != nil || o.Content.isPart()):
		return Match{}, errNotFile
	case content.reader == nil && o.Bytes == nil:
		return Match{}, errNoContent
	case o.Content.isPart():
	case o.IsFile:
		s.file = content
	case o.Bytes != nil:
		s.file, s.hasOther = source{o.Bytes, o.BytesSize, o.BytesExtents}, true
	}
	if v.Tag != nil {
		return s.tagged(ctx)
	}
	if err := o.check(v); err != nil {
		return Match{}, err
	}
	return s.find(ctx)
}

// check returns an error if the options narrow the search to nothing.
func (o *Options) check(v Value) error {
	if err := o.Content.Check(); err != nil {
		return err
	}
	for _, a := range o.Algorithms {
		if err := (blkhash.Parameters{Algorithm: a}).Check(); err != nil {
			return err
		}
	}
	switch o.Construction {
	case blkhash.FSVerity, blkhash.DMVerity:
		return fmt.Errorf("checkfile: values of %s are not searched for", o.Construction)
	}
	if err := (blkhash.Parameters{Construction: o.Construction}).Check(); err != nil {
		return err
	}
	if o.BlockSize != 0 {
		if err := blkhash.CheckBlockSize(o.BlockSize); err != nil {
			return err
		}
	}
	if len(o.digests(v)) == 0 {
		return fmt.Errorf("checkfile: value of %d bytes, and no digest of the options can have it", len(v.Digest))
	}
	return nil
}

// tagged computes the checksum that a tag says.
func (s *search) tagged(ctx context.Context) (Match, error) {
	tag := *s.value.Tag
	tag.Parameters = tag.Parameters.WithDefaults()
	from := s.content
	switch {
	case tag.Bytes && s.file.reader == nil:
		return Match{}, errors.New("checkfile: a plain tag is of the bytes of the whole file: set Options.Bytes, or IsFile for a raw image")
	case tag.Bytes:
		from = s.file
	case !tag.Content.Equal(s.options.Content):
		return Match{}, fmt.Errorf("%w: %s, and not %s", ErrContent, tag.Content, s.options.Content)
	case from.reader == nil:
		return Match{}, errNoContent
	}
	sums, err := s.sums(ctx, from, []blkhash.Parameters{tag.Parameters})
	if err != nil {
		return Match{}, err
	}
	reading := Reading{tag.Parameters, tag.Bytes}
	s.match.Tried = []Reading{reading}
	if bytes.Equal(sums[0], s.value.Digest) {
		s.match.OK, s.match.Reading, s.match.Tag = true, reading, tag
	}
	return s.match, nil
}

// ErrContent is the error for a tag that records another content than the options say.
var ErrContent = errors.New("checkfile: the checksum is of other content")

var (
	errNoContent = errors.New("checkfile: no content")
	errNotFile   = errors.New("checkfile: content that is the bytes of a file has no other bytes, and is all of them")
)

// find tries one row after the other until one matches.
func (s *search) find(ctx context.Context) (Match, error) {
	var unreadable error
	if s.content.reader == nil {
		unreadable = errNoContent
	}
	found := false
	for _, row := range s.rows() {
		from := s.content
		if row.bytes {
			from = s.file
		} else if unreadable != nil {
			continue
		}
		parameters := row.parameters
		if found {
			parameters = s.affordable(from, s.usual(from, parameters), row.bytes)
		}
		if len(parameters) == 0 {
			continue
		}
		sums, shape, err := s.pass(ctx, from, parameters)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return Match{}, err
		case !found && unreadable == nil:
			unreadable = err
			continue
		case !found:
			continue
		default:
			s.skip(err.Error())
			continue
		}
		found = true
		s.compare(row.bytes, parameters, sums, shape)
		// A value has no second meaning.
		if s.match.OK || s.match.Doubt != NoDoubt {
			break
		}
	}
	switch {
	case s.match.OK && s.match.Reading.Bytes:
		s.match.Uncovered = unreadable
	case unreadable != nil && !s.match.OK:
		return Match{}, unreadable
	}
	return s.match, nil
}

// rows returns what is tried.
func (s *search) rows() []row {
	if s.value.Parts == 0 {
		rows := s.options.rows(s.value)
		if s.hasOther && s.file.reader != nil {
			return rows
		}
		return slices.DeleteFunc(rows, func(r row) bool { return r.bytes })
	}
	if s.file.reader == nil {
		s.skip("a value of parts is of the bytes of the whole file, which are not known")
		return nil
	}
	parts, ok := s.options.parts(s.value, s.file.size)
	if !ok {
		s.skip("the file has not this number of parts, if their size is a power of two up to 64 MiB or as in the options")
		return nil
	}
	if size := parts.parameters[0].BlockSize; s.options.BlockSize == 0 && s.file.size > int64(size) {
		s.skip(fmt.Sprintf("parts may have another size than %d bytes", size))
	}
	return []row{parts}
}

// pass computes checksums of a source, and reads its ends.
func (s *search) pass(ctx context.Context, from source, parameters []blkhash.Parameters) ([][]byte, shape, error) {
	sums, err := s.sums(ctx, from, parameters)
	if err != nil {
		return nil, shape{}, err
	}
	ends, err := shapeOf(from.reader, from.size, from.extents)
	return sums, ends, err
}

func (s *search) sums(ctx context.Context, from source, parameters []blkhash.Parameters) ([][]byte, error) {
	return blkhash.SumAll(ctx, from.reader, from.size, from.extents, parameters, s.options.Hash...)
}

// compare looks for the value among the checksums of a pass.
func (s *search) compare(isBytes bool, parameters []blkhash.Parameters, sums [][]byte, ends shape) {
	isFile := isBytes || s.options.IsFile
	isSure := s.options.Construction != "" || s.value.Parts > 0 || (s.options.Decoded && isBytes)
	for i, p := range parameters {
		reading := Reading{p, isBytes}
		s.match.Tried = append(s.match.Tried, reading)
		if !bytes.Equal(sums[i], s.value.Digest) {
			continue
		}
		doubt := ends.doubt(p, isFile)
		switch {
		case doubt != NoDoubt && !isSure:
			s.match.Doubt, s.match.Doubted = doubt, reading
		case !s.match.OK:
			s.match.OK, s.match.Reading, s.match.Tag = true, reading, s.tagOf(reading)
		}
	}
	if s.match.OK {
		s.match.Doubt, s.match.Doubted = NoDoubt, Reading{}
	}
}

// tagOf returns the tag of a line for a checksum that was found.
func (s *search) tagOf(r Reading) Tag {
	switch {
	case !r.Bytes:
		return Tag{Parameters: r.Parameters, Content: s.options.Content}
	case r.Parameters.Construction == blkhash.Linear:
		return PlainTag(r.Parameters.Algorithm)
	}
	return Tag{Parameters: r.Parameters, Content: Content{Format: "raw"}}
}

// usual leaves out all but the most common digest of a length for a line of a large image.
func (s *search) usual(from source, parameters []blkhash.Parameters) []blkhash.Parameters {
	if s.isPatient || from.size <= maxLineSize {
		return parameters
	}
	first := s.options.digests(s.value)[0]
	usual := slices.DeleteFunc(slices.Clone(parameters), func(p blkhash.Parameters) bool {
		return p.Algorithm != first
	})
	if len(usual) < len(parameters) {
		s.skip("other digests of this length take long for an image of more than 1 GiB")
	}
	return usual
}

// affordable leaves out what hashes too many zeros that are not stored.
func (s *search) affordable(from source, parameters []blkhash.Parameters, isBytes bool) []blkhash.Parameters {
	if s.options.AllZeros || len(parameters) == 0 {
		return parameters
	}
	zeros := zerosOf(from.size, from.extents)
	folds, hashed := int64(0), int64(0)
	for _, p := range parameters {
		if p.Construction.HasBlocks() {
			folds = sum(folds, zeros/int64(p.BlockSize))
		} else {
			hashed = sum(hashed, zeros)
		}
	}
	if folds > maxFolds {
		s.skip("other digests take long for so many zeros")
	}
	if hashed > maxZeros {
		if isBytes {
			s.skip("the bytes of so large a file take long")
		} else {
			s.skip("linear of so many zeros takes long")
		}
	}
	return slices.DeleteFunc(slices.Clone(parameters), func(p blkhash.Parameters) bool {
		if p.Construction.HasBlocks() {
			return folds > maxFolds
		}
		return hashed > maxZeros
	})
}

// sum returns a sum of numbers that are not negative, or the largest one.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// skip adds a reason why something is not tried.
func (s *search) skip(why string) {
	s.match.Untried = appendNew(s.match.Untried, why)
}
