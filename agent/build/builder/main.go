package builder

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/agent/build"
)

// maxRequest limits the first line of the input: the context is a part of it.
const maxRequest = 64 << 20

// Main builds the image that the first line of in describes, and writes events to out. It stops when in
// ends. It returns the exit code of the process.
func Main(in io.Reader, out io.Writer) int {
	logrus.SetOutput(os.Stderr)
	logrus.SetLevel(logrus.ErrorLevel)
	events := &events{out: json.NewEncoder(out)}
	lines := bufio.NewReaderSize(in, 64<<10)
	var r build.Request
	if err := json.NewDecoder(io.LimitReader(lines, maxRequest)).Decode(&r); err != nil {
		events.send(build.Event{Error: &build.Error{Message: fmt.Sprintf("read the request: %v", err)}})
		return 2
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		cancel(errors.New("the agent has cancelled the build"))
	}()
	// Mounts of the builder disappear with it. Those of the host that end must end here too.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		events.send(build.Event{Error: &build.Error{Message: fmt.Sprintf("separate the mounts: %v", err)}})
		return 1
	}
	if r.Source.Address != "" {
		return fetchOnly(ctx, r, events)
	}
	done, failed := run(ctx, r, events)
	if failed != nil {
		events.send(build.Event{Error: failed})
		return 1
	}
	events.send(build.Event{Result: done})
	return 0
}

// fetchOnly fetches the source of a request.
func fetchOnly(ctx context.Context, r build.Request, events *events) int {
	done, err := locked(ctx, r, events)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		events.send(build.Event{Error: &build.Error{Message: err.Error()}})
		return 1
	}
	events.send(build.Event{Fetched: done})
	return 0
}

func locked(ctx context.Context, r build.Request, events *events) (*build.Fetched, error) {
	events.send(build.Event{Phase: "fetching"})
	if err := lock(ctx, r.Root, func() {
		fmt.Fprintln(events, "Waiting for another build of the project on this machine.")
	}); err != nil {
		return nil, fmt.Errorf("lock the project's cache: %w", err)
	}
	return fetchSource(ctx, r, events)
}

// events writes the output of the process. It is safe for concurrent use.
type events struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (e *events) send(v build.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.out.Encode(v) // without a reader, the agent has ended, and so will the input
}

// Write sends output for the user.
func (e *events) Write(p []byte) (int, error) {
	e.send(build.Event{Log: string(p)})
	return len(p), nil
}
