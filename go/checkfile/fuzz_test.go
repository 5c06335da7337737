package checkfile

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
)

// FuzzParse parses lines, prints what they hold in each style, and parses that.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"{}  a\n{} *b\\\n\\{}  c\\n", "{} a\n{}  b", "sha256:{}  a", "SHA256 (a) = {}", "SHA2-256(a)= {}\r\n",
		"BLKSUM-SHA256-STREAMS4-64K/FORMAT=raw/SNAPSHOT=a%20b/OFFSET=512/LENGTH=1024 (a (b)) = {}",
		"BLKSUM-SHA256-DMVERITY-4K-SALT00ff/PARTITION=2 (a) = {}",
		"LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE=  a", "# x\n",
	} {
		f.Add(inHex(line), false)
	}
	f.Add([]byte("; x\na b 0011aabb\n"), false)
	f.Add([]byte("\xff\xfe;\x00\n\x00\xd8\x01"), false)
	f.Add([]byte(strings.Repeat("00", 48)+"  a"), false)
	f.Add([]byte("00112233  a"), true)
	f.Fuzz(func(t *testing.T, text []byte, isCRC bool) {
		p := Parser{}
		if isCRC {
			p.Algorithm = blkhash.CRC32C
		}
		for line := range bytes.Lines(text) {
			entry, err := p.Parse(line)
			if err != nil || entry == nil {
				continue
			}
			if err := entry.Check(); err != nil {
				// Escapes can make a line longer.
				if len(entry.AppendLine(nil, Style{})) <= maxLine {
					t.Fatalf("%q: %v", line, err)
				}
				continue
			}
			for _, style := range []Style{{}, {Binary: true}, {Base64: true}} {
				// Base64 that looks like hexadecimal digits is never read as base64.
				if style.Base64 && isHex(base64.StdEncoding.EncodeToString(entry.Digest)) {
					continue
				}
				printed := entry.AppendLine(nil, style)
				if n := bytes.Count(printed, []byte("\n")); n != 1 {
					t.Fatalf("%q: %d newlines", printed, n)
				}
				again, err := (&Parser{Algorithm: p.Algorithm}).Parse(printed)
				if err != nil && style.Base64 && len(printed) > maxLine {
					continue
				}
				if err != nil || !equalEntries(entry, again) {
					t.Fatalf("%q: %+v, printed as %q: %+v, %v", line, entry, printed, again, err)
				}
			}
		}
		total := 0
		for _, err := range Read(bytes.NewReader(text)) {
			if total++; err == nil && total > len(text) {
				t.Fatal("more entries than bytes")
			}
		}
	})
}

// FuzzValue parses values, and their forms without what does not count.
func FuzzValue(f *testing.F) {
	for _, text := range []string{
		emptyHex, emptyBase64, "sha256:" + emptyHex, "sha256=" + emptyBase64, "sha256-" + emptyBase64, emptyHex + "-38",
		`"` + emptyHex + `"`, emptyHex + "  a", "SHA256 (a) = " + emptyHex, "00112233", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ParseValue(text)
		if err != nil {
			return
		}
		if v.Check() != nil && v.Name == "" {
			t.Fatalf("%q: %+v: %v", text, v, v.Check())
		}
		if v.Tag != nil {
			return
		}
		// The same value in its plainest form.
		plain := Entry{Name: "x", Digest: v.Digest, Algorithm: v.Algorithm}.String()
		again, err := ParseValue(plain[:len(plain)-len("  x")])
		if err != nil || !bytes.Equal(again.Digest, v.Digest) || again.Algorithm != v.Algorithm {
			t.Fatalf("%q: %+v, %q: %+v, %v", text, v, plain, again, err)
		}
		o := Options{}
		if len(o.digests(v)) == 0 {
			t.Fatalf("%q: no digest can have %+v", text, v)
		}
	})
}
