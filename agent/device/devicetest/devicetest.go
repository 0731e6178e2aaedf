// Package devicetest has a plugin for tests of who talks to plugins: it writes down
// what it is called with, and waits or fails when told to.
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

// variable names the directory of a test binary that is the plugin.
const variable = "BERTH_TEST_STAGE"

// Main is for TestMain: a test binary that is started as the plugin play is that, and
// never returns.
func Main() {
	if dir := os.Getenv(variable); dir != "" {
		accelerator.Serve(&play{dir: dir})
		os.Exit(0)
	}
}

// Stage is where a test sees and directs play, which has one device, play:0, with
// play.device. Its side effects are files, effects/ID, that say for whom; journal has a
// line for each call. As long as a file "prepare" or "restore" is there, that call does not return,
// with "stuck" nothing is undone, with "gone" the device is, with "malformed" the
// answer to Prepare is, and with "ipc" it asks for the host's IPC.
type Stage struct {
	t       testing.TB
	dir     string
	Program string // of the plugin
	Env     []string
}

// New makes a stage for one test.
func New(t testing.TB) *Stage {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &Stage{t: t, dir: t.TempDir(), Program: self}
	// Without GORACE the race detector lets each process wait for a second at its end.
	s.Env = []string{variable + "=" + s.dir, "GORACE=atexit_sleep_ms=0"}
	if err := os.MkdirAll(s.path("effects"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Stage) path(name string) string { return filepath.Join(s.dir, name) }

// Put makes a file.
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

// Journal is what the plugin was called with so far.
func (s *Stage) Journal() string { return s.Read("journal") }

// Read returns what is in a file, "" without one.
func (s *Stage) Read(name string) string {
	text, _ := os.ReadFile(s.path(name))
	return string(text)
}

// There reports whether a file is there.
func (s *Stage) There(name string) bool {
	_, err := os.Stat(s.path(name))
	return err == nil
}

// play is the plugin.
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

// Prepare does not look at its context: a vendor's library does not either.
func (p *play) Prepare(_ context.Context, r *pb.PrepareRequest) (*pb.PrepareResponse, error) {
	p.note("prepare", r.AllocationId)
	p.waits("prepare")
	if _, err := os.Stat(filepath.Join(p.dir, "gone")); err == nil {
		return nil, status.Error(codes.NotFound, "device_id: 0 has gone")
	}
	asked := strings.Join([]string{r.KernelId, r.SessionId, r.TrustDomain, r.ImageArchitecture, filepath.Base(r.WorkDir)}, " ")
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
