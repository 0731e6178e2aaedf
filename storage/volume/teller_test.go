package volume_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/storage"
	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// teller is a plugin of a product that reports many values and clones trees: the test program under
// the name "teller" serves it. It writes every call into the file that its options name.
type teller struct {
	volumepb.UnimplementedVolumeServer
	mu    sync.Mutex
	mount string
	opts  tellerOptions
}

type tellerOptions struct {
	Log   string
	Clone string // "works", "fails" after a part, or "ends" without having finished
}

func serveTeller() bool {
	if filepath.Base(os.Args[0]) != "teller" {
		return false
	}
	volume.Serve(&teller{})
	return true
}

func (p *teller) note(call string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, err := os.OpenFile(p.opts.Log, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, _ = f.WriteString(call + "\n")
		f.Close()
	}
}

func (p *teller) Describe(context.Context, *volumepb.DescribeRequest) (*volumepb.DescribeResponse, error) {
	return &volumepb.DescribeResponse{Vendor: "Tellers", Backend: "teller", Version: "3"}, nil
}

func (p *teller) OpenVolume(_ context.Context, q *volumepb.OpenVolumeRequest) (*volumepb.OpenVolumeResponse, error) {
	p.mount = q.MountPath
	if err := json.Unmarshal([]byte(q.OptionsJson), &p.opts); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &volumepb.OpenVolumeResponse{
		Capabilities: []volumepb.Capability{
			volumepb.Capability_SCOPE, volumepb.Capability_CAPACITY, volumepb.Capability_METRICS, volumepb.Capability_CLONE,
			volumepb.Capability_DELETE, volumepb.Capability_USAGE_FAST,
		},
		Enforcement: volumepb.Enforcement_HARD,
	}, nil
}

func (p *teller) Health(context.Context, *volumepb.VolumeRef) (*volumepb.HealthReport, error) {
	p.note("health")
	return &volumepb.HealthReport{
		State: volumepb.HealthReport_DEGRADED, Reason: "a disk is being rebuilt", Metadata: map[string]string{"node": "b"},
	}, nil
}

func (p *teller) Capacity(context.Context, *volumepb.VolumeRef) (*volumepb.CapacityReport, error) {
	p.note("capacity")
	total, used := int64(1000), int64(7)
	return &volumepb.CapacityReport{
		TotalBytes: 4 << 60, UsedBytes: 1 << 40, AvailableBytes: 1 << 50, Elastic: true,
		TotalInodes: &total, UsedInodes: &used, AsOfUnixMs: 5,
	}, nil
}

func (p *teller) Performance(context.Context, *volumepb.VolumeRef) (*volumepb.PerformanceSample, error) {
	p.note("performance")
	ops, latency := 1500.0, 250.0
	return &volumepb.PerformanceSample{
		Subject: volumepb.PerformanceSample_WHOLE_CLUSTER, WindowMs: 60_000, AsOfUnixMs: 6,
		ReadOpsPerSecond: &ops, ReadLatencyUs: &latency,
	}, nil
}

func (p *teller) CreateScope(_ context.Context, q *volumepb.ScopeRequest) (*volumepb.Scope, error) {
	if err := os.MkdirAll(filepath.Join(p.mount, q.Scope), 0o755); err != nil {
		return nil, err
	}
	return &volumepb.Scope{Scope: q.Scope, Path: q.Scope}, nil
}

func (p *teller) CloneTree(q *volumepb.CopyRequest, out grpc.ServerStreamingServer[volumepb.Progress]) error {
	p.note("clone")
	to := filepath.Join(p.mount, q.To)
	if p.opts.Clone == "fails" {
		if err := os.MkdirAll(filepath.Join(to, "part", "of it"), 0o755); err != nil {
			return err
		}
		return status.Error(codes.FailedPrecondition, "the licence has expired")
	}
	if text, err := exec.Command("cp", "-a", filepath.Join(p.mount, q.From), to).CombinedOutput(); err != nil {
		return status.Error(codes.Internal, string(text))
	}
	return out.Send(&volumepb.Progress{FilesDone: 3, Finished: p.opts.Clone == "works"})
}

func (p *teller) DeleteTree(q *volumepb.TreeRef, out grpc.ServerStreamingServer[volumepb.Progress]) error {
	p.note("delete")
	if p.opts.Clone != "works" {
		return status.Error(codes.FailedPrecondition, "the licence has expired")
	}
	if err := os.RemoveAll(filepath.Join(p.mount, q.Path)); err != nil {
		return err
	}
	return out.Send(&volumepb.Progress{FilesDone: 4, Finished: true})
}

func (p *teller) TreeUsage(_ context.Context, q *volumepb.TreeRef) (*volumepb.TreeUsageReport, error) {
	p.note("usage")
	if p.opts.Clone != "works" {
		return nil, status.Error(codes.FailedPrecondition, "the licence has expired")
	}
	return &volumepb.TreeUsageReport{Bytes: 4242, Files: 42}, nil
}

