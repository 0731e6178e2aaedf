// Package volumetest is the conformance suite of the volume contract. It
// drives a plugin's binary as the storage proxy would. A vendor runs it from a
// test (Test) or with the command berth-volume-conformance; both do the same.
package volumetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Plugin says what to test.
type Plugin struct {
	Path string   // the binary
	Env  []string // added to the plugin's environment
	// Options is options_json; empty = the plugin's defaults.
	Options string
	// Mount is where the product is mounted and may be written to; every check
	// makes scopes of its own there and removes them. Empty = a fresh
	// directory for each check, for plugins that need no product.
	Mount string
}

// Check is one promise of the contract.
type Check struct {
	Name string
	Want string // what is promised, one line
	run  func(context.Context, *bench) error
}

// Outcome of a check.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "pass"
	Failed  Outcome = "FAIL"
	Skipped Outcome = "skip"
)

// Result is what a check found.
type Result struct {
	Check   Check
	Outcome Outcome
	Detail  string // why it failed or was skipped
	Log     string // the plugin's log of a failed check
	Took    time.Duration
}

// checkTimeout leaves room for products that answer through a job.
const checkTimeout = 2 * time.Minute

// skip is a check's error when the plugin lacks the capability.
type skip string

func (s skip) Error() string { return string(s) }

// Checks lists the suite in the order it runs.
func Checks() []Check {
	return slices.Concat(startChecks, scopeChecks, processChecks)
}

// Run runs the checks named, or all, one after the other and reports each.
func Run(ctx context.Context, p Plugin, only []string, report func(Result)) error {
	if _, err := os.Stat(p.Path); err != nil {
		return err
	}
	all := Checks()
	for _, name := range only {
		if !slices.ContainsFunc(all, func(c Check) bool { return c.Name == name }) {
			return fmt.Errorf("there is no check %q", name)
		}
	}
	for _, c := range all {
		if len(only) == 0 || slices.Contains(only, c.Name) {
			report(runOne(ctx, p, c))
		}
	}
	return ctx.Err()
}

// Test runs the suite as subtests.
func Test(t *testing.T, p Plugin) {
	t.Helper()
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			switch r := runOne(t.Context(), p, c); r.Outcome {
			case Failed:
				t.Errorf("%s\nwant: %s\n%s", r.Detail, c.Want, r.Log)
			case Skipped:
				t.Skip(r.Detail)
			}
		})
	}
}

func runOne(ctx context.Context, p Plugin, c Check) Result {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	r := Result{Check: c, Outcome: Passed}
	b, err := newBench(p)
	if err == nil {
		err = c.run(ctx, b)
		err = errors.Join(err, b.close())
	}
	r.Took = time.Since(began)
	var s skip
	switch {
	case errors.As(err, &s):
		r.Outcome, r.Detail = Skipped, s.Error()
	case err != nil:
		r.Outcome, r.Detail, r.Log = Failed, err.Error(), b.logs.String()
	}
	return r
}

// bench is the place one check works at, and every process it started.
type bench struct {
	plugin  Plugin
	dir     string
	mount   string
	logs    *log
	clients []*volume.Client
}

const volumeName = "conformance"

func newBench(p Plugin) (*bench, error) {
	b := &bench{plugin: p, mount: p.Mount, logs: &log{}}
	dir, err := os.MkdirTemp("", "vol")
	if err != nil {
		return b, err
	}
	b.dir = dir
	if b.mount == "" {
		b.mount = filepath.Join(dir, "mount")
		err = os.Mkdir(b.mount, 0o755)
	}
	return b, errors.Join(err, os.Mkdir(filepath.Join(dir, "run"), 0o700))
}

func (b *bench) close() error {
	var errs []error
	for _, c := range b.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// launch starts a process that has only been described.
func (b *bench) launch(ctx context.Context) (*volume.Client, error) {
	c, err := volume.Launch(ctx, volume.Options{
		Path: b.plugin.Path, Env: b.plugin.Env, SocketDir: filepath.Join(b.dir, "run"),
		Logger: slog.New(slog.NewTextHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	if err == nil {
		b.clients = append(b.clients, c)
	}
	return c, err
}

// open starts a process and opens the volume in it.
func (b *bench) open(ctx context.Context) (*volume.Client, *pb.OpenVolumeResponse, error) {
	c, err := b.launch(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := c.OpenVolume(ctx, b.request())
	if err != nil {
		return nil, nil, fmt.Errorf("open volume: %w", err)
	}
	return c, r, nil
}

func (b *bench) request() *pb.OpenVolumeRequest {
	return &pb.OpenVolumeRequest{Volume: volumeName, MountPath: b.mount, OptionsJson: b.plugin.Options}
}

func has(r *pb.OpenVolumeResponse, c pb.Capability) bool {
	return slices.Contains(r.GetCapabilities(), c)
}

// want returns an error unless err has the code.
func want(what string, err error, code codes.Code) error {
	if got := status.Code(err); got != code {
		return fmt.Errorf("%s: %v, want code %v", what, err, code)
	}
	return nil
}

// log gathers the plugin's lines, which arrive from another goroutine.
type log struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}
