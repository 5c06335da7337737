// Package zeros hashes zeros, and recognises them.
package zeros

import (
	"bytes"
	"hash"
)

var zeros [64 << 10]byte

// Is returns whether p has only zeros.
func Is(p []byte) bool {
	for len(p) > len(zeros) {
		if !bytes.Equal(p[:len(zeros)], zeros[:]) {
			return false
		}
		p = p[len(zeros):]
	}
	return bytes.Equal(p, zeros[:len(p)])
}

// Hash hashes n zeros.
func Hash(h hash.Hash, n int64) {
	for n > 0 {
		part := min(n, int64(len(zeros)))
		h.Write(zeros[:part])
		n -= part
	}
}
