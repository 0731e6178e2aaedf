package sshmux

import (
	"bufio"
	"errors"
	"io"
	"sync"
)

// largePiece is the size from which on a piece is in a buffer of maxData bytes, so that the memory of
// data that waits is at most about twice its size.
const (
	largePiece = 16 << 10
	smallPiece = 512
)

type frame [headerSize + maxData]byte

var frames = sync.Pool{New: func() any { return new(frame) }}

// piece is data that was received.
type piece struct {
	data  []byte
	frame *frame // nil if the data is not in one
}

// read reads a piece.
func read(in *bufio.Reader, size int) (p piece, err error) {
	if size >= largePiece {
		p.frame = frames.Get().(*frame)
		p.data = p.frame[:size]
	} else {
		p.data = make([]byte, size, max(size, smallPiece))
	}
	if _, err := io.ReadFull(in, p.data); err != nil {
		p.free()
		return piece{}, err
	}
	return p, nil
}

func (p piece) free() {
	if p.frame != nil {
		frames.Put(p.frame)
	}
}

// queue is the data that the program has not read.
type queue struct{ pieces []piece }

func (q *queue) empty() bool { return len(q.pieces) == 0 }

// add appends a piece, or copies a small one into the room behind the last one.
func (q *queue) add(p piece) {
	if len(p.data) == 0 {
		return
	}
	if n := len(q.pieces); n > 0 && p.frame == nil {
		if last := &q.pieces[n-1].data; cap(*last)-len(*last) >= len(p.data) && q.pieces[n-1].frame == nil {
			*last = append(*last, p.data...)
			return
		}
	}
	q.pieces = append(q.pieces, p)
}

func (q *queue) pop() piece {
	p := q.pieces[0]
	q.pieces[0] = piece{}
	if q.pieces = q.pieces[1:]; len(q.pieces) == 0 {
		q.pieces = nil
	}
	return p
}

// read copies data, of several pieces if they fit.
func (q *queue) read(into []byte) (n int) {
	for len(into) > n && !q.empty() {
		first := &q.pieces[0]
		k := copy(into[n:], first.data)
		n += k
		if first.data = first.data[k:]; len(first.data) == 0 {
			q.pop().free()
		}
	}
	return n
}

// half is the data or stderr of a channel.
type half struct {
	ch   *Channel
	in   *queue
	kind byte
}

func (ch *Channel) data() half { return half{ch, &ch.out, frameData} }

// Stderr implements ssh.Channel. The result implements io.WriterTo and io.ReaderFrom.
func (ch *Channel) Stderr() io.ReadWriter { return half{ch, &ch.err, frameStderr} }

// Read implements ssh.Channel.
func (ch *Channel) Read(p []byte) (int, error) { return ch.data().Read(p) }

// Write implements ssh.Channel.
func (ch *Channel) Write(p []byte) (int, error) { return ch.data().Write(p) }

// WriteTo implements io.WriterTo. It does not copy the data.
func (ch *Channel) WriteTo(w io.Writer) (int64, error) { return ch.data().WriteTo(w) }

// ReadFrom implements io.ReaderFrom. While it waits for data, it keeps a small buffer only.
func (ch *Channel) ReadFrom(r io.Reader) (int64, error) { return ch.data().ReadFrom(r) }

// Read implements io.Reader.
func (h half) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := h.ch.copy(h.in, p)
	if err == nil {
		h.ch.consume(n)
	}
	return n, err
}

// WriteTo implements io.WriterTo.
func (h half) WriteTo(w io.Writer) (all int64, err error) {
	for {
		p, err := h.ch.take(h.in)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		n, err := w.Write(p.data)
		size := len(p.data)
		p.free()
		h.ch.consume(size)
		if all += int64(n); err != nil {
			return all, err
		}
	}
}

// Write implements io.Writer.
func (h half) Write(p []byte) (done int, err error) {
	f := frames.Get().(*frame)
	defer frames.Put(f)
	for len(p) > 0 {
		n, err := h.ch.reserve(min(len(p), maxData))
		if err != nil {
			return done, err
		}
		copy(f[headerSize:], p[:n])
		if err := h.ch.conn.flush(f[:headerSize+n], h.kind, h.ch); err != nil {
			return done, err
		}
		done, p = done+n, p[n:]
	}
	return done, nil
}

// ReadFrom implements io.ReaderFrom.
func (h half) ReadFrom(r io.Reader) (all int64, err error) {
	small := make([]byte, smallPiece)
	for {
		n, err := r.Read(small)
		if n > 0 {
			done, err := h.Write(small[:n])
			if all += int64(done); err != nil {
				return all, err
			}
		}
		if n == len(small) && err == nil {
			var more int64
			more, err = h.drain(r)
			all += more
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// drain sends whole frames while the reader has more than a small buffer would take. It reads into them.
func (h half) drain(r io.Reader) (all int64, err error) {
	f := frames.Get().(*frame)
	defer frames.Put(f)
	for {
		room, err := h.ch.reserve(maxData)
		if err != nil {
			return all, err
		}
		n, err := r.Read(f[headerSize : headerSize+room])
		h.ch.giveBack(room - n)
		if n > 0 {
			if err := h.ch.conn.flush(f[:headerSize+n], h.kind, h.ch); err != nil {
				return all, err
			}
			all += int64(n)
		}
		if err != nil || n < min(room, 8*smallPiece) {
			return all, err
		}
	}
}
