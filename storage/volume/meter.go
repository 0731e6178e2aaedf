package volume

import "sync/atomic"

// Meter counts what a long call has done, for who watches it meanwhile. What
// is done only grows. Make it with NewMeter.
type Meter struct {
	files, bytes       atomic.Int64
	allFiles, allBytes atomic.Int64
	moved              chan struct{}
	watched            func(bytes int64) // nil for no one
}

// Progress is how far a long call has come. A total of 0 is not counted yet.
type Progress struct {
	Files, FilesTotal int64
	Bytes, BytesTotal int64
}

// Steps of a meter that are worth a message.
const (
	stepFiles = 1000
	stepBytes = 256 << 20
)

// NewMeter returns a meter at zero.
func NewMeter() *Meter { return &Meter{moved: make(chan struct{}, 1)} }

// Moved gets a value when much has been done since the last one was taken.
func (m *Meter) Moved() <-chan struct{} { return m.moved }

// Read tells how far it is.
func (m *Meter) Read() Progress {
	p := Progress{
		FilesTotal: m.allFiles.Load(), BytesTotal: m.allBytes.Load(),
		Files: m.files.Load(), Bytes: m.bytes.Load(),
	}
	if p.FilesTotal > 0 { // what appeared since it was counted
		p.FilesTotal = max(p.FilesTotal, p.Files)
	}
	if p.BytesTotal > 0 {
		p.BytesTotal = max(p.BytesTotal, p.Bytes)
	}
	return p
}

// did adds what was done.
func (m *Meter) did(files, bytes int64) {
	f, b := m.files.Add(files), m.bytes.Add(bytes)
	if m.watched != nil && bytes > 0 {
		m.watched(b)
	}
	if files > 0 && f%stepFiles == 0 || b/stepBytes != (b-bytes)/stepBytes {
		select {
		case m.moved <- struct{}{}:
		default: // no one has looked since
		}
	}
}

// watch has f called with the bytes so far whenever some were copied. It is set before the
// copying begins.
func (m *Meter) watch(f func(bytes int64)) { m.watched = f }

// expect adds to the totals.
func (m *Meter) expect(files, bytes int64) {
	m.allFiles.Add(files)
	m.allBytes.Add(bytes)
}
