package checkfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/blkhash/blkhash/go"
)

// A Tag says in a line what its checksum is of, and how it was computed. There are two kinds:
//
//   - The tag of an image, such as BLKSUM-SHA256-STREAMS4-64K, names all parameters. It stands for the content that a
//     guest sees, or for the [Content] that it records.
//   - A plain tag, such as SHA256, stands for the bytes of the file itself, image or not.
type Tag struct {
	// Parameters have a value in each field. Parameters of a plain tag are linear.
	Parameters blkhash.Parameters
	// Bytes is set in a plain tag.
	Bytes bool
	// Content is what the checksum is of. It is the zero value in a plain tag.
	Content Content
}

// ErrTag is the error for a text that is no tag.
var ErrTag = errors.New("checkfile: unknown tag")

// TagOf returns the tag of the whole content of an image.
func TagOf(p blkhash.Parameters) Tag {
	return Tag{Parameters: p.WithDefaults()}
}

// PlainTag returns the tag of the bytes of a file.
func PlainTag(a blkhash.Algorithm) Tag {
	return Tag{Parameters: linear(a), Bytes: true}
}

func linear(a blkhash.Algorithm) blkhash.Parameters {
	return blkhash.Parameters{Algorithm: a, Construction: blkhash.Linear}.WithDefaults()
}

// Equal returns whether both tags have the same meaning.
func (t Tag) Equal(other Tag) bool {
	return t.Bytes == other.Bytes && t.Parameters.Equal(other.Parameters) && t.Content.Equal(other.Content)
}

// Check returns an error if there is no such tag.
func (t Tag) Check() error {
	p := t.Parameters.WithDefaults()
	if err := p.Check(); err != nil {
		return err
	}
	switch {
	case p.Algorithm.Size() == 0:
		return errors.New("checkfile: null has no tag: an empty digest proves nothing")
	case t.Bytes && p.Construction != blkhash.Linear:
		return fmt.Errorf("checkfile: a plain tag is linear, and not %s", p.Construction)
	case t.Bytes && !t.Content.Equal(Content{}):
		return errors.New("checkfile: a plain tag is of a whole file")
	}
	return t.Content.Check()
}

// String returns the text of the tag in a line.
func (t Tag) String() string {
	return string(t.append(nil))
}

func (t Tag) append(b []byte) []byte {
	p := t.Parameters.WithDefaults()
	if t.Bytes {
		return append(b, plainName(p.Algorithm)...)
	}
	b = append(append(b, prefix...), imageName(p.Algorithm)...)
	b = append(append(b, '-'), constructionName(p.Construction)...)
	if !p.Construction.HasBlocks() {
		return t.Content.append(b)
	}
	switch size := p.BlockSize; {
	case size%(1<<20) == 0:
		b = append(strconv.AppendInt(append(b, '-'), int64(size>>20), 10), 'M')
	case size%(1<<10) == 0:
		b = append(strconv.AppendInt(append(b, '-'), int64(size>>10), 10), 'K')
	default:
		b = strconv.AppendInt(append(b, '-'), int64(size), 10)
	}
	if len(p.Salt) > 0 {
		b = hex.AppendEncode(append(append(b, '-'), saltName...), p.Salt)
	}
	return t.Content.append(b)
}

// ParseTag reads the text of a tag. The error is [ErrTag].
func ParseTag(text string) (Tag, error) {
	rest, isImage := strings.CutPrefix(text, prefix)
	if !isImage {
		a, ok := parsePlainTag(text)
		if !ok {
			return Tag{}, ErrTag
		}
		return PlainTag(a), nil
	}
	fields := ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		rest, fields = rest[:i], rest[i:]
	}
	p, ok := parseImage(rest)
	if !ok {
		return Tag{}, ErrTag
	}
	content, ok := parseContent(fields)
	if !ok {
		return Tag{}, ErrTag
	}
	return Tag{Parameters: p, Content: content}, nil
}

// parsePlainTag reads the name of a digest in any capitals, with a dash between its parts or without one.
func parsePlainTag(text string) (a blkhash.Algorithm, ok bool) {
	if slices.Contains(strings.Split(text, "-"), "") {
		return "", false
	}
	a, ok = plainNames[withoutDashes(text)]
	return a, ok
}

func withoutDashes(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "-", ""))
}

