package clustertest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"

	"github.com/berthhq/berth/internal/requestid"
)

// Journal is a log that tests read. Its lines contain the IDs of requests.
type Journal struct {
	*slog.Logger
	mu   sync.Mutex
	text bytes.Buffer
}

// NewJournal returns an empty journal.
func NewJournal() *Journal {
	j := &Journal{}
	j.Logger = slog.New(requestid.LogHandler{Handler: slog.NewTextHandler(j, nil)})
	return j
}

// Write implements io.Writer.
func (j *Journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

// Lines returns the lines that contain all of the parts.
func (j *Journal) Lines(parts ...string) (found []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
lines:
	for line := range strings.Lines(j.text.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue lines
			}
		}
		found = append(found, line)
	}
	return found
}
