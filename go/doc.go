// Package blkhash computes checksums of disk images: of the content that a guest sees, and not of the file that stores
// it. A checksum is the same whether the image is raw, qcow2 or a snapshot chain, and it is the value that the command
// blksum prints.
//
// The content is cut into blocks. Goroutines hash blocks side by side, and blocks of zeros are not hashed at all.
// [Sum] computes the checksum of an [io.ReaderAt], such as an image that a Go package opened, and skips what its
// extents report as zeros. A [Hasher] is a [hash.Hash] for content that comes as a stream. [SumFile] reads raw files.
//
// [Parameters] select the digest and the construction. A checksum does not record them, and only checksums of equal
// parameters can be compared. Package checkfile writes and reads lines that record them, and package blkmap has maps
// with a digest of each block.
package blkhash
