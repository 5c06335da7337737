package checkfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blkhash/blkhash/go"
)

// checksum computes a checksum of content in memory.
func checksum(t testing.TB, p blkhash.Parameters, content []byte) []byte {
	t.Helper()
	digest, err := blkhash.Sum(t.Context(), bytes.NewReader(content), int64(len(content)), nil, p)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func valueOfContent(t testing.TB, p blkhash.Parameters, content []byte) Value {
	return Value{Digest: checksum(t, p, content)}
}

// expectContent calls Expect with content in memory.
func expectContent(t testing.TB, content []byte, v Value, o Options) Match {
	t.Helper()
	m, err := Expect(t.Context(), bytes.NewReader(content), int64(len(content)), nil, v, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// text returns content that is no list of digests.
func text(n int) []byte {
	return bytes.Repeat([]byte("a text of some length\n"), n/22+1)[:n]
}

// noise returns bytes without a pattern.
func noise(n int) []byte {
	var p []byte
	for i := 0; len(p) < n; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d", i))
		p = append(p, sum[:]...)
	}
	return p[:n]
}

func TestExpect(t *testing.T) {
	content, file := text(200_000), slices.Concat([]byte("header"), text(100_000))
	o := Options{Bytes: bytes.NewReader(file), BytesSize: int64(len(file))}
	for _, test := range []struct {
		p     blkhash.Parameters
		bytes bool
		want  string
		tag   string
	}{
		{blkhash.Parameters{}, false, "streams:4", "BLKSUM-SHA256-STREAMS4-64K"},
		{blkhash.Parameters{Construction: blkhash.Streams(64)}, false, "streams:64", "BLKSUM-SHA256-STREAMS64-64K"},
		{blkhash.Parameters{Construction: blkhash.Flat}, false, "flat", "BLKSUM-SHA256-FLAT-64K"},
		{linear(blkhash.SHA256), false, "linear", "BLKSUM-SHA256-LINEAR"},
		{linear(blkhash.MD5), false, "md5, linear", "BLKSUM-MD5-LINEAR"},
		{linear(blkhash.SHA256), true, "bytes of the file", "SHA256"},
		{linear(blkhash.BLAKE2s256), true, "blake2s256, bytes of the file", "BLAKE2s-256"},
		{blkhash.Parameters{Algorithm: blkhash.BLAKE2b256, Construction: blkhash.Concat, BlockSize: 4 << 20}, false,
			"blake2b256, concat, blocks of 4 MiB", "BLKSUM-BLAKE2B256-CONCAT-4M"},
		{linear(blkhash.CRC32C), true, "crc32c, bytes of the file", "CRC32C"},
	} {
		hashed := content
		if test.bytes {
			hashed = file
		}
		v := valueOfContent(t, test.p, hashed)
		m := expectContent(t, content, v, o)
		if !m.OK || m.Reading.String() != test.want || m.Tag.String() != test.tag || m.Reading.Bytes != test.bytes ||
			!m.Reading.Parameters.Equal(test.p) || m.Uncovered != nil {
			t.Errorf("%s: %+v", test.want, m)
		}
		// The tag says the same without a search.
		entry := NewEntry("x", v.Digest, m.Tag)
		m, err := ExpectLine(t.Context(), bytes.NewReader(content), int64(len(content)), nil, entry, o)
		if err != nil || !m.OK || len(m.Tried) != 1 || m.Reading.String() != test.want {
			t.Errorf("%s: %+v, %v", entry, m, err)
		}
		entry.Digest[0] ^= 1
		m, err = ExpectLine(t.Context(), bytes.NewReader(content), int64(len(content)), nil, entry, o)
		if err != nil || m.OK || m.Tag.Parameters.Algorithm != "" {
			t.Errorf("%s: %+v, %v", entry, m, err)
		}
	}
	m := expectContent(t, content, Value{Digest: make([]byte, 20)}, o)
	want := "is not streams:4, streams:32, streams:64, flat, concat, linear, concat with blocks of 4 MiB " +
		"and bytes of the file of sha1"
	if m.OK || m.String() != want {
		t.Error(m)
	}
	// Without the bytes of the file, they are not tried.
	v := valueOfContent(t, linear(blkhash.SHA256), file)
	if m := expectContent(t, content, v, Options{}); m.OK || len(m.Tried) != 42 {
		t.Error(m)
	}
}

func TestExpectNarrowed(t *testing.T) {
	content := text(100_000)
	flat := valueOfContent(t, blkhash.Parameters{Construction: blkhash.Flat, BlockSize: 4096}, content)
	if m := expectContent(t, content, flat, Options{BlockSize: 4096}); !m.OK || m.String() != "flat, blocks of 4 KiB" {
		t.Error(m)
	}
	if m := expectContent(t, content, flat, Options{Construction: blkhash.Flat}); m.OK || len(m.Tried) != 6 {
		t.Error(m)
	}
	o := Options{Algorithms: []blkhash.Algorithm{blkhash.SHA256}, Construction: blkhash.Flat, BlockSize: 4096}
	if m := expectContent(t, content, flat, o); !m.OK || len(m.Tried) != 1 {
		t.Error(m)
	}
	o = Options{Algorithms: []blkhash.Algorithm{blkhash.SHA256, blkhash.XXH128, blkhash.XXH128}}
	if got := o.digests(Value{Digest: make([]byte, 16)}); !slices.Equal(got, []blkhash.Algorithm{blkhash.XXH128}) {
		t.Error(got)
	}
	xxh := valueOfContent(t, linear(blkhash.XXH128), content)
	if m := expectContent(t, content, xxh, Options{}); m.OK {
		t.Errorf("xxh128 can be forged: %v", m)
	}
	if m := expectContent(t, content, xxh, Options{Algorithms: []blkhash.Algorithm{blkhash.XXH128}}); !m.OK {
		t.Error(m)
	}
	xxh.Algorithm = blkhash.XXH128
	if m := expectContent(t, content, xxh, Options{}); !m.OK {
		t.Error(m)
	}
	for _, o := range []Options{
		{Algorithms: []blkhash.Algorithm{blkhash.MD5}}, {Algorithms: []blkhash.Algorithm{"md6"}}, {Construction: "tree"},
		{Construction: blkhash.FSVerity}, {BlockSize: 1000}, {IsFile: true, Bytes: bytes.NewReader(nil)},
		{IsFile: true, Content: Content{Partition: 1}}, {Content: Content{Offset: 1}}, {BytesSize: -1},
	} {
		if m, err := Expect(t.Context(), bytes.NewReader(content), 1, nil, flat, o); err == nil {
			t.Errorf("%+v: %+v", o, m)
		}
	}
}

func TestExpectParts(t *testing.T) {
	file := text(3 << 20)
	v := valueOfContent(t, blkhash.Parameters{Construction: blkhash.Concat, BlockSize: 1 << 20}, file)
	v.Parts = 3
	m := expectContent(t, file, v, Options{IsFile: true})
	isTag := m.Tag.String() == "BLKSUM-SHA256-CONCAT-1M/FORMAT=raw"
	if !m.OK || m.String() != "concat, blocks of 1 MiB" || !isTag || !m.Reading.Bytes {
		t.Error(m)
	}
	m = expectContent(t, text(10), v, Options{Bytes: bytes.NewReader(file), BytesSize: int64(len(file))})
	if !m.OK || len(m.Untried) != 1 {
		t.Error(m)
	}
	v.Parts = 7
	if m := expectContent(t, file, v, Options{IsFile: true}); m.OK || len(m.Tried) != 0 || len(m.Untried) != 1 {
		t.Error(m)
	}
	v.Parts = 3
	if m := expectContent(t, file, v, Options{}); m.OK || len(m.Tried) != 0 || len(m.Untried) != 1 {
		t.Error(m)
	}
	for _, test := range []struct {
		length int64
		parts  int
		size   int
	}{
		{300 << 20, 38, 8 << 20}, {300 << 20, 37, 0}, {16 << 20, 2, 8 << 20}, {0, 1, 512}, {1, 1, 512}, {513, 1, 1024},
		{1 << 40, 1, 0},
	} {
		o := Options{}
		row, ok := o.parts(Value{Digest: testDigest, Parts: test.parts}, test.length)
		if ok != (test.size > 0) || ok && row.parameters[0].BlockSize != test.size {
			t.Errorf("%+v: %+v", test, row)
		}
	}
}

// forgery is content that has the value of other content, or of another way to hash.
type forgery struct {
	name    string
	content []byte
	value   Value
}

// forgeries returns what anyone can make who can read an image.
func forgeries(t testing.TB) []forgery {
	const size = 64 << 10
	original := noise(16*4*size - 1000)
	var all, flat, streams []byte
	lists := make([][]byte, 4)
	for i := 0; i*size < len(original); i++ {
		sum := sha256.Sum256(original[i*size : min(len(original), (i+1)*size)])
		all = append(all, sum[:]...)
		lists[i%4] = append(lists[i%4], sum[:]...)
	}
	flat = binary.LittleEndian.AppendUint64(slices.Clone(all), uint64(len(original)))
	for _, list := range lists {
		sum := sha256.Sum256(list)
		streams = append(streams, sum[:]...)
	}
	found := []forgery{
		{"concat", all, valueOfContent(t, blkhash.Parameters{Construction: blkhash.Concat}, original)},
		{"flat", flat, valueOfContent(t, blkhash.Parameters{Construction: blkhash.Flat}, original)},
		{"streams", streams, valueOfContent(t, blkhash.Parameters{}, original)},
	}
	// The lists of the streams fill whole blocks of concat.
	long := noise(1024 * 512)
	var dealt []byte
	for i := range lists {
		for j := i; j*512 < len(long); j += 4 {
			sum := sha256.Sum256(long[j*512:][:512])
			dealt = append(dealt, sum[:]...)
		}
	}
	// 256 digests of 32 bytes each are blocks of 8 KiB.
	found = append(found, forgery{"streams as concat", dealt, Value{Digest: func() []byte {
		p := blkhash.Parameters{Construction: blkhash.Streams(4), BlockSize: 512}
		digest := checksum(t, p, long)
		p = blkhash.Parameters{Construction: blkhash.Concat, BlockSize: 8192}
		if !bytes.Equal(digest, checksum(t, p, dealt)) {
			t.Fatal("the forgery is none")
		}
		return digest
	}()}})
	return append(found, verityForgeries(t)...)
}

// verityForgeries returns the last inputs of the hash function of verity.
func verityForgeries(t testing.TB) (found []forgery) {
	content := noise(3 * 4096)
	for _, salt := range [][]byte{nil, {1, 2, 3, 4}, make([]byte, 32), noise(256)} {
		block := make([]byte, 4096)
		for i := range 3 {
			sum := sha256.Sum256(slices.Concat(salt, content[i*4096:][:4096]))
			copy(block[i*32:], sum[:])
		}
		p := blkhash.Parameters{Construction: blkhash.DMVerity, Salt: salt}
		found = append(found, forgery{"dm-verity", slices.Concat(salt, block), valueOfContent(t, p, content)})
	}
	descriptor := make([]byte, 256)
	copy(descriptor, []byte{1, 1, 12})
	binary.LittleEndian.PutUint64(descriptor[8:], 4096)
	sum := sha256.Sum256(content[:4096])
	copy(descriptor[16:], sum[:])
	p := blkhash.Parameters{Construction: blkhash.FSVerity}
	return append(found, forgery{"fs-verity", descriptor, valueOfContent(t, p, content[:4096])})
}

func TestForgeriesAreNoMatches(t *testing.T) {
	for _, f := range forgeries(t) {
		o := Options{}
		if f.name == "streams as concat" {
			o.BlockSize = 8192
		}
		for _, isFile := range []bool{false, true} {
			o.IsFile = isFile
			m := expectContent(t, f.content, f.value, o)
			isTold := strings.Contains(m.String(), "list of the digests")
			if m.OK || m.Doubt != ListOfDigests || m.Tag.Parameters.Algorithm != "" || !isTold {
				t.Errorf("%s, %v: %+v", f.name, isFile, m)
			}
		}
		o = Options{Bytes: bytes.NewReader(f.content), BytesSize: int64(len(f.content)), BlockSize: o.BlockSize}
		if f.name == "streams as concat" {
			continue // Of the bytes of a file, only linear is tried.
		}
		if m := expectContent(t, text(1000), f.value, o); m.OK || m.Doubt != ListOfDigests {
			t.Errorf("%s: %+v", f.name, m)
		}
		o.Decoded = true
		if m := expectContent(t, text(1000), f.value, o); !m.OK || m.Doubt != NoDoubt {
			t.Errorf("%s: %+v", f.name, m)
		}
		// Where the construction is named, there is nothing to confuse.
		if m := expectContent(t, f.content, f.value, Options{Construction: blkhash.Linear}); !m.OK {
			t.Errorf("%s: %+v", f.name, m)
		}
	}
}

func TestBlocksOfTrees(t *testing.T) {
	isDoubted := func(parts ...[]byte) bool {
		content := slices.Concat(parts...)
		s, err := shapeOf(bytes.NewReader(content), int64(len(content)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.doubt(linear(blkhash.SHA256), true) == ListOfDigests
	}
	high := func(n int) []byte { return bytes.Repeat([]byte{0xa5}, n) }
	for _, size := range []int{512, 4096, 65536} {
		block := slices.Concat(high(96), make([]byte, size-96))
		for _, salt := range [][]byte{nil, {7, 7, 7, 7}, make([]byte, 32), bytes.Repeat([]byte{7}, 256)} {
			// A full block ends with a digest.
			if !isDoubted(salt, block) || !isDoubted(block, salt) || !isDoubted(salt, high(size)) {
				t.Errorf("%d bytes, salt of %d", size, len(salt))
			}
		}
		if isDoubted(make([]byte, size)) || isDoubted(block[:size-1], []byte{1}) || isDoubted(block, make([]byte, 1000)) {
			t.Errorf("%d bytes", size)
		}
	}
	descriptor := slices.Concat([]byte{1, 1, 12, 0}, make([]byte, 252))
	if isDoubted(high(96), make([]byte, 1<<20-96)) {
		t.Error("no tree has such blocks")
	}
	if !isDoubted(descriptor) || isDoubted(descriptor, make([]byte, 700), []byte("x")) {
		t.Error("descriptor")
	}
	// Text is no list, where it is long enough to tell.
	var short []int
	for n := range 5000 {
		if isDoubted(text(n)) {
			short = append(short, n)
		}
	}
	if !slices.Equal(short, []int{32, 64, 96}) {
		t.Error(short)
	}
	if s := (shape{length: 32, format: "raw"}); s.doubt(linear(blkhash.CRC32C), true) != NoDoubt {
		t.Error("a CRC shows no attacks")
	}
}

func TestContentThatIsAnImage(t *testing.T) {
	tar := make([]byte, 2048)
	copy(tar, "x")
	copy(tar[148:], "000570 \x00")
	footer := func(magic string) []byte {
		return append(text(2048-512), append([]byte(magic), text(512-len(magic))...)...)
	}
	for name, test := range map[string]struct {
		content []byte
		want    Doubt
	}{
		"qcow2":     {append([]byte("QFI\xfb\x00\x00\x00\x03"), text(1000)...), InnerImage},
		"vhdx":      {append([]byte("vhdxfile"), text(1000)...), InnerImage},
		"luks":      {append([]byte("LUKS\xba\xbe"), text(1000)...), InnerImage},
		"dmg":       {footer("koly"), InnerImage},
		"vpc":       {footer("conectix"), InnerImage},
		"old vpc":   {footer("xconectix"), InnerImage},
		"tar":       {tar, InnerArchive},
		"gzip":      {append([]byte("\x1f\x8b\x08"), text(1000)...), InnerCompressed},
		"zstd":      {append([]byte("\x28\xb5\x2f\xfd"), text(1000)...), InnerCompressed},
		"skippable": {append([]byte("\x53\x2a\x4d\x18"), text(1000)...), InnerCompressed},
		"bzip2":     {append([]byte("BZh91AY&SY"), text(1000)...), InnerCompressed},
		"text":      {text(1000), NoDoubt},
	} {
		v := valueOfContent(t, linear(blkhash.SHA256), test.content)
		m := expectContent(t, test.content, v, Options{})
		if m.OK != (test.want == NoDoubt) || m.Doubt != test.want {
			t.Errorf("%s: %+v", name, m)
		}
		if m := expectContent(t, test.content, v, Options{IsFile: true}); !m.OK {
			t.Errorf("%s: %+v", name, m)
		}
		flat := valueOfContent(t, blkhash.Parameters{Construction: blkhash.Flat}, test.content)
		if m := expectContent(t, test.content, flat, Options{}); !m.OK {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// failing is content that cannot be read.
type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestContentThatCannotBeRead(t *testing.T) {
	failed, file := errors.New("failed"), text(1000)
	v := valueOfContent(t, linear(blkhash.SHA256), file)
	o := Options{Bytes: bytes.NewReader(file), BytesSize: int64(len(file))}
	for _, content := range []io.ReaderAt{failing{failed}, nil} {
		m, err := Expect(t.Context(), content, 1000, nil, v, o)
		if err != nil || !m.OK || !m.Reading.Bytes || m.Uncovered == nil {
			t.Errorf("%+v, %v", m, err)
		}
		if m, err := Expect(t.Context(), content, 1000, nil, Value{Digest: testDigest}, o); err == nil {
			t.Errorf("%+v", m)
		}
		if m, err := Expect(t.Context(), content, 1000, nil, v, Options{}); err == nil {
			t.Errorf("%+v", m)
		}
	}
	neither := Options{Bytes: failing{errors.New("other")}, BytesSize: 10}
	_, err := Expect(t.Context(), failing{failed}, 1000, nil, v, neither)
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	// A later pass that fails ends nothing.
	m := expectContent(t, text(10), v, Options{Bytes: failing{failed}, BytesSize: 10})
	if m.OK || len(m.Untried) != 1 || !strings.Contains(m.Untried[0], "failed") {
		t.Errorf("%+v", m)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(failed)
	if _, err := Expect(ended, bytes.NewReader(file), 1000, nil, v, o); !errors.Is(err, failed) {
		t.Error(err)
	}
}

func TestTagsOfOtherContent(t *testing.T) {
	content := text(1024)
	part := TagOf(blkhash.Parameters{})
	part.Content = Content{Offset: 512}
	v := Value{Digest: checksum(t, blkhash.Parameters{}, content), Tag: &part}
	_, err := Expect(t.Context(), bytes.NewReader(content), 1024, nil, v, Options{})
	if !errors.Is(err, ErrContent) || !strings.Contains(err.Error(), "OFFSET=512, and not all") {
		t.Error(err)
	}
	if m := expectContent(t, content, v, Options{Content: part.Content}); !m.OK || !m.Tag.Equal(part) {
		t.Error(m)
	}
	// A match of a part is a match of a tag that records the part.
	v.Tag = nil
	if m := expectContent(t, content, v, Options{Content: part.Content}); !m.OK || !m.Tag.Equal(part) {
		t.Error(m)
	}
	plain := PlainTag(blkhash.SHA256)
	v = Value{Digest: checksum(t, linear(blkhash.SHA256), content), Tag: &plain}
	if _, err := Expect(t.Context(), bytes.NewReader(content), 1024, nil, v, Options{}); err == nil {
		t.Error("a plain tag is of the bytes of the file")
	}
	if m := expectContent(t, content, v, Options{IsFile: true}); !m.OK || !m.Reading.Bytes {
		t.Error(m)
	}
}

// sparse is content of zeros that nothing may read.
func sparse(size int64) blkhash.Extents {
	return func(yield func(blkhash.Extent, error) bool) {
		yield(blkhash.Extent{Offset: 512, Length: size - 1024, Zero: true}, nil)
	}
}

// ends is content of which only the first and the last sector are stored.
type ends struct{ size int64 }

func (e ends) ReadAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > 512 && offset < e.size-512 {
		return 0, fmt.Errorf("read of %d bytes of a hole at %d", len(p), offset)
	}
	return copy(p, bytes.Repeat([]byte{'x'}, len(p))), nil
}

func TestZerosThatAreNotStored(t *testing.T) {
	const size = 65 << 30
	v := Value{Digest: testDigest}
	o := Options{Algorithms: []blkhash.Algorithm{blkhash.SHA256}}
	m, err := Expect(t.Context(), ends{size}, size, sparse(size), v, o)
	isTold := slices.Equal(m.Untried, []string{"linear of so many zeros takes long"})
	if err != nil || m.OK || len(m.Tried) != 6 || !isTold {
		t.Errorf("%+v, %v", m, err)
	}
	// For a line of a large image only the most common digest is tried.
	entry := Entry{Name: "x", Digest: testDigest}
	for size, tried := range map[int64]int{1 << 30: 6, 1<<30 + 512: 1} {
		o := Options{Construction: blkhash.Flat}
		m, err = ExpectLine(t.Context(), ends{size}, size, sparse(size), entry, o)
		if err != nil || m.OK || len(m.Tried) != tried {
			t.Errorf("%+v, %v", m, err)
		}
		m, err = Expect(t.Context(), ends{size}, size, sparse(size), entry.Value(), o)
		if err != nil || m.OK || len(m.Tried) != 6 {
			t.Errorf("%+v, %v", m, err)
		}
	}
	s := &search{options: &Options{}}
	all := combine(digestsOfSize(32), []blkhash.Parameters{{}, {Construction: blkhash.Linear}})
	left := s.affordable(source{nil, 1 << 62, sparse(1 << 62)}, all, true)
	if len(left) != 0 || len(s.match.Untried) != 2 {
		t.Error(left, s.match.Untried)
	}
	s = &search{options: &Options{AllZeros: true}}
	if left := s.affordable(source{nil, 1 << 62, sparse(1 << 62)}, all, true); len(left) != len(all) {
		t.Error(left)
	}
}

func TestReadRange(t *testing.T) {
	content := noise(5000)
	extents := func(yield func(blkhash.Extent, error) bool) {
		for _, e := range []blkhash.Extent{
			{Offset: 100, Length: 400, Zero: true}, {Offset: 600, Length: 100}, {Offset: 700, Length: 1000, Zero: true},
			{Offset: 1700, Length: 300, Zero: true}, {Offset: 4900, Length: 100, Zero: true},
		} {
			if e.Zero {
				clear(content[e.Offset:e.End()])
			}
			if !yield(e, nil) {
				return
			}
		}
	}
	extents(func(blkhash.Extent, error) bool { return true })
	for _, r := range [][2]int{
		{0, 5000}, {0, 50}, {50, 150}, {100, 500}, {450, 620}, {650, 1800}, {1000, 1500}, {1999, 4950}, {4900, 5000},
		{5000, 5000},
	} {
		p := bytes.Repeat([]byte{1}, r[1]-r[0])
		err := readRange(bytes.NewReader(content), 5000, extents, p, int64(r[0]))
		if err != nil || !bytes.Equal(p, content[r[0]:r[1]]) {
			t.Error(r, err)
		}
	}
	err := readRange(bytes.NewReader(content), 6000, nil, make([]byte, 10), 4995)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestExpectFile(t *testing.T) {
	folder := t.TempDir()
	create := func(name string, content []byte) *os.File {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	content := text(10_000)
	v := valueOfContent(t, linear(blkhash.SHA512), content)
	m, err := ExpectFile(t.Context(), create("raw", content), v, Options{})
	if err != nil || m.String() != "sha512, linear" {
		t.Error(m, err)
	}
	for name, content := range map[string][]byte{
		"qcow2": []byte("QFI\xfb\x00\x00\x00\x03"),
		"gz":    []byte("\x1f\x8b\x08"),
		"vpc":   slices.Concat(text(512), []byte("conectix"), text(504)),
	} {
		m, err := ExpectFile(t.Context(), create(name, content), v, Options{})
		if !errors.Is(err, ErrNotRaw) {
			t.Error(name, m, err)
		}
	}
}

// TestTagOfAFile takes the tag that it returned for a raw image.
func TestTagOfAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(name, noise(3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	sum, err := blkhash.SumFile(t.Context(), f, blkhash.Parameters{})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"", "raw"} {
		tag := TagOf(blkhash.Parameters{})
		tag.Content.Format = format
		match, err := ExpectFile(t.Context(), f, NewEntry("disk", sum, tag).Value(), Options{})
		if err != nil || !match.OK {
			t.Errorf("format %q: %s, %v", format, match, err)
		}
	}
}

// TestPlainTagOfAnImage is of the bytes of a file in another format.
func TestPlainTagOfAnImage(t *testing.T) {
	bytes := append([]byte("QFI\xfb\x00\x00\x00\x03"), noise(1<<20)...)
	name := filepath.Join(t.TempDir(), "disk.qcow2")
	if err := os.WriteFile(name, bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	line := fmt.Sprintf("%x  disk.qcow2", sha256.Sum256(bytes))
	if _, err := ExpectFile(t.Context(), f, mustValue(t, line), Options{}); !errors.Is(err, ErrNotRaw) {
		t.Errorf("without a tag: %v", err)
	}
	entry, err := (&Parser{Bytes: true}).Parse([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	match, err := ExpectFile(t.Context(), f, entry.Value(), Options{})
	if err != nil || match.Err() != nil {
		t.Errorf("%s, %v", match, err)
	}
	value := entry.Value()
	value.Digest[0]++
	match, err = ExpectFile(t.Context(), f, value, Options{})
	if err != nil || !errors.Is(match.Err(), ErrNoMatch) {
		t.Errorf("another digest: %v, %v", match.Err(), err)
	}
}

func mustValue(t *testing.T, text string) Value {
	t.Helper()
	v, err := ParseValue(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
