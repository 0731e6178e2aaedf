package volume

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// promises are the reservations of writers in scopes, as far as the last measurement of the
// scope's usage does not include them. A product that is measured at intervals does not know
// of recent writes, so these count as used until the next measurement. Reservations are lost
// when the process ends; a cooperative limit is only that precise.
type promises struct {
	mu     sync.Mutex
	scopes map[string]map[string]*promise // scope in hex → writer → reservation
}

// promise is the reservation of one writer.
type promise struct {
	size    int64 // total size when the writer is done, including existing bytes
	over    bool  // the writer has finished
	samples []sample
}

// sample is the number of bytes written at a time.
type sample struct {
	at    time.Time
	bytes int64
}

const (
	sampleEvery = 100 * time.Millisecond
	maxSamples  = 128
)

// wrote records the number of bytes written so far.
func (p *promise) wrote(bytes int64, now time.Time) {
	n := len(p.samples)
	if n > 0 && bytes == p.samples[n-1].bytes {
		return
	}
	if n > 0 && !p.over && bytes > p.samples[n-1].bytes && now.Sub(p.samples[n-1].at) < sampleEvery {
		return // these bytes count as not measured until the next sample
	}
	if n >= maxSamples {
		thin := p.samples[:0]
		for i, s := range p.samples {
			if i%2 == 0 {
				thin = append(thin, s)
			}
		}
		p.samples = thin
	}
	p.samples = append(p.samples, sample{now, bytes})
}

// open returns the part of the reservation that a measurement at the given time does not
// include.
func (p *promise) open(asOf time.Time) int64 {
	last := -1
	for i, s := range p.samples {
		if s.at.Truncate(time.Millisecond).After(asOf) {
			break
		}
		last = i
	}
	if last < 0 { // the measurement is older than all samples
		return p.size
	}
	p.samples = slices.Delete(p.samples, 0, last)
	return max(0, p.size-p.samples[0].bytes)
}

// outstanding returns the reservations in a scope that a measurement at the given time does
// not include. The caller holds mu.
func (l *promises) outstanding(scope string, asOf time.Time) int64 {
	var sum int64
	for id, p := range l.scopes[scope] {
		open := p.open(asOf)
		if open == 0 && p.over {
			delete(l.scopes[scope], id)
		}
		sum += open
	}
	return sum
}

// Room is the reservation that a writer requests.
type Room struct {
	Writer string // a second request of a writer extends its reservation
	Size   int64  // total bytes, including existing ones
	There  int64  // existing bytes, which the scope's usage includes
}

// Reserve reserves room in a scope for a writer, unless the scope's limit does not allow it. Two
// writers never get the same room.
func (v *Volume) Reserve(ctx context.Context, scope string, r Room) error {
	s, err := v.Limit(ctx, scope)
	if err != nil {
		return err
	}
	return v.reserve(s, scope, r)
}

func (v *Volume) reserve(s *volumepb.Scope, scope string, r Room) error {
	hex := scopeKey(scope)
	l := &v.promises
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.scopes[hex][r.Writer]
	ask := r.Size - r.There
	if p != nil {
		ask = r.Size - p.size
	}
	taken := l.outstanding(hex, time.UnixMilli(s.GetAsOfUnixMs()))
	if err := Over(s, max(0, ask), taken); err != nil {
		return err
	}
	if p == nil {
		p = &promise{samples: []sample{{bytes: r.There}}}
		l.put(hex, r.Writer, p)
	}
	p.size, p.over = max(p.size, r.Size), false
	return nil
}

func (l *promises) put(scope, writer string, p *promise) {
	if l.scopes == nil {
		l.scopes = make(map[string]map[string]*promise)
	}
	if l.scopes[scope] == nil {
		l.scopes[scope] = make(map[string]*promise)
	}
	l.scopes[scope][writer] = p
}

// Expect restores the reservation of a writer that an earlier process accepted.
func (v *Volume) Expect(scope string, r Room) {
	hex := scopeKey(scope)
	v.promises.mu.Lock()
	defer v.promises.mu.Unlock()
	if v.promises.scopes[hex][r.Writer] == nil {
		v.promises.put(hex, r.Writer, &promise{size: r.Size, samples: []sample{{bytes: r.There}}})
	}
}

// Wrote records the number of bytes that a writer has written so far.
func (v *Volume) Wrote(scope, writer string, bytes int64) {
	v.promises.mu.Lock()
	defer v.promises.mu.Unlock()
	if p := v.promises.scopes[scopeKey(scope)][writer]; p != nil {
		p.wrote(bytes, time.Now())
	}
}

// Stays ends a reservation; the given number of bytes stays on the volume.
func (v *Volume) Stays(scope, writer string, bytes int64) {
	v.promises.mu.Lock()
	defer v.promises.mu.Unlock()
	if p := v.promises.scopes[scopeKey(scope)][writer]; p != nil {
		p.size, p.over = bytes, true
		p.wrote(bytes, time.Now())
	}
}

// Withdraw ends a reservation; no bytes stay on the volume.
func (v *Volume) Withdraw(scope, writer string) {
	v.promises.mu.Lock()
	defer v.promises.mu.Unlock()
	delete(v.promises.scopes[scopeKey(scope)], writer)
}

// promised returns the reservations that a scope's usage does not include.
func (v *Volume) promised(scope string, s *volumepb.Scope) int64 {
	v.promises.mu.Lock()
	defer v.promises.mu.Unlock()
	return v.promises.outstanding(scopeKey(scope), time.UnixMilli(s.GetAsOfUnixMs()))
}

func scopeKey(scope string) string {
	if hex, err := hexID("scope", scope); err == nil {
		return hex
	}
	return scope
}
