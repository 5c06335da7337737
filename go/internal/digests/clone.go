package digests

import (
	"encoding"
	"hash"
)

// marshaler is a hash that can save its state.
type marshaler interface {
	hash.Hash
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// byState adds Clone to a hash that can only save and restore its state.
type byState struct {
	marshaler
	newHash func() hash.Hash
}

// marshaled returns a constructor of hashes with Clone.
func marshaled(newHash func() hash.Hash) func() hash.Hash {
	return func() hash.Hash {
		return byState{newHash().(marshaler), newHash}
	}
}

func (h byState) Clone() (hash.Cloner, error) {
	state, err := h.MarshalBinary()
	if err != nil {
		return nil, err
	}
	copied := h.newHash().(marshaler)
	if err := copied.UnmarshalBinary(state); err != nil {
		return nil, err
	}
	return byState{copied, h.newHash}, nil
}
