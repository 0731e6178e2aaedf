// Package acceleratortest is the conformance suite of the accelerator contract. It calls a plugin's
// program as the agent would. Vendors run it from a test (Test) or with the command
// berth-accelerator-conformance, which are equivalent.
package acceleratortest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

// Plugin describes the plugin to test.
type Plugin struct {
	Path   string   // the program
	Config []byte   // config_json; empty = the plugin's defaults
	Env    []string // added to the plugin's environment
	// Roots are the directories in which to find hardware. Roots.State is ignored: every check has
	// its own.
	Roots *pb.Roots
	// Fixture is a simulated machine of package fixture, built in or a path. Its tree replaces
	// Roots, and its settings replace an empty Config. Without a fixture, checks that change
	// hardware are skipped.
	Fixture string
}

// Check is one requirement of the contract.
type Check struct {
	Name string
	Want string // the requirement in one line
	run  func(context.Context, *bench) error
}

// Checks returns all checks in the order of the report.
func Checks() []Check {
	return slices.Concat(startChecks, configChecks, deviceChecks, prepareChecks, editChecks, restoreChecks, metricChecks, changeChecks, processChecks)
}

// launch starts a process and calls only Describe.
func (b *bench) launch(ctx context.Context) (*accelerator.Client, error) {
	c, err := accelerator.Launch(ctx, b.options(), asking)
	if err == nil {
		b.clients = append(b.clients, c)
	}
	return c, err
}

func (b *bench) request() *pb.ConfigureRequest {
	roots := &pb.Roots{}
	if r := b.plugin.Roots; r != nil {
		roots = proto.CloneOf(r)
	}
	roots.State = b.state()
	return &pb.ConfigureRequest{ConfigJson: b.plugin.Config, Roots: roots}
}

// ready starts a process and makes all calls that an agent makes before it uses the plugin.
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

// withDevices is ready for checks that need an allocatable device; it skips the check if there is
// none.
func (b *bench) withDevices(ctx context.Context) (*accelerator.Client, *pb.DeviceSnapshot, error) {
	c, s, err := b.ready(ctx)
	if err == nil && len(usable(s)) == 0 {
		err = suite.Skip("no allocatable device")
	}
	return c, s, err
}

// snapshot returns the first message of WatchDevices after validating it.
func snapshot(ctx context.Context, c *accelerator.Client) (*pb.DeviceSnapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
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

// usable returns the allocatable devices.
func usable(s *pb.DeviceSnapshot) []*pb.Device {
	var out []*pb.Device
	for _, d := range s.GetDevices() {
		if d.GetAllocatable() {
			out = append(out, d)
		}
	}
	return out
}

// all returns an allocation of the full capacity of a device's first slot.
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
		WorkDir: filepath.Join(dir, id), TrustDomain: "conformance"}
}

// want returns an error unless err has the code.
func want(what string, err error, code codes.Code) error {
	if got := status.Code(err); got != code {
		return fmt.Errorf("%s: %v, want code %v", what, err, code)
	}
	return nil
}

const (
	// checkTimeout limits one check.
	checkTimeout = 3 * time.Minute
	// timeout is the limit for operations to which the contract allows 5 s, because the suite must
	// also pass on a busy machine.
	timeout = 15 * time.Second
	// atOnce is the number of concurrent checks.
	atOnce = 4
)

// Run runs the named checks, or all, and reports the results in the order of Checks.
func Run(ctx context.Context, p Plugin, only []string, report func(suite.Result)) error {
	checks, err := suite.Only(Checks(), func(c Check) string { return c.Name }, only)
	if err != nil {
		return err
	}
	s, err := newSite(p)
	if err != nil {
		return err
	}
	for _, r := range s.begin(ctx, checks) {
		report(<-r)
	}
	return errors.Join(ctx.Err(), s.close())
}

// Test runs the suite as subtests. It skips it with -short: the suite takes seconds, and the race
// detector, which short runs are for, cannot inspect another process.
func Test(t *testing.T, p Plugin) {
	t.Helper()
	if testing.Short() {
		t.Skip("the suite takes seconds")
	}
	s, err := newSite(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	results := s.begin(ctx, Checks())
	for i, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) { (<-results[i]).Show(t) })
	}
	cancel() // with -run, results of other checks do not matter
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// begin starts the checks with limited concurrency, and returns a channel for each result.
func (s *site) begin(ctx context.Context, checks []Check) []<-chan suite.Result {
	out := make([]<-chan suite.Result, len(checks))
	free := make(chan struct{}, atOnce)
	var last <-chan struct{} // closed when the previous check has started
	for i, c := range checks {
		r := make(chan suite.Result, 1)
		out[i] = r
		in, before := make(chan struct{}), last
		last = in
		s.running.Go(func() {
			if before != nil {
				<-before
			}
			free <- struct{}{}
			close(in)
			defer func() { <-free }()
			r <- s.run(ctx, c)
		})
	}
	return out
}

func (s *site) run(ctx context.Context, c Check) suite.Result {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	b, err := s.bench()
	if err == nil {
		err = c.run(ctx, b)
		closed := b.close()
		if err == nil || closed != nil {
			err = errors.Join(err, closed)
		}
	}
	return suite.Conclude(suite.Check{Name: c.Name, Want: c.Want}, err, time.Since(began), b.log)
}
