package digests

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"hash"
	"math/rand/v2"
	"os"
	"testing"
)

// vector is a line of test-vectors/digests.json.
type vector struct {
	Digest, Pattern, Text, Hex string
	Length                     int
}

func (v vector) input() []byte {
	input := make([]byte, v.Length)
	for i := range input {
		switch v.Pattern {
		case "counter251":
			input[i] = byte(i % 251)
		case "text":
			input[i] = v.Text[i%len(v.Text)]
		}
	}
	return input
}

// keyed is the number of vectors of siphash, which needs a key and is not in the table.
const keyed = 51

func TestVectors(t *testing.T) {
	text, err := os.ReadFile("../../../test-vectors/digests.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Count              int
		Vectors, Published []vector
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	tested, left := 0, 0
	for _, v := range append(file.Vectors, file.Published...) {
		if v.Digest == "siphash" {
			left++
			continue
		}
		row := Get(v.Digest)
		if row == nil {
			t.Fatalf("unknown digest %s", v.Digest)
		}
		h, input := row.New(), v.input()
		h.Write(input)
		if got := hex.EncodeToString(h.Sum(nil)); got != v.Hex {
			t.Errorf("%s of %d bytes: %s, not %s", v.Digest, v.Length, got, v.Hex)
		}
		if h.Size() != row.Size {
			t.Errorf("%s: size %d", v.Digest, h.Size())
		}
		h.Reset()
		for len(input) > 0 {
			n := min(len(input), 1+rand.IntN(3000))
			h.Write(input[:n])
			h.Sum(nil)
			input = input[n:]
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != v.Hex {
			t.Errorf("%s of %d bytes in parts: %s", v.Digest, v.Length, got)
		}
		tested++
	}
	if left != keyed || tested+left != file.Count {
		t.Errorf("tested %d and left out %d of %d vectors", tested, left, file.Count)
	}
}

// TestStates compares a hash with its clone and with one that has its saved state.
func TestStates(t *testing.T) {
	for _, row := range Table {
		for _, length := range []int{0, 1, 63, 64, 1024, 16384, 16385, 100_000} {
			first, second := bytes.Repeat([]byte("first"), length), []byte("second")
			h := row.New()
			h.Write(first)
			cloned, err := h.(hash.Cloner).Clone()
			if err != nil {
				t.Fatalf("%s: %v", row.Name, err)
			}
			restored := row.New()
			if m, ok := h.(encoding.BinaryMarshaler); ok {
				state, err := m.MarshalBinary()
				if err != nil {
					t.Fatalf("%s: %v", row.Name, err)
				}
				if err := restored.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
					t.Fatalf("%s: %v", row.Name, err)
				}
			} else if row.Name == "xxh3" || row.Name == "xxh128" {
				restored.Write(first)
			} else {
				t.Errorf("%s cannot save its state", row.Name)
			}
			h.Write(second)
			want := h.Sum(nil)
			for _, other := range []hash.Hash{cloned, restored} {
				other.Write(second)
				if !bytes.Equal(other.Sum(nil), want) {
					t.Errorf("%s: another value after %d bytes", row.Name, length)
				}
			}
		}
	}
}