// parseImage reads DIGEST-STREAMSn-SIZE and the like, from the right because names of digests hold dashes.
func parseImage(text string) (blkhash.Parameters, bool) {
	var p blkhash.Parameters
	rest, last, ok := cutLast(text)
	if !ok {
		return p, false
	}
	if digits, isSalt := strings.CutPrefix(last, saltName); isSalt && digits != "" {
		var err error
		if p.Salt, err = hex.DecodeString(digits); err != nil {
			return p, false
		}
		if rest, last, ok = cutLast(rest); !ok {
			return p, false
		}
	}
	p.Construction = blkhash.Linear
	if last != constructionName(blkhash.Linear) {
		var construction string
		if rest, construction, ok = cutLast(rest); !ok {
			return p, false
		}
		if p.Construction, ok = parseConstruction(construction); !ok || !p.Construction.HasBlocks() {
			return p, false
		}
		if p.BlockSize, ok = parseSize(last); !ok {
			return p, false
		}
	}
	if p.Algorithm, ok = imageNames[rest]; !ok {
		return p, false
	}
	return p.WithDefaults(), p.Check() == nil
}

// cutLast cuts a text at its last dash.
func cutLast(text string) (before, after string, ok bool) {
	i := strings.LastIndexByte(text, '-')
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+1:], true
}

func parseConstruction(text string) (blkhash.Construction, bool) {
	for _, c := range []blkhash.Construction{
		blkhash.Flat, blkhash.Concat, blkhash.Linear, blkhash.FSVerity, blkhash.DMVerity,
	} {
		if text == constructionName(c) {
			return c, true
		}
	}
	if digits, ok := strings.CutPrefix(text, "STREAMS"); ok {
		c, err := blkhash.ParseConstruction("streams:" + digits)
		return c, err == nil && text == constructionName(c)
	}
	return "", false
}

// parseSize reads a block size with or without a unit.
func parseSize(text string) (int, bool) {
	shift := 0
	if digits, ok := strings.CutSuffix(text, "K"); ok {
		text, shift = digits, 10
	} else if digits, ok := strings.CutSuffix(text, "M"); ok {
		text, shift = digits, 20
	}
	size, err := strconv.ParseUint(text, 10, 64)
	// A block size of 0 would mean the default one.
	if err != nil || size == 0 || size > blkhash.MaxBlockSize>>shift {
		return 0, false
	}
	return int(size << shift), true
}

// constructionName returns the name of a construction in capitals with its number, such as STREAMS4.
func constructionName(c blkhash.Construction) string {
	return constructionNames.Replace(strings.ToUpper(string(c)))
}

var constructionNames = strings.NewReplacer(":", "", "-", "")

func imageName(a blkhash.Algorithm) string {
	return strings.ToUpper(string(a))
}

// plainName returns the plain tag of an algorithm, as coreutils, b3sum, xxhsum and the BSDs write it.
func plainName(a blkhash.Algorithm) string {
	switch a {
	case blkhash.BLAKE2b512:
		return "BLAKE2b"
	case blkhash.BLAKE2b256:
		return "BLAKE2b-256"
	case blkhash.BLAKE2s256:
		return "BLAKE2s-256"
	}
	return imageName(a)
}

const (
	// prefix begins the tag of an image.
	prefix = "BLKSUM-"
	// saltName precedes the digits of a salt.
	saltName = "SALT"
)

// imageNames and plainNames are the names of the algorithms in tags. The plain ones have no dashes and no capitals, and
// are also used by rhash and openssl.
var imageNames, plainNames = func() (image, plain map[string]blkhash.Algorithm) {
	image = map[string]blkhash.Algorithm{}
	plain = map[string]blkhash.Algorithm{
		"sha2224":     blkhash.SHA224,
		"sha2256":     blkhash.SHA256,
		"sha2384":     blkhash.SHA384,
		"sha2512":     blkhash.SHA512,
		"sha2512/224": blkhash.SHA512_224,
		"sha2512/256": blkhash.SHA512_256,
		"sha512/224":  blkhash.SHA512_224,
		"sha512/256":  blkhash.SHA512_256,
		"blake2b":     blkhash.BLAKE2b512,
		"blake2s":     blkhash.BLAKE2s256,
	}
	for _, a := range blkhash.Algorithms() {
		if a.Size() > 0 {
			image[imageName(a)] = a
			plain[withoutDashes(string(a))] = a
		}
	}
	return image, plain
}()
