package checkfile

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// decodePadded reads hexadecimal digits, or base64 with its padding, as lines have it.
func decodePadded(text string) ([]byte, bool) {
	if isHex(text) {
		return decodeHex(text)
	}
	return decodeBase64(text, base64.StdEncoding)
}

// decodeAny reads hexadecimal digits, or base64 in either alphabet, with or without its padding, as values have it. An
// odd number of digits is base64: a CRC of zeros can look like that.
func decodeAny(text string) ([]byte, bool) {
	if isHex(text) && len(text)%2 == 0 {
		return decodeHex(text)
	}
	return decodeAnyBase64(text)
}

func decodeAnyBase64(text string) ([]byte, bool) {
	for _, encoding := range []*base64.Encoding{
		base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding,
	} {
		if digest, ok := decodeBase64(text, encoding); ok {
			return digest, true
		}
	}
	return nil, false
}

func decodeHex(text string) ([]byte, bool) {
	digest, err := hex.DecodeString(text)
	return digest, err == nil
}

// decodeBase64 reads the one text that an encoding has for a digest: the package base64 would skip newlines.
func decodeBase64(text string, encoding *base64.Encoding) ([]byte, bool) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, false
	}
	digest, err := encoding.Strict().DecodeString(text)
	return digest, err == nil
}

// isHex returns whether a text has hexadecimal digits alone.
func isHex(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
		default:
			return false
		}
	}
	return true
}
