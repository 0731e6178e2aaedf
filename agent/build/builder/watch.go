package builder

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/solver/errdefs"
	"github.com/moby/buildkit/util/progress/progressui"
	"github.com/opencontainers/go-digest"
)

// watch follows the steps of a build.
type watch struct {
	mu     sync.Mutex
	steps  map[digest.Digest]*client.Vertex
	cached map[digest.Digest]bool // also if the result had to be fetched later
}

// display shows the progress of a build as text.
type display struct {
	statuses chan *client.SolveStatus
	ended    chan struct{}
}

// show starts a display. The statuses that its channel gets are also noted.
func (w *watch) show(ctx context.Context, out io.Writer) (*display, error) {
	ui, err := progressui.NewDisplay(out, progressui.PlainMode)
	if err != nil {
		return nil, err
	}
	d := &display{statuses: make(chan *client.SolveStatus), ended: make(chan struct{})}
	shown := make(chan *client.SolveStatus)
	go func() {
		defer close(shown)
		for s := range d.statuses {
			w.note(s)
			shown <- s
		}
	}()
	go func() {
		defer close(d.ended)
		_, _ = ui.UpdateFrom(context.WithoutCancel(ctx), shown) // returns the warnings, which it also shows
	}()
	return d, nil
}

// wait waits for the last output.
func (d *display) wait() {
	select {
	case <-d.ended:
	case <-time.After(settle):
	}
}

func (w *watch) note(s *client.SolveStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.steps == nil {
		w.steps, w.cached = map[digest.Digest]*client.Vertex{}, map[digest.Digest]bool{}
	}
	for _, v := range s.Vertexes {
		w.steps[v.Digest] = v
		w.cached[v.Digest] = w.cached[v.Digest] || v.Cached
	}
}

// counts returns the number of instructions that were needed, and how many of them did not run. Base
// images are not instructions.
func (w *watch) counts() (steps, cached int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.steps {
		if !stepForm.MatchString(v.Name) || strings.Contains(v.Name, "] FROM ") {
			continue
		}
		steps++
		if w.cached[v.Digest] {
			cached++
		}
	}
	return steps, cached
}

// failed returns the step that failed.
func (w *watch) failed() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.steps {
		if v.Error != "" && stepForm.MatchString(v.Name) && !strings.Contains(v.Error, context.Canceled.Error()) {
			return mountOption.ReplaceAllString(v.Name, "")
		}
	}
	return ""
}

// mountOption is the option of a RUN instruction for caches and files. Recipes have long ones.
var mountOption = regexp.MustCompile(`--mount=\S+ `)

// exited is BuildKit's text for a command that failed. The step is named beside it.
var exited = regexp.MustCompile(`(?s)^process ".*" did not complete successfully: `)

// message returns the text of an error without the names of functions and processes of BuildKit.
func (w *watch) message(err error) string {
	var vertex *errdefs.VertexError
	if errors.As(err, &vertex) {
		err = vertex.Unwrap()
	}
	text := err.Error()
	for _, prefix := range []string{"failed to solve: ", "rpc error: code = Unknown desc = "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return exited.ReplaceAllString(text, "")
}
