package blkhash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"
)

// Hasher computes a checksum of content that is written to it. It implements [hash.Hash], [hash.Cloner],
// [io.ReaderFrom], [encoding.BinaryMarshaler] and [encoding.BinaryUnmarshaler].
//
// Goroutines hash what was written, while the caller continues. They end by themselves, so a Hasher needs no closing.
// Its methods must not be called at the same time.
type Hasher struct {
	parameters Parameters
	options    options
	pass       *pass
	current    *chunk
	// filled is the number of bytes in the buffer of the current chunk.
	filled int
	// number is the next chunk's.
	number int64
	// length is the number of bytes written.
	length int64
	closed bool
	// sum is the checksum after Close.
	sum []byte
}

// New returns a Hasher of empty content.
func New(p Parameters, opts ...Option) (*Hasher, error) {
	h := &Hasher{parameters: p.WithDefaults(), options: newOptions(opts)}
	if err := h.parameters.Check(); err != nil {
		return nil, err
	}
	if h.options.progress != nil {
		return nil, errors.New("blkhash: a Hasher has no progress: the caller writes")
	}
	if err := h.begin(); err != nil {
		return nil, err
	}
	return h, nil
}

// begin replaces the pass by one of no content.
func (h *Hasher) begin() error {
	pass, err := newPass([]Parameters{h.parameters}, h.options.sink, h.options.threads)
	if err != nil {
		return err
	}
	h.pass, h.current = pass, <-pass.free
	h.filled, h.number, h.length, h.closed = 0, 0, 0, false
	return nil
}

// Parameters returns the parameters, without fields that are not set.
func (h *Hasher) Parameters() Parameters {
	return h.parameters
}

// Write adds content. It fails only if a sink failed, the content would have more than 2^63-1 bytes, or after
// [Hasher.Close].
func (h *Hasher) Write(p []byte) (int, error) {
	if err := h.grow(int64(len(p))); err != nil {
		return 0, err
	}
	for rest := p; len(rest) > 0; {
		n := copy(h.room(), rest)
		h.fill(n)
		rest = rest[n:]
	}
	return len(p), h.pass.failed()
}

// WriteZeros adds n bytes of zeros. Whole blocks cost a digest of 32 bytes or so in the place of the block, and next to
// nothing in a tree of verity. With [Linear] all zeros are hashed. It fails as Write does, and if n is negative.
func (h *Hasher) WriteZeros(n int64) error {
	if n < 0 {
		return fmt.Errorf("blkhash: %d zeros", n)
	}
	if err := h.grow(n); err != nil {
		return err
	}
	unit := h.pass.unit
	n -= h.writeZeros(min(n, (unit-int64(h.filled)%unit)%unit))
	if whole := n - n%unit; whole > 0 {
		h.flush()
		c := h.current
		c.length, c.zero = whole, true
		h.dispatch()
		n -= whole
	}
	h.writeZeros(n)
	return h.pass.failed()
}

// writeZeros adds n zeros to buffers, and returns n.
func (h *Hasher) writeZeros(n int64) int64 {
	for rest := n; rest > 0; {
		room := h.room()
		part := int(min(rest, int64(len(room))))
		clear(room[:part])
		h.fill(part)
		rest -= int64(part)
	}
	return n
}

// ReadFrom adds all that r has, without copying it between buffers. [io.Copy] calls it.
func (h *Hasher) ReadFrom(r io.Reader) (int64, error) {
	if err := h.grow(0); err != nil {
		return 0, err
	}
	start := h.length
	for {
		room := h.room()
		n, err := r.Read(room)
		if n < 0 || n > len(room) {
			return h.length - start, errors.New("blkhash: invalid count from a reader")
		}
		if err := h.grow(int64(n)); err != nil {
			return h.length - start, err
		}
		h.fill(n)
		if errors.Is(err, io.EOF) {
			return h.length - start, nil
		}
		if err != nil {
			return h.length - start, err
		}
	}
}

