package suite

import (
	"bytes"
	"sync"
)

// maxLog limits the log of a check's processes; the rest is discarded.
const maxLog = 256 << 10

// Log collects the lines of a check's processes, from several goroutines.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len() > maxLog {
		return len(p), nil
	}
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Forget discards all lines.
func (l *Log) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}
