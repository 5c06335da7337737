package blkhash

import (
	"errors"
	"hash"
	"sync"

	"github.com/blkhash/blkhash/go/internal/zeros"
)

const (
	// chunkSize is the length of a chunk with data, if blocks are not longer.
	chunkSize = 1 << 20
	// maxBuffers limits the memory for chunks of a pass.
	maxBuffers = 256 << 20
)

// A Sink receives the digests of blocks as a pass comes to them, in the order of the content. Its methods are not
// called at the same time. After an error the pass ends.
type Sink interface {
	// Blocks receives the digests of one or more blocks, one after the other. It must not keep the slice. Only the last
	// block of the content may be shorter than a block.
	Blocks(digests []byte) error
	// ZeroBlocks receives n whole blocks of zeros at once. Zero blocks among data come to Blocks.
	ZeroBlocks(n int64) error
}

// A ParametersSink is a [Sink] that is for digests with certain parameters. If CheckParameters returns an error, no
// pass begins.
type ParametersSink interface {
	Sink
	CheckParameters(p Parameters) error
}

// pass computes checksums of one content. Chunks are hashed in any order, and their digests are added in order.
type pass struct {
	parameters []Parameters
	// leaves has the digests that are computed, and folds what becomes of the digests of each.
	leaves []*leaf
	folds  [][]fold
	sink   Sink
	// linear are the hashes of checksums without blocks.
	linear []hash.Hash
	// order has the places of the checksums in folds or linear.
	order []place
	unit  int64
	room  int64
	// free has the chunks that are not in use.
	free chan *chunk
	// ended is closed after a panic in one of the goroutines. Chunks may then be missing in free.
	ended chan struct{}

	mu      sync.Mutex
	added   sync.Cond
	adding  bool
	next    int64
	length  int64
	waiting map[int64]*chunk
	err     error
	// panicked is the value of the first panic in a goroutine.
	panicked any
	after    func(length int64)
}

// place is the place of a checksum: in folds[leaf][index], or in linear[index] if leaf is negative.
type place struct{ leaf, index int }

// chunk is a range of the content and its digests.
type chunk struct {
	number        int64
	start, length int64
	// zero is set if the chunk has whole blocks of zeros alone. They are neither read nor hashed.
	zero bool
	// data are the ranges to read. The others are zeros.
	data    []Extent
	buffer  []byte
	leaves  []*leaf
	digests [][]byte
	err     error
}

// newPass returns a pass for checked parameters with defaults. The sink gets the digests for the first ones.
func newPass(parameters []Parameters, sink Sink, threads int) (*pass, error) {
	p := &pass{
		parameters: parameters, sink: sink, unit: 1, waiting: map[int64]*chunk{}, ended: make(chan struct{}),
	}
	p.added.L = &p.mu
	kinds := map[leafKind]int{}
	for _, parameters := range parameters {
		if !parameters.Construction.HasBlocks() {
			p.order = append(p.order, place{-1, len(p.linear)})
			p.linear = append(p.linear, parameters.Algorithm.New())
			continue
		}
		kind := parameters.leafKind()
		index, known := kinds[kind]
		if !known {
			index = len(p.leaves)
			kinds[kind] = index
			p.leaves = append(p.leaves, newLeaf(kind))
			p.folds = append(p.folds, nil)
			p.unit = max(p.unit, int64(kind.blockSize))
		}
		p.order = append(p.order, place{index, len(p.folds[index])})
		p.folds[index] = append(p.folds[index], newFold(parameters, p.leaves[index], threads))
	}
	if sink != nil && (len(p.order) == 0 || p.order[0].leaf != 0) {
		return nil, errors.New("blkhash: linear has no blocks for a sink")
	}
	if s, ok := sink.(ParametersSink); ok {
		if err := s.CheckParameters(parameters[0]); err != nil {
			return nil, err
		}
	}
	p.room = max(chunkSize, p.unit)
	chunks := 1
	if threads > 1 {
		chunks = int(max(2, min(int64(2*threads), maxBuffers/p.room)))
	}
	p.free = make(chan *chunk, chunks)
	for range chunks {
		c := &chunk{digests: make([][]byte, len(p.leaves))}
		for _, l := range p.leaves {
			c.leaves = append(c.leaves, l.sibling())
		}
		p.free <- c
	}
	return p, nil
}

// grow allocates the buffer of a chunk that has data.
func (c *chunk) grow(room int64) {
	if c.buffer == nil {
		c.buffer = make([]byte, room)
	}
}

