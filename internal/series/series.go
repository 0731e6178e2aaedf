// Package series has measurements over time: how they are encoded for storage, and how they are merged into coarser points.
package series

import (
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/internal/series/seriespb"
)

// Key names a measure of a subject.
type Key struct {
	Name   string
	Device string // "" = the whole subject
}

// Line is one measure over time, the oldest point first.
type Line struct {
	Key
	Unit     string
	Capacity float64 // of the last point; 0 = none
	Quality  string  // the worst of all points
	Points   []Point
}

// Point is one sample, or what is known of the samples of one step.
type Point struct {
	At            time.Time // of the sample, or where the step begins
	Min, Max, Sum float64
	Count         int
}

// Mean returns the mean of the samples.
func (p Point) Mean() float64 { return p.Sum / float64(p.Count) }

// Sample returns the point of one sample.
func Sample(at time.Time, value float64) Point {
	return Point{At: at, Min: value, Max: value, Sum: value, Count: 1}
}

// worse are the qualities, the best first.
var worse = map[string]int{"measured": 0, "attributed": 1, "estimated": 2, "unavailable": 3}

// Append adds a later line of the same measure.
func (l *Line) Append(more Line) {
	l.Points = append(l.Points, more.Points...)
	l.Unit, l.Capacity = more.Unit, more.Capacity
	if l.Quality == "" || worse[more.Quality] > worse[l.Quality] {
		l.Quality = more.Quality
	}
}

// Coarsen merges the points of each step. Steps begin at multiples of the step since 1970 in UTC.
func (l *Line) Coarsen(step time.Duration) {
	out := l.Points[:0]
	for _, p := range l.Points {
		p.At = p.At.Truncate(step)
		if n := len(out); n > 0 && out[n-1].At.Equal(p.At) {
			last := &out[n-1]
			last.Min, last.Max = math.Min(last.Min, p.Min), math.Max(last.Max, p.Max)
			last.Sum += p.Sum
			last.Count += p.Count
			continue
		}
		out = append(out, p)
	}
	l.Points = out
}

// Lines are measures by their subjects.
type Lines map[uuid.UUID]map[Key]*Line

// Line returns the line of a measure, and adds an empty one if there is none.
func (l Lines) Line(subject uuid.UUID, k Key) *Line {
	of := l[subject]
	if of == nil {
		of = map[Key]*Line{}
		l[subject] = of
	}
	if of[k] == nil {
		of[k] = &Line{Key: k}
	}
	return of[k]
}

// Codec encodes and decodes chunks. It can be used by several goroutines.
type Codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// maxChunk limits a decoded chunk, in bytes.
const maxChunk = 256 << 20

// NewCodec returns a Codec.
func NewCodec() (*Codec, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxChunk))
	if err != nil {
		return nil, err
	}
	return &Codec{enc, dec}, nil
}

// Encode returns the bytes of a chunk whose points are not before start.
func (c *Codec) Encode(start time.Time, lines Lines) ([]byte, error) {
	chunk := &seriespb.Chunk{}
	for id, of := range lines {
		s := &seriespb.Subject{Id: id[:]}
		for _, l := range of {
			s.Lines = append(s.Lines, pack(start, l))
		}
		chunk.Subjects = append(chunk.Subjects, s)
	}
	raw, err := proto.Marshal(chunk)
	if err != nil {
		return nil, fmt.Errorf("encode measurements: %w", err)
	}
	return c.enc.EncodeAll(raw, nil), nil
}

func pack(start time.Time, l *Line) *seriespb.Line {
	out := &seriespb.Line{Name: l.Name, Device: l.Device, Unit: l.Unit, Capacity: l.Capacity, Quality: l.Quality}
	single := true
	for _, p := range l.Points {
		single = single && p.Count == 1
	}
	before := start
	for _, p := range l.Points {
		ms := max(0, p.At.Sub(before).Milliseconds())
		before = before.Add(time.Duration(ms) * time.Millisecond)
		out.Offsets = append(out.Offsets, uint32(min(ms, math.MaxUint32)))
		out.Max = append(out.Max, p.Max)
		if !single {
			out.Min = append(out.Min, p.Min)
			out.Sum = append(out.Sum, p.Sum)
			out.Count = append(out.Count, uint32(p.Count))
		}
	}
	return out
}

// Decode adds the lines of a chunk for which want is true to lines. Chunks are decoded in the order of their starts.
func (c *Codec) Decode(start time.Time, data []byte, into Lines, want func(subject uuid.UUID, k Key) bool) error {
	raw, err := c.dec.DecodeAll(data, nil)
	if err != nil {
		return fmt.Errorf("decode measurements: %w", err)
	}
	var chunk seriespb.Chunk
	if err := proto.Unmarshal(raw, &chunk); err != nil {
		return fmt.Errorf("decode measurements: %w", err)
	}
	for _, s := range chunk.Subjects {
		id, err := uuid.FromBytes(s.Id)
		if err != nil {
			return fmt.Errorf("decode measurements: %w", err)
		}
		for _, l := range s.Lines {
			k := Key{l.Name, l.Device}
			if !want(id, k) {
				continue
			}
			line, err := unpack(start, l)
			if err != nil {
				return err
			}
			into.Line(id, k).Append(line)
		}
	}
	return nil
}

func unpack(start time.Time, l *seriespb.Line) (Line, error) {
	n := len(l.Offsets)
	single := len(l.Count) == 0
	if len(l.Max) != n || !single && (len(l.Min) != n || len(l.Sum) != n || len(l.Count) != n) {
		return Line{}, fmt.Errorf("decode measurements: lists of %s have different lengths", l.Name)
	}
	out := Line{Key: Key{l.Name, l.Device}, Unit: l.Unit, Capacity: l.Capacity, Quality: l.Quality, Points: make([]Point, 0, n)}
	at := start
	for i := range n {
		at = at.Add(time.Duration(l.Offsets[i]) * time.Millisecond)
		if single {
			out.Points = append(out.Points, Sample(at, l.Max[i]))
			continue
		}
		out.Points = append(out.Points, Point{At: at, Min: l.Min[i], Max: l.Max[i], Sum: l.Sum[i], Count: int(max(1, l.Count[i]))})
	}
	return out, nil
}
