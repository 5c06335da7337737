// Package blkmap reads and writes block maps: files with the digest of every block of a disk image. A map says whether
// a copy of an image is as it should be, where it differs, and what changed between two states, without the image
// itself. The command `blkhash map` makes the same files, and docs/reference/map-format.md of the project specifies them.
//
// [Open] opens a map. [Map.Verify] compares an image with it, [Diff] compares two maps, [Map.Checksum] computes the
// checksum of the image, and [Map.Runs] has all digests. [Create] makes the map of an image, and a [Writer] makes one
// while something else reads the image. [Append] adds the next state of an image, and [Recover] continues after an
// interruption.
//
// A map may come from an attacker. Every byte is checked before it is used, memory is bounded, and no function panics.
// The hashes in a map find accidents: without a seal and its key ([WithKey]), the file as a whole may be another one.
package blkmap
