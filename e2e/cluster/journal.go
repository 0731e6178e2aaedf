package cluster

import (
	"strings"
	"sync"
)

// journal keeps what the server writes, over all its starts.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// Len is where the next byte goes.
func (j *journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Len()
}

// From is all that was written at or after a position.
func (j *journal) From(at int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()[at:]
}

// Tail is the last lines.
func (j *journal) Tail(lines int) string { return lastLines(j.From(0), lines) }

func lastLines(text string, n int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}

// Log is what the server has written so far.
func (p *Platform) Log() string { return p.log.From(0) }

// Tail is the end of that.
func (p *Platform) Tail(lines int) string { return p.log.Tail(lines) }
