package driver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Plugin implements the contract with a Backend. Create it with New.
type Plugin struct {
	pb.UnimplementedVolumeServer
	about *pb.DescribeResponse
	open  func(ctx context.Context, m *Mount, options string) (Volume, error)

	mu      sync.Mutex
	volumes map[string]*opened
}

// opened is a volume since one OpenVolume.
type opened struct {
	Volume
	mount  *Mount
	traits Traits
	caps   []pb.Capability
	scopes locks
	calls  sync.WaitGroup // calls begin under Plugin.mu, so that none begins after it was replaced
	life   context.Context
	end    context.CancelFunc
}

// New returns a plugin for a backend. It panics if O is not a valid options struct.
func New[O any](b Backend[O]) *Plugin {
	about := &pb.DescribeResponse{Vendor: b.Vendor, Backend: b.Name, Version: b.Version, OptionsSchema: Schema(b.Defaults)}
	if err := volume.ValidateDescription(about); err != nil {
		panic(err)
	}
	return &Plugin{
		about: about, volumes: map[string]*opened{},
		open: func(ctx context.Context, m *Mount, options string) (Volume, error) {
			o := b.Defaults
			if err := Decode(options, &o); err != nil {
				return nil, err
			}
			return b.Open(ctx, m, o)
		},
	}
}

// Describe implements the contract.
func (p *Plugin) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return p.about, nil
}

// OpenVolume implements the contract. Running calls continue with the previously opened volume.
func (p *Plugin) OpenVolume(ctx context.Context, r *pb.OpenVolumeRequest) (*pb.OpenVolumeResponse, error) {
	switch {
	case r.GetVolume() == "":
		return nil, status.Error(codes.InvalidArgument, "volume: must be set")
	case !filepath.IsAbs(r.GetMountPath()):
		return nil, status.Errorf(codes.InvalidArgument, "mount_path: %q is not absolute", r.GetMountPath())
	}
	m, err := OpenMount(filepath.Clean(r.GetMountPath()))
	if err != nil {
		return nil, err
	}
	o := &opened{mount: m}
	o.life, o.end = context.WithCancel(context.Background())
	err = guard("open volume", func() (err error) {
		if o.Volume, err = p.open(ctx, m, r.GetOptionsJson()); err != nil {
			return err
		}
		o.traits = o.Traits()
		o.caps = capabilities(o.Volume, o.traits)
		return nil
	})
	if err != nil {
		o.end()
		return nil, err
	}
	p.mu.Lock()
	old := p.volumes[r.GetVolume()]
	p.volumes[r.GetVolume()] = o
	p.mu.Unlock()
	if old != nil {
		go func() { // waits for its last call, which can be a copy of an hour
			if err := old.finish(); err != nil {
				volume.Logger().Warn("close the previous volume", "volume", r.GetVolume(), "error", err.Error())
			}
		}()
	}
	enforcement := o.traits.Enforcement
	if !o.limited() {
		enforcement = pb.Enforcement_NONE
	}
	return &pb.OpenVolumeResponse{Capabilities: o.caps, Enforcement: enforcement}, nil
}

// CloseVolume implements the contract. Running calls end as cancelled.
func (p *Plugin) CloseVolume(_ context.Context, r *pb.VolumeRef) (*pb.CloseVolumeResponse, error) {
	p.mu.Lock()
	o := p.volumes[r.GetVolume()]
	delete(p.volumes, r.GetVolume())
	p.mu.Unlock()
	if o != nil {
		o.end()
		if err := o.finish(); err != nil {
			return nil, Error("close volume", err)
		}
	}
	return &pb.CloseVolumeResponse{}, nil
}

// finish waits for the calls and closes the volume.
func (o *opened) finish() error {
	o.calls.Wait()
	o.end()
	return guard("", o.Close)
}

// capabilities returns those that a volume has methods for and the product supports at present.
func capabilities(v Volume, t Traits) []pb.Capability {
	out := []pb.Capability{pb.Capability_SCOPE}
	add := func(has bool, c pb.Capability) {
		if has && !slices.Contains(t.Lacks, c) {
			out = append(out, c)
		}
	}
	limits := t.Enforcement != pb.Enforcement_ENFORCEMENT_UNSPECIFIED && t.Enforcement != pb.Enforcement_NONE
	add(limits && !t.NoBytes, pb.Capability_QUOTA_BYTES)
	add(limits && t.Inodes, pb.Capability_QUOTA_INODES)
	add(able[Measurer](v), pb.Capability_USAGE_FAST)
	add(able[Sizer](v), pb.Capability_CAPACITY)
	add(able[Meter](v), pb.Capability_METRICS)
	add(able[Deleter](v), pb.Capability_DELETE)
	add(able[Cloner](v), pb.Capability_CLONE)
	add(able[Mounter](v), pb.Capability_PER_SCOPE_MOUNT)
	add(able[Lister](v), pb.Capability_LIST_SCOPES)
	return out
}

func able[I any](v Volume) bool { _, ok := v.(I); return ok }

func (o *opened) has(c pb.Capability) bool { return slices.Contains(o.caps, c) }

func (o *opened) limited() bool {
	return o.has(pb.Capability_QUOTA_BYTES) || o.has(pb.Capability_QUOTA_INODES)
}

// call runs f with an open volume that is mounted and has the capability. The context also ends
// when the volume is closed.
func (p *Plugin) call(ctx context.Context, name string, c pb.Capability, f func(context.Context, *opened) error) error {
	return p.with(ctx, name, func(ctx context.Context, o *opened) error {
		if !o.has(c) {
			return status.Errorf(codes.Unimplemented, "volume %s has no %s", name, c)
		}
		if err := o.mount.Mounted(); err != nil {
			return err
		}
		return f(ctx, o)
	})
}

