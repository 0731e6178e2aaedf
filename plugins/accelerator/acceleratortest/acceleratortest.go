// Package acceleratortest is the conformance suite of the accelerator contract.
// It drives a plugin's binary as the agent would. A vendor runs it from a test
// (Test) or with the command berth-accelerator-conformance; both do the same.
package acceleratortest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Plugin says what to test.
type Plugin struct {
	Path   string   // the binary
	Config []byte   // config_json; empty = the plugin's defaults
	Env    []string // added to the plugin's environment
	// Roots to find hardware in; its State is ignored, every check has its own.
	Roots *pb.Roots
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

// checkTimeout is generous: the slowest check takes a second.
const checkTimeout = 20 * time.Second

// skip is a check's error when the plugin has nothing for it to look at.
type skip string

func (s skip) Error() string { return string(s) }

// Checks lists the suite in the order it runs.
func Checks() []Check {
	return slices.Concat(startChecks, deviceChecks, prepareChecks, restoreChecks, metricChecks, processChecks)
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

func runOne(ctx context.Context, p Plugin, c Check) (r Result) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	r = Result{Check: c, Outcome: Passed}
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

// bench is the place one check works at: fresh directories, and every process
// it started.
type bench struct {
	plugin  Plugin
	dir     string
	logs    *bytes.Buffer
	clients []*accelerator.Client
}

func newBench(p Plugin) (*bench, error) {
	b := &bench{plugin: p, logs: &bytes.Buffer{}}
	dir, err := os.MkdirTemp("", "acc")
	if err != nil {
		return b, err
	}
	b.dir = dir
	return b, errors.Join(os.Mkdir(b.state(), 0o700), os.Mkdir(filepath.Join(dir, "run"), 0o700))
}

func (b *bench) state() string { return filepath.Join(b.dir, "state") }

func (b *bench) close() error {
	var errs []error
	for _, c := range b.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

func (b *bench) options() accelerator.Options {
	return accelerator.Options{
		Path: b.plugin.Path, Env: b.plugin.Env, SocketDir: filepath.Join(b.dir, "run"),
		Logger:       slog.New(slog.NewTextHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelInfo})),
		AgentVersion: "conformance", NodeName: "conformance", Incarnation: "1",
	}
}

// launch starts a process that has only been described.
func (b *bench) launch(ctx context.Context) (*accelerator.Client, error) {
	c, err := accelerator.Launch(ctx, b.options())
	if err == nil {
		b.clients = append(b.clients, c)
	}
	return c, err
}

func (b *bench) request() *pb.ConfigureRequest {
	roots := &pb.Roots{State: b.state()}
	if r := b.plugin.Roots; r != nil {
		roots = &pb.Roots{Sys: r.Sys, Dev: r.Dev, Proc: r.Proc, Driver: r.Driver, Path: r.Path, State: b.state()}
	}
	return &pb.ConfigureRequest{ConfigJson: b.plugin.Config, Roots: roots}
}

// ready starts a process and brings it to where an agent would use it.
func (b *bench) ready(ctx context.Context, live ...*pb.LiveAllocation) (*accelerator.Client, *pb.DeviceSnapshot, error) {
	c, err := b.launch(ctx)
	if err != nil {
		return nil, nil, err
	}
	if _, err := c.Configure(ctx, b.request()); err != nil {
		return nil, nil, fmt.Errorf("configure: %w", err)
	}
	if _, err := c.Restore(ctx, &pb.RestoreRequest{Live: live}); err != nil {
		return nil, nil, fmt.Errorf("restore: %w", err)
	}
	s, err := snapshot(ctx, c)
	return c, s, err
}

// withDevices is ready for checks that need an allocatable device.
func (b *bench) withDevices(ctx context.Context) (*accelerator.Client, *pb.DeviceSnapshot, error) {
	c, s, err := b.ready(ctx)
	if err == nil && len(usable(s)) == 0 {
		err = skip("no allocatable device")
	}
	return c, s, err
}

// snapshot returns the first message of WatchDevices, checked.
func snapshot(ctx context.Context, c *accelerator.Client) (*pb.DeviceSnapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	w, err := c.WatchDevices(ctx, &pb.WatchDevicesRequest{})
	if err != nil {
		return nil, fmt.Errorf("watch devices: %w", err)
	}
	s, err := w.Recv()
	if err != nil {
		return nil, fmt.Errorf("watch devices: first snapshot: %w", err)
	}
	if err := accelerator.Validate(c.Description, s); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return s, nil
}

// usable lists the allocatable devices.
func usable(s *pb.DeviceSnapshot) []*pb.Device {
	var out []*pb.Device
	for _, d := range s.GetDevices() {
		if d.GetAllocatable() {
			out = append(out, d)
		}
	}
	return out
}

// all returns the allocation of the whole of a device by its first slot.
func all(s *pb.DeviceSnapshot, d *pb.Device) *pb.Allocation {
	for _, slot := range s.GetSlots() {
		if have := d.GetCapacity()[slot.GetName()]; have != "" {
			return &pb.Allocation{Slot: slot.GetName(), DeviceId: d.GetId(), Amount: have}
		}
	}
	return nil
}

func prepare(id, dir string, a ...*pb.Allocation) *pb.PrepareRequest {
	return &pb.PrepareRequest{AllocationId: id, KernelId: id, SessionId: id, Allocations: a,
		ImageArchitecture: "amd64", WorkDir: filepath.Join(dir, id), TrustDomain: "conformance"}
}

// want returns an error unless err has the code.
func want(what string, err error, code codes.Code) error {
	if got := status.Code(err); got != code {
		return fmt.Errorf("%s: %v, want code %v", what, err, code)
	}
	return nil
}
