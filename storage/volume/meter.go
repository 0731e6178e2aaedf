package volume

import "sync/atomic"

// Meter counts the progress of a long call for an observer. Counts only grow. NewMeter creates
// one.
type Meter struct {
	files, bytes       atomic.Int64
	allFiles, allBytes atomic.Int64
	moved              chan struct{}
	watched            func(bytes int64) // may be nil
}

// Progress is the progress of a long call. A total of 0 is not counted yet.
type Progress struct {
	Files, FilesTotal int64
	Bytes, BytesTotal int64
}

// Steps of a meter after which Moved receives a value.
const (
	stepFiles = 1000
	stepBytes = 256 << 20
)

// NewMeter returns a meter at zero.
func NewMeter() *Meter { return &Meter{moved: make(chan struct{}, 1)} }

// Moved receives a value when much has been done since the last receive.
func (m *Meter) Moved() <-chan struct{} { return m.moved }

// Read returns the progress.
func (m *Meter) Read() Progress {
	p := Progress{
		FilesTotal: m.allFiles.Load(), BytesTotal: m.allBytes.Load(),
		Files: m.files.Load(), Bytes: m.bytes.Load(),
	}
	if p.FilesTotal > 0 { // entries that appeared after the count
		p.FilesTotal = max(p.FilesTotal, p.Files)
	}
	if p.BytesTotal > 0 {
		p.BytesTotal = max(p.BytesTotal, p.Bytes)
	}
	return p
}

// did adds completed work.
func (m *Meter) did(files, bytes int64) {
	f, b := m.files.Add(files), m.bytes.Add(bytes)
	if m.watched != nil && bytes > 0 {
		m.watched(b)
	}
	if files > 0 && f%stepFiles == 0 || b/stepBytes != (b-bytes)/stepBytes {
		select {
		case m.moved <- struct{}{}:
		default: // the observer has not read the last value yet
		}
	}
}

// watch sets a function that is called with the number of copied bytes. It must be called
// before the copy begins.
func (m *Meter) watch(f func(bytes int64)) { m.watched = f }

// expect adds to the totals.
func (m *Meter) expect(files, bytes int64) {
	m.allFiles.Add(files)
	m.allBytes.Add(bytes)
}
