package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/device"
	"github.com/berthhq/berth/agent/device/devicetest"
	"github.com/berthhq/berth/internal/testenv/wait"
)

func TestMain(m *testing.M) {
	devicetest.Main()
	os.Exit(m.Run())
}

// onStage returns a node with the fake plugin "play", and a request for its device.
func onStage(t *testing.T) (*fixture, *devicetest.Stage, *agentpb.CreateKernelRequest) {
	t.Helper()
	s, f := devicetest.New(t), newFixture(t)
	f.dir = t.TempDir()
	if len(f.dir) > 60 { // it contains sockets, whose paths have a maximum length
		dir, err := os.MkdirTemp("", "bk")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		f.dir = dir
	}
	f.plugins = []device.PluginConfig{{Path: s.Program, Force: true, Env: s.Env}}
	f.restart(t)
	r := request("k", "sleep", "600")
	r.Allocations = append(r.Allocations, &agentpb.Allocation{DeviceId: "play:0", Slot: "play.device", Amount: "1"})
	return f, s, r
}

func (f *fixture) journal(t *testing.T, s *devicetest.Stage, wantText string) {
	t.Helper()
	wait.For(t, func() error {
		if text := s.Journal(); !strings.Contains(text, wantText) {
			return fmt.Errorf("%q is not in\n%s", wantText, text)
		}
		return nil
	})
}

// nothingPrepared checks that no device is prepared after the kernel has ended.
func (f *fixture) nothingPrepared(t *testing.T, s *devicetest.Stage) {
	t.Helper()
	f.nothingHeld(t)
	if s.There("effects/k-1") {
		t.Errorf("still prepared:\n%s", s.Journal())
	}
	if work, _ := os.ReadDir(filepath.Join(f.dir, "plugins/work/play")); len(work) > 0 {
		t.Errorf("work directories left: %v", work)
	}
}

// The agent restarts while a kernel runs. The plugin receives the kernel with its stored state, and
// undoes the preparation at the end.
func TestDevicesOverARestart(t *testing.T) {
	f, s, r := onStage(t)
	r.ProjectId = "of-a-project"
	if _, err := f.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	f.reaches(t, "k", agentpb.KernelState_RUNNING)
	f.restart(t)
	f.journal(t, s, "restore k-1=state-of-k-1\n")
	if asked, want := s.Read("effects/k-1"), "k s of-a-project k-1"; asked != want {
		t.Errorf("prepared for %q, want %q", asked, want)
	}
	f.reaches(t, "k", agentpb.KernelState_RUNNING)
	if !s.There("effects/k-1") {
		t.Errorf("undone under a running kernel:\n%s", s.Journal())
	}
	other := request("other", "sleep", "600")
	other.Allocations = r.Allocations
	if _, err := f.Manager.Create(t.Context(), other); !errdefs.IsResourceExhausted(err) {
		t.Errorf("its device is given to another: %v", err)
	}
	f.StopAll(t.Context(), "over")
	f.ended(t, "k")
	if !strings.HasSuffix(s.Journal(), "unprepare k-1 state-of-k-1\n") {
		t.Errorf("journal:\n%s", s.Journal())
	}
	f.nothingPrepared(t, s)
}

// The agent ends while a plugin prepares. No record contains the allocation, so the plugin receives
// none at its start and prepares again.
func TestEndsBetweenPrepareAndRecord(t *testing.T) {
	f, s, r := onStage(t)
	s.Put("prepare")
	if _, err := f.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	f.journal(t, s, "prepare k-1\n")
	f.Detach()
	f.unplug()
	s.Remove("prepare")
	f.restart(t)
	f.reaches(t, "k", agentpb.KernelState_RUNNING)
	if !strings.HasSuffix(s.Journal(), "prepare k-1\nrestore\nprepare k-1\nprepared k-1\n") {
		t.Errorf("journal:\n%s", s.Journal())
	}
	f.StopAll(t.Context(), "over")
	f.ended(t, "k")
	f.nothingPrepared(t, s)
}

// A device disappears while it is being prepared. The kernel fails with the reason, and the partial
// preparation is undone.
func TestDeviceGoesWhilePreparing(t *testing.T) {
	f, s, r := onStage(t)
	s.Put("gone")
	if _, err := f.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	state := f.ended(t, "k")
	if state.Reason != StartFailed || !strings.Contains(state.Message, "prepare devices of play: device_id: 0 has gone") {
		t.Errorf("%v", state)
	}
	if !strings.HasSuffix(s.Journal(), "prepare k-1\nunprepare k-1 \n") {
		t.Errorf("journal:\n%s", s.Journal())
	}
	f.nothingPrepared(t, s)
}

// Edits that the operator does not allow are refused at each attempt.
func TestEditsThatAreNotAllowed(t *testing.T) {
	f, s, r := onStage(t)
	s.Put("ipc")
	if _, err := f.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	state := f.ended(t, "k")
	if state.Reason != Refused || !strings.Contains(state.Message, "host IPC is not in the plugin's allow-list") {
		t.Errorf("%v", state)
	}
	f.nothingPrepared(t, s)
}

// While a start waits for a plugin, the kernel's state contains this.
func TestSlowPrepareIsSaid(t *testing.T) {
	f, s, r := onStage(t)
	s.Put("prepare")
	if _, err := f.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	wantText := func(want string) bool {
		k, err := f.Get("k")
		return err == nil && k.State().Message == want
	}
	wait.Until(t, "the kernel reports that it waits for the plugin", func() bool { return wantText("waits for plugin play to prepare its devices") })
	s.Remove("prepare")
	f.reaches(t, "k", agentpb.KernelState_RUNNING)
	if !wantText("") {
		t.Error("it still waits")
	}
	f.StopAll(t.Context(), "over")
	f.ended(t, "k")
}
