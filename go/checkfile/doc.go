// Package checkfile reads and writes the lines of check files, and finds out what a value without parameters is a
// checksum of.
//
// A check file lists names of images and their checksums, as `blksum` and `sha256sum` write them. docs/reference/check-file.md of
// the project specifies the format and the search.
//
// [Read] and [ReadAll] read a check file, [ParseLine] reads one line, and [Entry.AppendLine] writes one. [ParseValue]
// reads a checksum in any form in which programs and clouds write it, and [Expect] tells whether an image has it, and
// how it was computed.
//
// Nothing here opens a file by a name from a check file: names may come from an attacker, and the page says which files
// blksum opens. Manifests in appliances and OCI images are not read.
package checkfile