// hash computes the digests of a chunk with data.
func (c *chunk) hash() {
	for i, l := range c.leaves {
		c.digests[i] = l.appendDigests(c.digests[i][:0], c.buffer[:c.length])
	}
}

// done takes a chunk that is hashed, and adds all chunks that come next. It does not wait for others.
func (p *pass) done(c *chunk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[c.number] = c
	if p.adding {
		return
	}
	p.adding = true
	for {
		c, found := p.waiting[p.next]
		if !found {
			break
		}
		delete(p.waiting, p.next)
		if p.err == nil && c.err == nil {
			c.err = p.addUnlocked(c)
		}
		if c.err != nil {
			p.fail(c.err)
		}
		if p.err == nil {
			p.length += c.length
			if p.after != nil {
				p.after(p.length)
			}
		}
		c.err = nil
		p.next++
		p.free <- c
	}
	p.adding = false
	p.added.Broadcast()
}

// addUnlocked adds a chunk while others may call done.
func (p *pass) addUnlocked(c *chunk) error {
	p.mu.Unlock()
	defer p.mu.Lock()
	return p.add(c)
}

// guard calls f. A panic in it, which may be one of a caller's function, ends the pass, and continues where the caller
// waits.
func (p *pass) guard(f func()) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.panicked == nil {
			p.panicked = value
			close(p.ended)
		}
		p.fail(errPanicked)
		p.added.Broadcast()
	}()
	f()
}

var errPanicked = errors.New("blkhash: panic in a goroutine")

// fail keeps the first error. The lock must be held.
func (p *pass) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// take returns a chunk that is not in use, or nil after a panic.
func (p *pass) take() *chunk {
	select {
	case c := <-p.free:
		return c
	case <-p.ended:
		return nil
	}
}

// add adds a chunk to the checksums and the sink.
func (p *pass) add(c *chunk) error {
	for i, folds := range p.folds {
		count := c.length / int64(p.leaves[i].blockSize)
		for _, f := range folds {
			if c.zero {
				f.zeroBlocks(count)
			} else {
				f.blocks(c.digests[i])
			}
		}
		if i == 0 && p.sink != nil {
			if err := c.feed(p.sink, int64(p.leaves[0].blockSize)); err != nil {
				return err
			}
		}
	}
	for _, h := range p.linear {
		if c.zero {
			zeros.Hash(h, c.length)
		} else {
			h.Write(c.buffer[:c.length])
		}
	}
	return nil
}

// feed passes the digests of a chunk to the sink.
func (c *chunk) feed(s Sink, blockSize int64) error {
	if c.zero {
		return s.ZeroBlocks(c.length / blockSize)
	}
	if s, ok := s.(ShortBlockSink); ok && c.length%blockSize != 0 {
		if err := s.ShortBlock(c.buffer[c.length-c.length%blockSize : c.length]); err != nil {
			return err
		}
	}
	return s.Blocks(c.digests[0])
}

// wait returns when the chunks before this number are added.
func (p *pass) wait(number int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.panicked == nil && (p.next < number || p.adding) {
		p.added.Wait()
	}
	return p.result()
}

// settled waits like wait, and leaves errors and panics to the content that they belong to.
func (p *pass) settled(number int64) {
	defer func() { _ = recover() }()
	_ = p.wait(number)
}

// failed returns the first error in the order of the content so far.
func (p *pass) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result()
}

// result returns the first error, and continues a panic. The lock must be held.
func (p *pass) result() error {
	if p.panicked != nil {
		panic(p.panicked)
	}
	return p.err
}

// clone returns a pass with the same content so far, for which sums can be called. It has no sink.
func (p *pass) clone() *pass {
	copied := &pass{parameters: p.parameters, leaves: p.leaves, order: p.order}
	for _, folds := range p.folds {
		list := make([]fold, len(folds))
		for i, f := range folds {
			list[i] = f.clone()
		}
		copied.folds = append(copied.folds, list)
	}
	for _, h := range p.linear {
		copied.linear = append(copied.linear, cloneHash(h))
	}
	return copied
}

// sums returns the checksums of content of this length. The pass cannot continue after that.
func (p *pass) sums(length int64) ([][]byte, error) {
	sums := make([][]byte, len(p.order))
	for i, place := range p.order {
		if err := p.parameters[i].checkLength(length); err != nil {
			return nil, err
		}
		if place.leaf < 0 {
			sums[i] = p.linear[place.index].Sum(nil)
		} else {
			sums[i] = p.folds[place.leaf][place.index].sum(length)
		}
	}
	return sums, nil
}
