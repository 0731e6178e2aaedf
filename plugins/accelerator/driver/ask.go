package driver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// answers caches the latest outputs of programs, by command line. A scan of the hardware, the
// node's metrics and the workloads' metrics run the same commands at about the same time.
type answers struct {
	mu  sync.Mutex
	all map[string]*answer
}

// answer is the output of a program, which is complete once done is closed.
type answer struct {
	done chan struct{}
	at   time.Time
	out  []byte
	err  error
}

// Ask is like Run, for commands that only read. Calls with the same command share one output if
// they arrive while the program runs or within Fresh after its end; callers must not modify it. If
// the context of a caller ends, the program continues for the others, but no longer than the
// timeout of a scan.
func (h *Host) Ask(ctx context.Context, name string, args ...string) ([]byte, error) {
	if _, err := h.Find(name); err != nil {
		return nil, err // the program may be installed later
	}
	a := h.answer(name, args)
	select {
	case <-a.done:
		return a.out, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s does not end: %w", name, ctx.Err())
	}
}

// answer returns the running or fresh call of the command, or starts the program.
func (h *Host) answer(name string, args []string) *answer {
	key := strings.Join(append([]string{name}, args...), "\x00")
	h.said.mu.Lock()
	defer h.said.mu.Unlock()
	if a := h.said.all[key]; a != nil {
		select {
		case <-a.done:
			if time.Since(a.at) < h.Fresh {
				return a
			}
		default:
			return a
		}
	}
	if h.said.all == nil {
		h.said.all = map[string]*answer{}
	}
	a := &answer{done: make(chan struct{})}
	h.said.all[key] = a
	go func() { // for as long as the program runs
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		a.out, a.err = h.Run(ctx, name, args...)
		a.at = time.Now()
		close(a.done)
	}()
	return a
}

// AskJSON is Ask for a program that prints JSON.
func (h *Host) AskJSON(ctx context.Context, v any, name string, args ...string) error {
	raw, err := h.Ask(ctx, name, args...)
	if err != nil {
		return err
	}
	return unmarshal(raw, v, name)
}