// grow counts n more bytes.
func (h *Hasher) grow(n int64) error {
	if h.closed {
		return errClosed
	}
	if n > math.MaxInt64-h.length {
		return errors.New("blkhash: content of more than 2^63-1 bytes")
	}
	if err := h.pass.failed(); err != nil {
		return err
	}
	h.length += n
	return nil
}

// room returns the buffer for what comes next. It is not empty.
func (h *Hasher) room() []byte {
	h.current.grow(h.pass.room)
	return h.current.buffer[h.filled:]
}

// fill adds n bytes that are in the buffer already.
func (h *Hasher) fill(n int) {
	h.filled += n
	if h.filled == len(h.current.buffer) {
		h.flush()
	}
}

// flush hashes the whole blocks in the buffer. What follows them moves to the next buffer.
func (h *Hasher) flush() {
	c := h.current
	whole := h.filled - h.filled%int(h.pass.unit)
	if whole == 0 {
		return
	}
	rest := h.filled - whole
	c.length, c.zero = int64(whole), false
	if rest == 0 {
		h.dispatch()
		return
	}
	short := slices.Clone(c.buffer[whole:h.filled])
	h.dispatch()
	h.current.grow(h.pass.room)
	h.filled = copy(h.current.buffer, short)
}

// dispatch hashes the current chunk, and takes the next one.
func (h *Hasher) dispatch() {
	c := h.current
	c.number = h.number
	h.number++
	switch {
	case c.zero:
		h.pass.guard(func() { h.pass.done(c) })
	case cap(h.pass.free) == 1:
		h.pass.guard(func() { c.hash(); h.pass.done(c) })
	default:
		go h.pass.guard(func() { c.hash(); h.pass.done(c) })
	}
	h.current, h.filled = h.pass.take(), 0
	if h.current == nil {
		_ = h.pass.failed() // panics
	}
}

// settle waits until all whole blocks are added.
func (h *Hasher) settle() error {
	h.flush()
	return h.pass.wait(h.number)
}

// Sum appends the checksum of what was written so far to b. It panics if a sink failed, or if the length is not one
// that dm-verity is defined for; [Hasher.Close] returns an error instead.
func (h *Hasher) Sum(b []byte) []byte {
	if h.closed {
		return append(b, h.sum...)
	}
	if err := h.settle(); err != nil {
		panic(err)
	}
	sum, err := h.ended(h.pass.clone())
	if err != nil {
		panic(err)
	}
	return append(b, sum...)
}

// Close ends the content: it passes a short last block to the sink, and returns the checksum. Writing after it fails
// until [Hasher.Reset]. Only a Hasher with a sink needs it.
func (h *Hasher) Close() ([]byte, error) {
	if h.closed {
		return nil, errClosed
	}
	if err := h.settle(); err != nil {
		return nil, err
	}
	sum, err := h.ended(h.pass)
	if err != nil {
		return nil, err
	}
	h.sum, h.closed = sum, true
	return bytes.Clone(sum), nil
}

// ended returns the checksum after adding a short last block to p.
func (h *Hasher) ended(p *pass) ([]byte, error) {
	if err := h.parameters.checkLength(h.length); err != nil {
		return nil, err
	}
	if h.filled > 0 {
		c := &chunk{
			length:  int64(h.filled),
			buffer:  h.current.buffer,
			leaves:  h.current.leaves,
			digests: make([][]byte, len(p.leaves)),
		}
		c.hash()
		if err := p.add(c); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.fail(err)
			return nil, err
		}
	}
	sums, err := p.sums(h.length)
	if err != nil {
		return nil, err
	}
	return sums[0], nil
}

// Reset removes all content. A sink stays.
func (h *Hasher) Reset() {
	h.pass.settled(h.number)
	if err := h.begin(); err != nil {
		panic(err) // New did the same
	}
}

// Size returns the length of the checksum in bytes.
func (h *Hasher) Size() int {
	return h.parameters.Algorithm.Size()
}