func (p *Plugin) with(ctx context.Context, name string, f func(context.Context, *opened) error) error {
	p.mu.Lock()
	o := p.volumes[name]
	if o != nil {
		o.calls.Add(1)
	}
	p.mu.Unlock()
	if o == nil {
		return status.Errorf(codes.NotFound, "volume %q is not open", name)
	}
	defer o.calls.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.life, cancel)()
	return guard("", func() error { return f(ctx, o) })
}

// guard adds a status to errors and converts a panic to an error.
func guard(doing string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			volume.Logger().Error("panic", "doing", doing, "reason", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = status.Errorf(codes.Internal, "the plugin failed: %v", r)
		}
	}()
	return Error(doing, f())
}

// Health implements the contract.
func (p *Plugin) Health(ctx context.Context, r *pb.VolumeRef) (out *pb.HealthReport, err error) {
	err = p.with(ctx, r.GetVolume(), func(ctx context.Context, o *opened) error {
		if err := o.mount.Mounted(); err != nil {
			out = Unavailable(err)
			return nil
		}
		out, err = o.Health(ctx)
		return err
	})
	return out, err
}

// Unavailable returns a health report with the message of an error.
func Unavailable(err error) *pb.HealthReport {
	return &pb.HealthReport{State: pb.HealthReport_UNAVAILABLE, Reason: status.Convert(Error("", err)).Message()}
}

// Capacity implements the contract.
func (p *Plugin) Capacity(ctx context.Context, r *pb.VolumeRef) (out *pb.CapacityReport, err error) {
	err = p.call(ctx, r.GetVolume(), pb.Capability_CAPACITY, func(ctx context.Context, o *opened) error {
		out, err = o.Volume.(Sizer).Capacity(ctx)
		if err == nil && out.AsOfUnixMs == 0 {
			out.AsOfUnixMs = now()
		}
		return err
	})
	return out, err
}

// Performance implements the contract.
func (p *Plugin) Performance(ctx context.Context, r *pb.VolumeRef) (out *pb.PerformanceSample, err error) {
	err = p.call(ctx, r.GetVolume(), pb.Capability_METRICS, func(ctx context.Context, o *opened) error {
		out, err = o.Volume.(Meter).Performance(ctx)
		if err == nil && out.AsOfUnixMs == 0 {
			out.AsOfUnixMs = now()
		}
		return err
	})
	return out, err
}

// Worse adds a reason to a report and makes its state at least as bad as state.
func Worse(h *pb.HealthReport, state pb.HealthReport_State, reason string) {
	h.State = max(h.State, state)
	if h.Reason != "" {
		reason = h.Reason + "; " + reason
	}
	h.Reason = reason
}

// busy is the delay after which a caller can retry an operation that the operating system could not
// perform.
const busy = time.Second

// failure is an error with a status. It wraps its cause.
type failure struct {
	status *status.Status
	cause  error
}

func (f *failure) Error() string              { return f.status.Message() }
func (f *failure) GRPCStatus() *status.Status { return f.status }
func (f *failure) Unwrap() error              { return f.cause }

// Error adds a gRPC status and a description of the operation to an error. An error with a status
// keeps it and its details.
func Error(doing string, err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		s = statusOf(err)
	}
	if doing == "" {
		if ok {
			return err
		}
		return &failure{s, err}
	}
	p := s.Proto()
	p.Message = doing + ": " + p.GetMessage()
	return &failure{status.FromProto(p), err}
}

func statusOf(err error) *status.Status {
	if code := codeOf(err); code != codes.Unavailable {
		return status.New(code, err.Error())
	}
	return status.Convert(Retryable(busy, "%s", err.Error()))
}

func codeOf(err error) codes.Code {
	is := func(all ...error) bool {
		for _, e := range all {
			if errors.Is(err, e) {
				return true
			}
		}
		return false
	}
	switch {
	case is(context.Canceled):
		return codes.Canceled
	case is(context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case is(unix.ENOENT):
		return codes.NotFound
	case is(unix.EEXIST):
		return codes.AlreadyExists
	case is(unix.ENOTEMPTY, unix.ENOTDIR, unix.ELOOP, unix.EXDEV, unix.EROFS, unix.EOPNOTSUPP, unix.ENOSYS, unix.ENOTTY):
		return codes.FailedPrecondition
	case is(unix.ENOSPC, unix.EDQUOT, unix.EMLINK, unix.ENFILE, unix.EMFILE):
		return codes.ResourceExhausted
	case is(unix.EACCES, unix.EPERM):
		return codes.PermissionDenied
	case is(unix.ENAMETOOLONG):
		return codes.InvalidArgument
	case is(unix.EIO, unix.ESTALE, unix.ENOTCONN, unix.EBUSY, unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ECONNREFUSED, unix.ECONNRESET, unix.ETIMEDOUT):
		return codes.Unavailable
	}
	return codes.Internal
}

// Retryable returns an UNAVAILABLE error that the proxy can retry after a delay.
func Retryable(after time.Duration, format string, args ...any) error {
	s, err := status.Newf(codes.Unavailable, format, args...).WithDetails(
		&pb.ErrorDetail{Retryable: true, RetryAfterMs: after.Milliseconds()})
	if err != nil {
		return status.Errorf(codes.Unavailable, format, args...)
	}
	return s.Err()
}

func is(err error, code codes.Code) bool { return err != nil && status.Code(Error("", err)) == code }
