package blkhash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"
	"sync"
)

// An Option changes how a checksum is computed, and never its value.
type Option func(*options)

type options struct {
	threads  int
	sink     Sink
	progress func(done, total int64)
}

// WithThreads sets the number of goroutines that hash. The default is GOMAXPROCS, and less than 1 is 1.
func WithThreads(n int) Option {
	return func(o *options) { o.threads = n }
}

// WithSink passes the digests of blocks to s as well, with several parameters the digests of the first ones. [Linear]
// has no blocks.
func WithSink(s Sink) Option {
	return func(o *options) { o.sink = s }
}

// WithProgress has f called with the number of bytes that are hashed and of all bytes, in order. It must return soon.
// One goroutine at a time calls it, and none after the call that hashes has returned. A [Hasher] refuses it.
func WithProgress(f func(done, total int64)) Option {
	return func(o *options) { o.progress = f }
}

func newOptions(list []Option) options {
	o := options{threads: runtime.GOMAXPROCS(0)}
	for _, option := range list {
		option(&o)
	}
	o.threads = max(o.threads, 1)
	return o
}

// Sum returns the checksum of the first size bytes of r. It reads at several offsets at the same time, and neither
// reads nor hashes what extents report as zeros. Without extents, which may be nil, it reads everything. Blocks of
// zeros are not hashed in either case.
//
// Memory is 2 MiB for each thread, or two blocks if those are longer, 256 MiB at most.
//
// An error names the offset. If ctx ends, the error is its cause.
func Sum(
	ctx context.Context, r io.ReaderAt, size int64, extents Extents, p Parameters, opts ...Option,
) ([]byte, error) {
	sums, err := SumAll(ctx, r, size, extents, []Parameters{p}, opts...)
	if err != nil {
		return nil, err
	}
	return sums[0], nil
}

// SumAll returns several checksums of the same content, in the order of their parameters. The content is read once, and
// blocks that checksums share are hashed once.
func SumAll(
	ctx context.Context, r io.ReaderAt, size int64, extents Extents, p []Parameters, opts ...Option,
) ([][]byte, error) {
	checked := make([]Parameters, len(p))
	for i := range p {
		checked[i] = p[i].WithDefaults()
		if err := checked[i].Check(); err != nil {
			return nil, err
		}
		if err := checked[i].checkLength(size); err != nil {
			return nil, err
		}
	}
	pass, err := newOptions(opts).pass(ctx, r, size, extents, checked)
	if err != nil {
		return nil, err
	}
	return pass.sums(size)
}

// pass reads and hashes the content for checked parameters.
func (o options) pass(
	ctx context.Context, r io.ReaderAt, size int64, extents Extents, p []Parameters,
) (*pass, error) {
	if size < 0 {
		return nil, fmt.Errorf("blkhash: size %d of the content is negative", size)
	}
	pass, err := newPass(p, o.sink, o.threads)
	if err != nil {
		return nil, err
	}
	if o.progress != nil {
		pass.after = func(length int64) { o.progress(length, size) }
	}
	return pass, pass.run(ctx, r, size, extents, o.threads)
}

// run reads and hashes the content.
func (p *pass) run(ctx context.Context, r io.ReaderAt, size int64, extents Extents, threads int) error {
	if extents == nil {
		extents = func(func(Extent, error) bool) {}
	}
	pull, stop := iter.Pull2(extents)
	defer stop()
	shared := &source{reader: r, plan: plan{
		size: size, unit: p.unit, room: p.room, zeros: p.zeros(), pull: pull,
		done: func() error { return context.Cause(ctx) },
	}}
	var group sync.WaitGroup
	for range threads - 1 {
		group.Go(func() { p.guard(func() { p.work(ctx, shared) }) })
	}
	p.guard(func() { p.work(ctx, shared) })
	group.Wait()
	return p.failed()
}

// zeros returns the length of the longest chunk of zeros. Where each zero block costs time, chunks are shorter, so
// that the pass can end early and report progress.
func (p *pass) zeros() int64 {
	cheap := len(p.linear) == 0
	for _, folds := range p.folds {
		for _, f := range folds {
			_, listed := f.(*streams)
			cheap = cheap && !listed
		}
	}
	if cheap {
		return math.MaxInt64
	}
	return max(p.unit<<20, 1<<30)
}

// source is what the goroutines of a pass share.
type source struct {
	reader io.ReaderAt
	mu     sync.Mutex
	plan   plan
	number int64
	ended  bool
}

// work hashes chunks until there are no more. A chunk in use is either with a goroutine or waits for one before it, so
// there is always one that continues.
func (p *pass) work(ctx context.Context, s *source) {
	for {
		c := p.take()
		if c == nil {
			return
		}
		more := s.take(ctx, p, c)
		if !more && c.err == nil {
			p.free <- c
			return
		}
		if c.err == nil && !c.zero {
			c.grow(p.room)
			if c.err = c.read(s.reader); c.err == nil {
				c.hash()
			}
		}
		p.done(c)
	}
}

// take gives c the next range of the content and its number. It returns false if there is none. An error becomes
// the chunk's.
func (s *source) take(ctx context.Context, p *pass, c *chunk) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || p.failed() != nil {
		return false
	}
	var more bool
	if ctx.Err() != nil {
		c.err = context.Cause(ctx)
	} else {
		more, c.err = s.plan.next(c)
	}
	s.ended = !more
	c.number = s.number
	s.number++
	return more
}

// read reads the data of a chunk.
func (c *chunk) read(r io.ReaderAt) error {
	filled := int64(0)
	for _, data := range c.data {
		from := data.Offset - c.start
		clear(c.buffer[filled:from])
		filled = from + data.Length
		if n, err := r.ReadAt(c.buffer[from:filled], data.Offset); int64(n) < data.Length {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("blkhash: cannot read %d bytes at offset %d: %w", data.Length, data.Offset, err)
		}
	}
	clear(c.buffer[filled:c.length])
	return nil
}