// BlockSize returns the length of a block, or of the digest for [Linear].
func (h *Hasher) BlockSize() int {
	if h.parameters.Construction.HasBlocks() {
		return h.parameters.BlockSize
	}
	return h.parameters.Algorithm.New().BlockSize()
}

// Clone returns a Hasher of the same content. A Hasher with a sink has none.
func (h *Hasher) Clone() (hash.Cloner, error) {
	if h.options.sink != nil {
		return nil, fmt.Errorf("blkhash: copy of a hasher with a sink: %w", errors.ErrUnsupported)
	}
	if err := h.settle(); err != nil {
		return nil, err
	}
	copied := &Hasher{parameters: h.parameters, options: h.options}
	if err := copied.begin(); err != nil {
		return nil, err
	}
	state := h.pass.clone()
	copied.pass.folds, copied.pass.linear = state.folds, state.linear
	copied.length, copied.closed, copied.sum = h.length, h.closed, h.sum
	if h.filled > 0 {
		copied.filled = copy(copied.room(), h.current.buffer[:h.filled])
	}
	return copied, nil
}

var errClosed = errors.New("blkhash: the hasher is closed")

// stateMagic begins the state of a Hasher.
const stateMagic = "blkhash\x01"

// MarshalBinary returns the state, with which another Hasher of the same parameters continues. It holds up to a block
// of the content. It fails for [XXH3] and [XXH128], and if a sink failed. A sink is not a part of the state.
func (h *Hasher) MarshalBinary() ([]byte, error) {
	return h.AppendBinary(nil)
}

// AppendBinary appends the state of [Hasher.MarshalBinary] to b.
func (h *Hasher) AppendBinary(b []byte) ([]byte, error) {
	if h.closed {
		return nil, errClosed
	}
	if err := h.settle(); err != nil {
		return nil, err
	}
	b = append(b, stateMagic...)
	b = appendText(b, h.key())
	b = binary.AppendUvarint(b, uint64(h.length))
	var err error
	for _, folds := range h.pass.folds {
		if b, err = folds[0].appendState(b); err != nil {
			return nil, err
		}
	}
	for _, linear := range h.pass.linear {
		if b, err = appendHash(b, linear); err != nil {
			return nil, err
		}
	}
	return append(b, h.current.buffer[:h.filled]...), nil
}

// UnmarshalBinary replaces the content by the content of a state. It fails if the state is not valid or has other
// parameters, and the Hasher then has empty content. A state determines the checksum, so take it only from where you
// would take the content.
func (h *Hasher) UnmarshalBinary(state []byte) error {
	h.Reset()
	if err := h.restore(state); err != nil {
		h.Reset()
		return err
	}
	return nil
}

func (h *Hasher) restore(state []byte) error {
	if len(state) < len(stateMagic) || string(state[:len(stateMagic)]) != stateMagic {
		return errState
	}
	key, state, err := cutBytes(state[len(stateMagic):])
	if err != nil {
		return err
	}
	if string(key) != h.key() {
		return errors.New("blkhash: state of a hash with other parameters")
	}
	length, n := binary.Uvarint(state)
	if n <= 0 || length > math.MaxInt64 {
		return errState
	}
	state = state[n:]
	for _, folds := range h.pass.folds {
		if state, err = folds[0].restore(state, int64(length/uint64(h.pass.unit))); err != nil {
			return err
		}
	}
	for _, linear := range h.pass.linear {
		if state, err = restoreHash(state, linear); err != nil {
			return err
		}
	}
	if uint64(len(state)) != length%uint64(h.pass.unit) {
		return errState
	}
	h.length = int64(length)
	if len(state) > 0 {
		h.filled = copy(h.room(), state)
	}
	return nil
}

// key returns the parameters as a text.
func (h *Hasher) key() string {
	p := h.parameters
	return fmt.Sprintf("%s %s %d %x", p.Algorithm, p.Construction, p.BlockSize, p.Salt)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}