// newTeller returns a host whose volume uses this plugin.
func newTeller(t *testing.T, clone string) (h *storagetest.Host, calls func() string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, log := filepath.Join(t.TempDir(), "teller"), filepath.Join(t.TempDir(), "calls")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	options, err := json.Marshal(tellerOptions{Log: log, Clone: clone})
	if err != nil {
		t.Fatal(err)
	}
	h = &storagetest.Host{TB: t, Mount: t.TempDir(), Signer: storagetest.NewSigner(t)}
	h.Config = storage.Config{Name: "s1", Dir: t.TempDir(), Volumes: []storage.VolumeConfig{{
		Name: "main", Backend: program, MountPath: h.Mount, Create: true, OptionsJSON: string(options),
	}}}
	h.StartUntil(storagepb.Volume_DEGRADED, "rebuilt")
	t.Cleanup(func() { h.Stop() })
	return h, func() string {
		raw, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
}

// All values of a product are reported, and the product is queried once, regardless of the number
// of requests.
func TestReportHoldsWhatThePluginTells(t *testing.T) {
	began := time.Now()
	h, calls := newTeller(t, "works")
	watch, err := h.API.Watch(h.Ctx(), &storagepb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := watch.Recv()
	if err != nil {
		t.Fatal(err)
	}
	v := r.Volumes[0]
	if v.Vendor != "Tellers" || v.PluginVersion != "3" || v.Enforcement != "hard" || v.Details["node"] != "b" || v.Message != "a disk is being rebuilt" {
		t.Errorf("volume %v", v)
	}
	if !v.Elastic || v.TotalBytes != 0 || v.UsedBytes != 1<<40 || v.GetAvailableBytes() != 1<<50 || v.GetTotalInodes() != 1000 || v.GetUsedInodes() != 7 || v.CapacityAsOfUnixMs != 5 {
		t.Errorf("capacity %v", v)
	}
	if p := v.Performance; !p.WholeCluster || p.WindowMs != 60_000 || p.GetReadOpsPerSecond() != 1500 || p.GetReadLatencyUs() != 250 || p.WriteOpsPerSecond != nil {
		t.Errorf("performance %v", v.Performance)
	}
	want := map[string]float64{
		"berth_storage_volume_used_bytes": 1 << 40, "berth_storage_volume_available_bytes": 1 << 50,
		"berth_storage_volume_total_inodes": 1000, "berth_storage_volume_used_inodes": 7,
		"berth_storage_volume_read_ops_per_second": 1500, "berth_storage_volume_read_latency_seconds": 250e-6,
	}
	got := map[string]float64{}
	for range 50 {
		families, err := h.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if strings.HasPrefix(f.GetName(), "berth_storage_volume_") && !strings.HasSuffix(f.GetName(), "_health") {
				got[f.GetName()] = f.Metric[0].Gauge.GetValue()
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// After four more requests, the product has still been queried only once in ten seconds.
	time.Sleep(time.Until(began.Add(5 * time.Second))) // the test is about time itself
	all := calls()
	tens := int(time.Since(began)/(10*time.Second)) + 1
	for _, call := range []string{"health", "capacity", "performance"} {
		if n := strings.Count(all, call+"\n"); n < 1 || n > tens {
			t.Errorf("%d calls of %s in %v", n, call, time.Since(began))
		}
	}
}

// A product clones, measures and deletes trees itself. If it fails, the proxy does so file by file.
func TestTreesByPlugin(t *testing.T) {
	for _, kind := range []string{"works", "fails", "ends"} {
		t.Run(kind, func(t *testing.T) {
			h, calls := newTeller(t, kind)
			h.Ref = &storagepb.FolderRef{Volume: "main", Scope: uuid.NewString(), Folder: uuid.NewString()}
			m := &storagetest.Moving{Host: h, To: uuid.NewString()}
			for _, scope := range []string{h.Ref.Scope, m.To} {
				if _, err := h.API.CreateScope(h.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: scope}); err != nil {
					t.Fatal(err)
				}
			}
			f, err := h.API.CreateFolder(h.Ctx(), h.Ref)
			if err != nil {
				t.Fatal(err)
			}
			h.Path = filepath.Join(h.Mount, f.Path)
			m.Fill()
			to := m.Fresh()
			p, err := m.Clone(to)
			if err != nil {
				t.Fatal(err)
			}
			if (p.Files == 3) != (kind == "works") {
				t.Errorf("last progress %v", p)
			}
			if d := cmp.Diff(tree(t, m.Path), tree(t, m.At(to))); d != "" {
				t.Error(d)
			}
			got, err := h.API.GetFolder(h.Ctx(), to)
			if err != nil || (got.GetUsedBytes() == 4242) != (kind == "works") || got.Exact != (kind != "works") {
				t.Errorf("folder %v %v", got, err)
			}
			if p := storagetest.DeleteFolder(t, h, to); (p.Files == 4) != (kind == "works") {
				t.Errorf("last progress of the deletion %v", p)
			}
			if _, err := os.Lstat(m.At(to)); !os.IsNotExist(err) {
				t.Errorf("the deleted folder: %v", err)
			}
			for _, call := range []string{"clone\n", "usage\n", "delete\n"} {
				if n := strings.Count(calls(), call); n != 1 {
					t.Errorf("the plugin got %d calls of %s", n, call)
				}
			}
			if left, err := os.ReadDir(filepath.Join(m.ScopeDir(m.To), ".arriving")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}
