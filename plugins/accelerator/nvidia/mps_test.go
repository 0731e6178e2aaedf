package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/testenv/wait"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// fakeControl replaces NVIDIA's program: a server is a process that sleeps for as long as its
// directory exists. If a file named ignore-quit is beside it, servers ignore the command quit; with
// one named broken, they fail to start.
const fakeControl = `#!/bin/sh
here=$(dirname "$0")
pid=$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid
if [ "$1" = -d ]; then
  [ -e "$here/broken" ] && exit 1
  echo "$CUDA_VISIBLE_DEVICES" >/dev/shm/server
  : >"$pid"
  (while [ -e "$pid" ]; do sleep 0.1; done) </dev/null >/dev/null 2>&1 &
  echo $! >"$pid"
  exit 0
fi
read order
grep -q CUDA "/proc/$(cat "$pid")/environ" || exit 1
[ "$order" = quit ] && [ ! -e "$here/ignore-quit" ] && kill "$(cat "$pid")"
exit 0
`

// newMPS returns a host with the fake program.
func newMPS(t *testing.T) *host {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("MPS servers are started by root")
	}
	m := newHost(t, h100, h100)
	m.file(t, "bin/nvidia-cuda-mps-control", fakeControl)
	if err := os.Chmod(filepath.Join(m.root, "bin/nvidia-cuda-mps-control"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(m.root, "dev/shm"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range m.servers(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return m
}

// servers returns the running servers by GPU.
func (m *host) servers(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	dirs, err := filepath.Glob(filepath.Join(m.root, "dev/shm/berth-mps-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		gpu, err := os.ReadFile(filepath.Join(dir, "server"))
		if err != nil {
			continue
		}
		id := strings.TrimSpace(string(gpu))
		at := driver.NewHost(m.roots())
		if pid := mpsServer(at, id).pid(); pid > 0 {
			out[id] = pid
		}
	}
	return out
}

const mpsConfig = `{"enforcement": "mps"}`

func gone(t *testing.T, p *bed, id string) {
	t.Helper()
	if err := p.Undo(t.Context(), id, nil); err != nil {
		t.Error(err)
	}
}

func TestMPS(t *testing.T) {
	m := newMPS(t)
	m.file(t, "lib/libberthlimit.so", "library")
	m.library = filepath.Join(m.root, "lib/libberthlimit.so")
	p := m.start(t, mpsConfig)
	if a := look(t, p).GetDevices()[0].GetAttributes(); a["enforcement"] != "mps" {
		t.Errorf("attributes %v", a)
	}
	r, err := m.ask(t, p, "one", "project", "0 cuda.shares 0.25")
	if err != nil {
		t.Fatal(err)
	}
	env := r.GetEdits().GetEnv()
	if env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] != "25" || env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] != "0=20480M" || env["BERTH_CUDA_ENFORCEMENT"] != "mps" {
		t.Errorf("environment %v", env)
	}
	if len(r.GetEdits().GetPreloadLibs()) != 1 {
		t.Error("nothing limits the processes of the container together")
	}
	targets := map[string]string{}
	for _, x := range r.GetEdits().GetMounts() {
		targets[x.GetTarget()] = x.GetSource()
	}
	// The server's /dev/shm is that of its clients.
	seen, err := os.ReadFile(filepath.Join(targets["/dev/shm"], "server"))
	if err != nil || !strings.HasPrefix(string(seen), "GPU-00000000") {
		t.Errorf("the server saw %q, %v", seen, err)
	}
	if _, err := os.Stat(filepath.Join(targets[env["CUDA_MPS_PIPE_DIRECTORY"]], "nvidia-cuda-mps-control.pid")); err != nil {
		t.Error(err)
	}
	if _, err := m.ask(t, p, "two", "project", "0 cuda.mem 1073741824"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.ask(t, p, "other", "another project", "0 cuda.shares 0.25"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("another project: %v", err)
	}
	if _, err := m.ask(t, p, "other", "another project", "1 cuda.shares 0.25"); err != nil {
		t.Errorf("another project on another GPU: %v", err)
	}
	if n := len(m.servers(t)); n != 2 {
		t.Errorf("%d servers, want one for each GPU", n)
	}
	gone(t, p, "one")
	if n := len(m.servers(t)); n != 2 {
		t.Errorf("%d servers while both GPUs are used", n)
	}
	gone(t, p, "two")
	gone(t, p, "two")
	if s := m.servers(t); len(s) != 1 || s["GPU-00000001-0000-0000-0000-000000000000"] == 0 {
		t.Errorf("servers %v", s)
	}
	if _, err := m.ask(t, p, "three", "another project", "0 cuda.shares 0.25"); err != nil {
		t.Errorf("the next project: %v", err)
	}
	gone(t, p, "three")
	gone(t, p, "other")
	if left, _ := filepath.Glob(filepath.Join(m.root, "dev/shm/*")); len(left) != 0 || len(m.servers(t)) != 0 {
		t.Errorf("left behind: %v, %v", left, m.servers(t))
	}
}

func TestMPSOfWholeGPUsAndSeveral(t *testing.T) {
	m := newMPS(t)
	p := m.start(t, mpsConfig)
	look(t, p)
	r, err := m.ask(t, p, "whole", "a", "0 cuda.device 1")
	if err != nil || r.GetEdits().GetEnv()["CUDA_MPS_PIPE_DIRECTORY"] != "" {
		t.Errorf("a whole GPU: %v, %v", r.GetEdits().GetEnv(), err)
	}
	if _, err := m.ask(t, p, "two", "a", "0 cuda.shares 0.5", "1 cuda.shares 0.5"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("parts of two GPUs: %v", err)
	}
	if n := len(m.servers(t)); n != 0 {
		t.Errorf("%d servers", n)
	}
}

func TestMPSSurvivesThePlugin(t *testing.T) {
	m := newMPS(t)
	p := m.start(t, mpsConfig)
	look(t, p)
	var live []*pb.LiveAllocation
	for id, ask := range map[string]string{"stays": "0 cuda.shares 0.5", "leaks": "1 cuda.shares 0.5"} {
		r, err := m.ask(t, p, id, "a", ask)
		if err != nil {
			t.Fatal(err)
		}
		if id == "stays" {
			f := strings.Fields(ask)
			live = append(live, &pb.LiveAllocation{AllocationId: id, State: r.GetState(), Allocations: []*pb.Allocation{
				{DeviceId: "GPU-00000000-0000-0000-0000-000000000000", Slot: f[1], Amount: f[2]}}})
		}
	}
	before := m.servers(t)
	next := m.start(t, mpsConfig) // another process of the plugin
	look(t, next)
	if problems := next.Resume(t.Context(), live); len(problems) != 0 {
		t.Fatal(problems)
	}
	if l, err := next.Sweep(t.Context(), live); err != nil || len(l) != 1 || !strings.Contains(l[0], "GPU-00000001") {
		t.Errorf("leaks %v, %v", l, err)
	}
	after := m.servers(t)
	if len(before) != 2 || len(after) != 1 || after["GPU-00000000-0000-0000-0000-000000000000"] != before["GPU-00000000-0000-0000-0000-000000000000"] {
		t.Errorf("servers %v, then %v", before, after)
	}
	if _, err := m.ask(t, next, "other", "another project", "0 cuda.shares 0.25"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("another project after the restart: %v", err)
	}
	// A server that exited in the meantime is started again.
	for _, pid := range after {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	wait.Until(t, "the server has ended", func() bool { return len(m.servers(t)) == 0 })
	if problems := next.Resume(t.Context(), live); len(problems) != 0 || len(m.servers(t)) != 1 {
		t.Errorf("servers %v, %v", m.servers(t), problems)
	}
	gone(t, next, "stays")
	if n := len(m.servers(t)); n != 0 {
		t.Errorf("%d servers are left", n)
	}
}

func TestMPSThatMisbehaves(t *testing.T) {
	m := newMPS(t)
	p := m.start(t, mpsConfig)
	look(t, p)
	m.file(t, "bin/broken", "")
	if _, err := m.ask(t, p, "one", "a", "0 cuda.shares 0.5"); status.Code(err) != codes.Unavailable {
		t.Errorf("a server that does not start: %v", err)
	}
	if err := os.Remove(filepath.Join(m.root, "bin/broken")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.ask(t, p, "one", "b", "0 cuda.shares 0.5"); err != nil {
		t.Fatalf("after the repair: %v", err)
	}
	m.file(t, "bin/ignore-quit", "")
	gone(t, p, "one")
	if s := m.servers(t); len(s) != 0 {
		t.Errorf("a server that ignores quit continues: %v", s)
	}
	if err := os.Remove(filepath.Join(m.root, "bin/nvidia-cuda-mps-control")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.ask(t, p, "one", "a", "0 cuda.shares 0.5"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("without the program: %v", err)
	}
}

func TestPercentIsNoMoreThanThePart(t *testing.T) {
	for compute, want := range map[float64]string{0.125: "12", 0.29: "29", 0.001: "1", 1: "100"} {
		if got := (part{compute: compute}).percent(); got != want {
			t.Errorf("%v of the multiprocessors: %s percent, want %s", compute, got, want)
		}
	}
}
