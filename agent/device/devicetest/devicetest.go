// Package devicetest provides a fake plugin for tests of the plugin's callers. It records its
// calls, and blocks or fails on request.
package devicetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// variable is set in a test binary that must act as the plugin. Its value is the directory of the
// test.
const variable = "BERTH_TEST_STAGE"

// Main must be called from TestMain. If the binary was started as the plugin "play", it serves the
// plugin and never returns.
func Main() {
	if dir := os.Getenv(variable); dir != "" {
		accelerator.Serve(&play{dir: dir})
		os.Exit(0)
	}
}

// Stage controls and observes the plugin "play", which has one device, play:0, with the slot
// play.device. The plugin creates a file effects/ID for each prepared allocation and appends a line
// to the file "journal" for each call. Files that the test creates change its behavior: while
// "prepare" or "restore" exists, that call blocks; "stuck" makes Unprepare fail, "gone" removes the
// device, "malformed" makes the response to Prepare invalid, and "ipc" makes it request the host's
// IPC namespace.
type Stage struct {
	t       testing.TB
	dir     string
	Program string // path of the plugin
	Env     []string
}

// New returns a Stage for one test.
func New(t testing.TB) *Stage {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &Stage{t: t, dir: t.TempDir(), Program: self}
	// Without this, the race detector delays the end of each process by a second.
	s.Env = []string{variable + "=" + s.dir, "GORACE=atexit_sleep_ms=0"}
	if err := os.MkdirAll(s.path("effects"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Stage) path(name string) string { return filepath.Join(s.dir, name) }

// Put creates a file.
func (s *Stage) Put(name string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Remove removes a file.
func (s *Stage) Remove(name string) {
	s.t.Helper()
	if err := os.Remove(s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

// Journal returns the calls that the plugin has received.
func (s *Stage) Journal() string { return s.Read("journal") }

// Read returns the contents of a file, or "" if it does not exist.
func (s *Stage) Read(name string) string {
	text, _ := os.ReadFile(s.path(name))
	return string(text)
}

// There reports whether a file exists.
func (s *Stage) There(name string) bool {
	_, err := os.Stat(s.path(name))
	return err == nil
}

// play is the fake plugin.
type play struct {
	pb.UnimplementedAcceleratorServer
	dir  string
	feed accelerator.Feed
}

func (p *play) note(words ...string) {
	f, err := os.OpenFile(filepath.Join(p.dir, "journal"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(words, " ") + "\n"); err != nil {
		panic(err)
	}
}

func (p *play) waits(call string) {
	for {
		if _, err := os.Stat(filepath.Join(p.dir, call)); err != nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (p *play) effect(id string) string { return filepath.Join(p.dir, "effects", id) }

func (p *play) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return &pb.DescribeResponse{
		Key: "play", PluginVersion: "1", Vendor: "Play", Capabilities: []pb.Capability{pb.Capability_CAPABILITY_SIDE_EFFECTS},
		Slots: []*pb.SlotType{{Name: "play.device", Kind: pb.SlotType_COUNT, DisplayName: "Stage", Unit: "stage"}},
	}, nil
}

func (p *play) Configure(context.Context, *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	p.feed.Set(&pb.DeviceSnapshot{
		Slots:   []*pb.SlotType{{Name: "play.device", Kind: pb.SlotType_COUNT, DisplayName: "Stage", Unit: "stage"}},
		Devices: []*pb.Device{{Id: "0", Model: "Stage", Allocatable: true, Health: pb.Health_HEALTH_HEALTHY, Capacity: map[string]string{"play.device": "1"}}},
	})
	return &pb.ConfigureResponse{}, nil
}

func (p *play) WatchDevices(_ *pb.WatchDevicesRequest, s grpc.ServerStreamingServer[pb.DeviceSnapshot]) error {
	return p.feed.Watch(s.Context(), s.Send)
}

// Prepare ignores its context, as the libraries of vendors do.
func (p *play) Prepare(_ context.Context, r *pb.PrepareRequest) (*pb.PrepareResponse, error) {
	p.note("prepare", r.AllocationId)
	p.waits("prepare")
	if _, err := os.Stat(filepath.Join(p.dir, "gone")); err == nil {
		return nil, status.Error(codes.NotFound, "device_id: 0 has gone")
	}
	asked := strings.Join([]string{r.KernelId, r.SessionId, r.TrustDomain, filepath.Base(r.WorkDir)}, " ")
	if err := os.WriteFile(p.effect(r.AllocationId), []byte(asked), 0o600); err != nil {
		return nil, err
	}
	p.note("prepared", r.AllocationId)
	out := &pb.PrepareResponse{State: []byte("state-of-" + r.AllocationId)}
	if _, err := os.Stat(filepath.Join(p.dir, "ipc")); err == nil {
		out.Edits = &pb.ContainerEdits{HostIpc: true}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "malformed")); err == nil {
		out.ResourceData = map[string]string{"PLAY": "two\nlines"}
	}
	return out, nil
}

func (p *play) Unprepare(_ context.Context, r *pb.UnprepareRequest) (*pb.UnprepareResponse, error) {
	p.note("unprepare", r.AllocationId, string(r.State))
	if _, err := os.Stat(filepath.Join(p.dir, "stuck")); err == nil {
		return nil, status.Error(codes.Unavailable, "the stage is stuck")
	}
	if err := os.Remove(p.effect(r.AllocationId)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &pb.UnprepareResponse{}, nil
}

func (p *play) Restore(_ context.Context, r *pb.RestoreRequest) (*pb.RestoreResponse, error) {
	words := []string{"restore"}
	for _, a := range r.Live {
		words = append(words, a.AllocationId+"="+string(a.State))
	}
	p.note(words...)
	p.waits("restore")
	leaks, err := os.ReadDir(filepath.Join(p.dir, "effects"))
	if err != nil {
		return nil, err
	}
	for _, e := range leaks {
		if !slices.ContainsFunc(r.Live, func(a *pb.LiveAllocation) bool { return a.AllocationId == e.Name() }) {
			_ = os.Remove(p.effect(e.Name()))
		}
	}
	return &pb.RestoreResponse{}, nil
}
