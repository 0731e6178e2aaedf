package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

const (
	// scanEvery keeps the detection of changes within the contract's 5 s.
	scanEvery = 2 * time.Second
	// timeout limits one scan of the hardware.
	timeout = 4 * time.Second
	// firstTimeout is longer, for drivers that wake the hardware when they are opened, and shorter
	// than the call's 10 s.
	firstTimeout = 8 * time.Second
)

// errHanging is the error of a scan that ignores its context.
var errHanging = errors.New("it cannot be interrupted")

// Plugin implements the contract with a Driver. Create it with New.
type Plugin struct {
	pb.UnimplementedAcceleratorServer
	driver Driver
	feed   accelerator.Feed
	ledger accelerator.Ledger
	follow sync.Once
	scans  chan struct{} // serializes scans

	mu   sync.Mutex
	now  *opened
	good *pb.DeviceSnapshot // the last successful snapshot
}

// opened is a machine with one configuration.
type opened struct {
	Machine
	mask []string
}

// New returns a plugin for a driver.
func New(d Driver) *Plugin { return &Plugin{driver: d, scans: make(chan struct{}, 1)} }

func (p *Plugin) machine() *opened {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// ready returns the machine and its current snapshot.
func (p *Plugin) ready() (*opened, *pb.DeviceSnapshot, error) {
	s, err := p.feed.Ready()
	return p.machine(), s, err
}

// Describe implements the contract.
func (p *Plugin) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return p.driver.Describe(), nil
}

// Configure implements the contract.
func (p *Plugin) Configure(ctx context.Context, req *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	m, err := p.driver.Open(NewHost(req.GetRoots()), req.GetConfigJson())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	p.mu.Lock()
	p.now = &opened{m, req.GetDeviceMask()}
	p.mu.Unlock()
	p.scan(ctx, firstTimeout)
	p.follow.Do(func() {
		go func() { // for the life of the process
			for range time.Tick(scanEvery) {
				p.scan(context.Background(), timeout)
			}
		}()
	})
	return &pb.ConfigureResponse{}, nil
}

// scan scans the machine once. A scan that does not end in time counts as failed, and blocks
// further scans until it has ended.
func (p *Plugin) scan(ctx context.Context, within time.Duration) {
	m := p.machine()
	ctx, cancel := context.WithTimeout(ctx, within)
	type found struct {
		s   *pb.DeviceSnapshot
		err error
	}
	looked := make(chan found, 1)
	go func() {
		defer cancel()
		select {
		case p.scans <- struct{}{}:
			defer func() { <-p.scans }()
		case <-ctx.Done():
			looked <- found{err: fmt.Errorf("an earlier scan of the hardware has not ended: %w", errHanging)}
			return
		}
		s, err := look(ctx, m)
		looked <- found{s, err}
	}()
	var f found
	select {
	case f = <-looked:
	case <-time.After(within + 500*time.Millisecond): // a read that ignores the context
		f.err = fmt.Errorf("scanning the hardware takes more than %s: %w", within, errHanging)
	}
	if m != p.machine() {
		return // configured again and scanned since
	}
	if f.err != nil {
		p.feed.Set(unsure(p.driver.Describe(), p.seen(nil), f.err))
		return
	}
	p.feed.Set(p.seen(Tidy(p.driver.Describe(), masked(p.driver.Describe(), f.s, m.mask))))
}

// seen stores the snapshot, unless it is nil, and returns the last successful one.
func (p *Plugin) seen(now *pb.DeviceSnapshot) *pb.DeviceSnapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now != nil {
		p.good = now
	}
	return p.good
}

// look converts a panic, which an unexpected file could cause, to an error.
func look(ctx context.Context, m Machine) (s *pb.DeviceSnapshot, err error) {
	defer func() {
		if r := recover(); r != nil {
			accelerator.Logger().Error("panic while scanning the hardware", "reason", r)
			err = fmt.Errorf("scanning the hardware failed: %v", r)
		}
	}()
	return m.Scan(ctx)
}

// Preflight implements the contract.
func (p *Plugin) Preflight(ctx context.Context, _ *pb.PreflightRequest) (*pb.PreflightResponse, error) {
	m, s, err := p.ready()
	if err != nil {
		return nil, err
	}
	out := &pb.PreflightResponse{DriverInfo: s.GetDriverInfo()}
	if l := s.GetLook(); l.GetMessage() != "" {
		out.Checks = append(out.Checks, Checked("look", false, "", l.GetMessage()))
	}
	if c, ok := m.Machine.(Checker); ok {
		ctx, cancel := context.WithTimeout(ctx, timeout) // shorter than the call's deadline, so that a response is sent
		out.Checks = append(out.Checks, c.Check(ctx)...)
		cancel()
	}
	good := 0
	for _, d := range s.GetDevices() {
		if d.GetAllocatable() {
			good++
		}
	}
	out.Checks = append(out.Checks, &pb.Check{Name: "devices", Ok: good == len(s.GetDevices()), Detail: fmt.Sprintf("%d of %d can be used", good, len(s.GetDevices()))})
	return out, nil
}

