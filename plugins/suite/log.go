package suite

import (
	"bytes"
	"sync"
)

// maxLog is room for what a check's processes have to say; more is thrown away.
const maxLog = 256 << 10

// Log gathers the lines of a check's processes, which arrive from several goroutines.
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

// Forget empties it.
func (l *Log) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}
