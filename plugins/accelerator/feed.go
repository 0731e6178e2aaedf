package accelerator

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Feed distributes a plugin's current snapshot to its watchers. The zero value is empty and ready
// to use. Snapshots are shared and must not be modified after Set.
type Feed struct {
	mu   sync.Mutex
	now  *pb.DeviceSnapshot
	next chan struct{}
}

// Set replaces the current snapshot, numbers the new one and notifies the watchers. It does nothing
// if the new snapshot equals the current one.
func (f *Feed) Set(s *pb.DeviceSnapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Revision = 1
	if f.now != nil {
		s.Revision = f.now.Revision
		if proto.Equal(s, f.now) {
			return
		}
		s.Revision++
	}
	f.now = s
	if f.next != nil {
		close(f.next)
	}
	f.next = make(chan struct{})
}

// Snapshot returns the current snapshot, or nil before the first Set.
func (f *Feed) Snapshot() *pb.DeviceSnapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Ready returns the current snapshot, or the error for a call before Configure.
func (f *Feed) Ready() (*pb.DeviceSnapshot, error) {
	if s := f.Snapshot(); s != nil {
		return s, nil
	}
	return nil, errNotConfigured
}

var errNotConfigured = status.Error(codes.FailedPrecondition, "the plugin is not configured")

// Watch calls send with the current snapshot and after each change, until the context ends or send
// fails. A slow watcher skips intermediate snapshots.
func (f *Feed) Watch(ctx context.Context, send func(*pb.DeviceSnapshot) error) error {
	last, err := f.Ready()
	if err != nil {
		return err
	}
	if err := send(last); err != nil {
		return err
	}
	for {
		f.mu.Lock()
		now, next := f.now, f.next
		f.mu.Unlock()
		if now != last {
			last = now
			if err := send(now); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		}
	}
}

// WatchHealth sends the health in the snapshots as events: first one for every device that is not
// healthy, then one for each change. A device that disappears is LOST, unless the scan failed.
func (f *Feed) WatchHealth(ctx context.Context, send func(*pb.HealthEvent) error) error {
	known := map[string]*pb.HealthEvent{}
	return f.Watch(ctx, func(s *pb.DeviceSnapshot) error {
		here := map[string]bool{}
		for _, d := range s.GetDevices() {
			here[d.GetId()] = true
			e := &pb.HealthEvent{DeviceId: d.GetId(), Health: d.GetHealth(), Message: d.GetHealthMessage()}
			if err := sendChange(known, e, send); err != nil {
				return err
			}
		}
		for id := range known {
			if here[id] || s.GetLook().GetState() > pb.Look_PARTIAL { // an incomplete scan does not show that the device disappeared
				continue
			}
			e := &pb.HealthEvent{DeviceId: id, Health: pb.Health_HEALTH_LOST, Message: "device was removed"}
			if err := sendChange(known, e, send); err != nil {
				return err
			}
		}
		return nil
	})
}

func sendChange(known map[string]*pb.HealthEvent, e *pb.HealthEvent, send func(*pb.HealthEvent) error) error {
	was := known[e.DeviceId]
	known[e.DeviceId] = e
	if was == nil && e.Health == pb.Health_HEALTH_HEALTHY ||
		was != nil && was.Health == e.Health && was.Message == e.Message {
		return nil
	}
	e.UnixMs = time.Now().UnixMilli()
	e.FatalToWorkloads = e.Health == pb.Health_HEALTH_LOST
	return send(e)
}

// Every calls sample at once and then at the interval in milliseconds (0 = 5000, at least 100),
// until the context ends or sample fails.
func Every(ctx context.Context, intervalMS uint32, sample func() error) error {
	tick := time.NewTicker(interval(intervalMS))
	defer tick.Stop()
	for {
		if err := sample(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func interval(ms uint32) time.Duration {
	if ms == 0 {
		ms = 5000
	}
	return time.Duration(max(ms, 100)) * time.Millisecond
}

// WorkloadStream is the server side of WatchWorkloadMetrics.
type WorkloadStream interface {
	Context() context.Context
	Recv() (*pb.WorkloadSet, error)
	Send(*pb.WorkloadSample) error
}

// ServeWorkloads serves a WatchWorkloadMetrics stream: it measures the latest received set at once
// and at its interval.
func ServeWorkloads(stream WorkloadStream, measure func(*pb.WorkloadSet) *pb.WorkloadSample) error {
	sets := make(chan *pb.WorkloadSet)
	go func() { // ends with the stream
		defer close(sets)
		for {
			set, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case sets <- set:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	var set *pb.WorkloadSet
	tick := time.NewTicker(time.Hour) // until the first set arrives
	defer tick.Stop()
	for {
		select {
		case next, ok := <-sets:
			if !ok {
				return nil
			}
			set = next
			tick.Reset(interval(set.GetIntervalMs()))
		case <-tick.C:
			if set == nil {
				continue
			}
		}
		sample := measure(set)
		sample.UnixMs = time.Now().UnixMilli()
		if err := stream.Send(sample); err != nil {
			return err
		}
	}
}
