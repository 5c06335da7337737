package blkmap

import (
	"crypto/hmac"
	"crypto/sha256"
)

// The lengths of keys in bytes.
const (
	MinKey = 16
	MaxKey = 4096
)

func checkKey(key []byte) error {
	if len(key) < MinKey || len(key) > MaxKey {
		return fail(ErrUnsupported, "a key has %d to %d bytes: %d", MinKey, MaxKey, len(key))
	}
	return nil
}

// KeyID returns the id of a key, which a sealed map names. It says nothing about the key.
func KeyID(key []byte) [8]byte {
	return [8]byte(mac(key, []byte("blkmap key id 1")))
}

func mac(key, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil)
}

// seal seals a commit with a key.
func (c *commit) seal(key []byte) {
	c.sealed, c.keyID, c.tag = true, KeyID(key), hash256{}
	c.tag = hash256(mac(key, c.bytes()[:tagAt]))
}

// checkSeal returns an error unless the commit is sealed with a key.
func (c *commit) checkSeal(key []byte) error {
	switch {
	case !c.sealed:
		return fail(ErrSeal, "is not sealed")
	case c.keyID != KeyID(key):
		return fail(ErrSeal, "is sealed with another key")
	case !hmac.Equal(c.tag[:], mac(key, c.bytes()[:tagAt])):
		return fail(ErrSeal, "has a wrong seal: it was not made with this key")
	}
	return nil
}