// WatchDevices implements the contract.
func (p *Plugin) WatchDevices(_ *pb.WatchDevicesRequest, out pb.Accelerator_WatchDevicesServer) error {
	return p.feed.Watch(out.Context(), out.Send)
}

// WatchHealth implements the contract.
func (p *Plugin) WatchHealth(_ *pb.WatchHealthRequest, out pb.Accelerator_WatchHealthServer) error {
	return p.feed.WatchHealth(out.Context(), out.Send)
}

// Prepare implements the contract.
func (p *Plugin) Prepare(ctx context.Context, req *pb.PrepareRequest) (*pb.PrepareResponse, error) {
	m, s, err := p.ready()
	if err != nil {
		return nil, err
	}
	live := p.ledger.Holds(req.GetAllocationId())
	return p.ledger.Prepare(req, func() (*pb.PrepareResponse, error) {
		grants, err := accelerator.Grants(s, req.GetAllocations())
		if err != nil {
			return nil, err
		}
		out, err := m.Edit(ctx, &Request{req, grants, s})
		if err != nil {
			if u, ok := m.Machine.(Undoer); ok && !live { // an incomplete preparation is undone
				if undone := u.Undo(ctx, req.GetAllocationId(), nil); undone != nil {
					accelerator.Logger().Warn("undo what failed", "allocation", req.GetAllocationId(), "error", undone)
				}
			}
			if _, ok := status.FromError(err); !ok {
				err = status.Error(codes.FailedPrecondition, err.Error())
			}
			return nil, err
		}
		return out, nil
	})
}

// Unprepare implements the contract.
func (p *Plugin) Unprepare(ctx context.Context, req *pb.UnprepareRequest) (*pb.UnprepareResponse, error) {
	if req.GetAllocationId() == "" {
		return nil, status.Error(codes.InvalidArgument, "allocation_id: must be set")
	}
	m, _, err := p.ready()
	if err != nil {
		return nil, err
	}
	if u, ok := m.Machine.(Undoer); ok {
		if err := u.Undo(ctx, req.GetAllocationId(), req.GetState()); err != nil {
			return nil, status.Errorf(codes.Unavailable, "allocation_id: %s: %v", req.GetAllocationId(), err)
		}
	}
	p.ledger.Forget(req.GetAllocationId())
	return &pb.UnprepareResponse{}, nil
}

// Restore implements the contract.
func (p *Plugin) Restore(ctx context.Context, req *pb.RestoreRequest) (*pb.RestoreResponse, error) {
	m, s, err := p.ready()
	if err != nil {
		return nil, err
	}
	p.ledger.Restore(req.GetLive())
	out := &pb.RestoreResponse{Problems: accelerator.RestoreProblems(s, req.GetLive())}
	if r, ok := m.Machine.(Resumer); ok {
		out.Problems = append(out.Problems, r.Resume(ctx, req.GetLive())...)
	}
	if u, ok := m.Machine.(Undoer); ok {
		if out.LeaksRemoved, err = u.Sweep(ctx, req.GetLive()); err != nil {
			accelerator.Logger().Warn("look for leaks", "error", err)
		}
	}
	return out, nil
}

// WatchNodeMetrics implements the contract.
func (p *Plugin) WatchNodeMetrics(req *pb.WatchNodeMetricsRequest, out pb.Accelerator_WatchNodeMetricsServer) error {
	if _, _, err := p.ready(); err != nil {
		return err
	}
	return accelerator.Every(out.Context(), req.GetIntervalMs(), func() error {
		m, s, _ := p.ready()
		sample := &pb.NodeSample{}
		if sampler, ok := m.Machine.(Sampler); ok {
			ctx, cancel := context.WithTimeout(out.Context(), timeout)
			sample.Metrics = sampler.Sample(ctx, s)
			cancel()
		}
		sample.UnixMs = time.Now().UnixMilli()
		return out.Send(sample)
	})
}

// WatchWorkloadMetrics implements the contract.
func (p *Plugin) WatchWorkloadMetrics(stream pb.Accelerator_WatchWorkloadMetricsServer) error {
	m, _, err := p.ready()
	if err != nil {
		return err
	}
	if _, ok := m.Machine.(WorkloadSampler); !ok {
		return p.UnimplementedAcceleratorServer.WatchWorkloadMetrics(stream)
	}
	return accelerator.ServeWorkloads(stream, func(set *pb.WorkloadSet) *pb.WorkloadSample {
		m, s, _ := p.ready()
		sample := &pb.WorkloadSample{}
		if sampler, ok := m.Machine.(WorkloadSampler); ok {
			ctx, cancel := context.WithTimeout(stream.Context(), timeout)
			sample.Workloads = sampler.SampleWorkloads(ctx, s, set)
			cancel()
		}
		return sample
	})
}
