package blkmap

import (
	"encoding/json"
	"runtime/debug"
	"time"
	"unicode/utf8"
)

// Info has the fields of the info of a map that the commands and this package know. Fields of other programs are in
// [Map.RawInfo] alone. Fields that are not in a map are zero.
type Info struct {
	// Created is the time of the commit, such as 2026-11-22T12:00:00Z.
	Created string `json:"created,omitempty"`
	// Program is the name and the version of the program.
	Program string `json:"program,omitempty"`
	// Made says how the digests were made: "read", with the quotes, or an object.
	Made json.RawMessage `json:"made,omitempty"`
	// Shard is [K, N] for the Kth of N parts.
	Shard      []int64     `json:"shard,omitempty"`
	Source     *Source     `json:"source,omitempty"`
	Partitions []Partition `json:"partitions,omitempty"`
}

// Source describes an image.
type Source struct {
	// Name is the image's, without its folder. It must not be opened.
	Name   string `json:"name,omitempty"`
	Format string `json:"format,omitempty"`
	// Snapshot is nil without one.
	Snapshot  *string      `json:"snapshot"`
	Partition int64        `json:"partition,omitempty"`
	Files     []SourceFile `json:"files,omitempty"`
	Bitmaps   []Bitmap     `json:"bitmaps,omitempty"`
}

// SourceFile is a file that an image consists of.
type SourceFile struct {
	Name string `json:"name,omitempty"`
	// Role is image, backing or data.
	Role string `json:"role,omitempty"`
	// Size is the length in bytes.
	Size int64 `json:"size"`
	// ModTimeNS is the time of the last change in nanoseconds since 1970, nil for devices and servers.
	ModTimeNS *int64  `json:"mtime_ns,omitempty"`
	Inode     *uint64 `json:"ino,omitempty"`
	Device    *uint64 `json:"dev,omitempty"`
}

// Bitmap is a bitmap of changed blocks in an image.
type Bitmap struct {
	Name string `json:"name,omitempty"`
	// Granularity is the number of bytes for each bit.
	Granularity int64 `json:"granularity,omitempty"`
	Enabled     bool  `json:"enabled"`
	// Dirty is the number of bits that were set, nil if the bitmap was not complete.
	Dirty *int64 `json:"dirty,omitempty"`
}

// Partition is a partition in an image. Offset and length are in bytes.
type Partition struct {
	Number int64 `json:"number"`
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
}

// NewInfo returns the info of a map that is made now by reading all blocks.
func NewInfo() Info {
	return Info{Created: time.Now().UTC().Format(time.RFC3339), Program: program(), Made: json.RawMessage(`"read"`)}
}

// program returns the name of this package, and its version as far as the executable knows it.
func program() string {
	const name = "blkhash-go"
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return name
	}
	for _, module := range build.Deps {
		if module.Path == modulePath {
			return name + " " + module.Version
		}
	}
	return name
}

const modulePath = "github.com/blkhash/blkhash/go"

// maxDepth is the number of objects and arrays that may be nested.
const maxDepth = 100

// isObject returns whether text is a JSON object as the format takes it. The decoder of the standard library also
// accepts invalid UTF-8, halves of surrogates and deeper nesting.
func isObject(text []byte) bool {
	if len(text) < minInfo || len(text) > maxInfo || !utf8.Valid(text) || !isStrict(text) {
		return false
	}
	var object map[string]any
	return json.Unmarshal(text, &object) == nil && object != nil
}

// isStrict returns whether strings have whole surrogate pairs and the nesting is not too deep. Text that is not JSON
// may have any result.
func isStrict(text []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			unit, isUnit := escaped(text[i:])
			i++
			if !isUnit {
				continue
			}
			i += 4
			switch {
			case 0xdc00 <= unit && unit < 0xe000:
				return false
			case 0xd800 <= unit && unit < 0xdc00:
				if low, ok := escaped(text[i+1:]); !ok || low < 0xdc00 || low >= 0xe000 {
					return false
				}
				i += 6
			}
		case !quoted && (c == '{' || c == '['):
			if depth++; depth > maxDepth {
				return false
			}
		case !quoted && (c == '}' || c == ']'):
			depth--
		}
	}
	return true
}

// escaped returns the unit of an escape such as \u20ac at the start of text.
func escaped(text []byte) (unit uint16, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		unit = unit<<4 | uint16(c)
	}
	return unit, true
}
