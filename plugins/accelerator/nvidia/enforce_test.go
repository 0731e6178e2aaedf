package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// ask prepares an allocation of one project; allocations have the form "card slot amount".
func (m *host) ask(t *testing.T, p *bed, id, project string, allocations ...string) (*pb.PrepareResponse, error) {
	t.Helper()
	req := &pb.PrepareRequest{AllocationId: id, TrustDomain: project, WorkDir: filepath.Join(m.root, "work", id)}
	for _, a := range allocations {
		f := strings.Fields(a)
		req.Allocations = append(req.Allocations, &pb.Allocation{DeviceId: "GPU-0000000" + f[0] + "-0000-0000-0000-000000000000", Slot: f[1], Amount: f[2]})
	}
	r, err := p.prepare(t, req)
	if err == nil {
		if err := accelerator.ValidateEdits(r.GetEdits()); err != nil {
			t.Error(err)
		}
	}
	return r, err
}

func TestLimit(t *testing.T) {
	m := newHost(t, h100, h100)
	m.file(t, "lib/libberthlimit.so", "library")
	m.library = filepath.Join(m.root, "lib/libberthlimit.so")
	p := m.start(t, "") // the default if the library is installed
	if d := look(t, p).GetDevices()[0]; d.GetAttributes()["enforcement"] != "limit" {
		t.Errorf("attributes %v", d.GetAttributes())
	}
	r, err := m.ask(t, p, "half", "a", "0 cuda.mem 1073741824", "1 cuda.device 1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/usr/local/nvidia/berth/libberthlimit.so"}, r.GetEdits().GetPreloadLibs()); diff != "" {
		t.Error(diff)
	}
	own := map[string]*pb.Mount{}
	for _, x := range r.GetEdits().GetMounts() {
		if name, ok := strings.CutPrefix(x.GetTarget(), "/usr/local/nvidia/berth/"); ok {
			own[name] = x
		}
	}
	if own["libberthlimit.so"].GetWritable() || own["limits"].GetWritable() || !own["usage"].GetWritable() {
		t.Errorf("mounts %v", own)
	}
	limits, err := os.ReadFile(own["limits"].GetSource())
	if want := "GPU-00000000-0000-0000-0000-000000000000 1073741824\n"; err != nil || string(limits) != want {
		t.Errorf("limits %q, %v", limits, err)
	}
	// Any user of the container can write to the counter, but not to the limit.
	for name, mode := range map[string]os.FileMode{"usage": 0o666, "limits": 0o644} {
		if info, err := os.Stat(own[name].GetSource()); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	data := map[string]string{
		"BERTH_CUDA_ENFORCEMENT": "limit", "BERTH_CUDA_SHARES": "GPU-00000000-0000-0000-0000-000000000000:0.013",
		"BERTH_CUDA_MEMORY_LIMITS": "GPU-00000000-0000-0000-0000-000000000000:1073741824",
	}
	if diff := cmp.Diff(data, r.GetResourceData()); diff != "" {
		t.Errorf("resource data: %s", diff)
	}
	whole, err := m.ask(t, p, "whole", "a", "1 cuda.shares 1")
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.GetEdits().GetPreloadLibs()) != 0 {
		t.Error("the library limits a whole GPU")
	}
	if len(whole.GetResourceData()) != 0 {
		t.Errorf("resource data of a whole GPU: %v", whole.GetResourceData())
	}
}

func TestUnits(t *testing.T) {
	m := newHost(t, h100) // 80 GiB, 132 multiprocessors
	for _, row := range []struct{ config, capacity, amount, env string }{
		{`{"unit_mem": 2147483648, "unit_sm": 8}`, "16.5", "4", "8589934592 0.242"},
		{`{"unit_mem": 2147483648}`, "40", "4", "8589934592 0.100"},
		{`{"unit_sm": 8, "quantum": "1"}`, "16", "4", "21474836480 0.242"},
		{`{"unit_mem": 10737418240, "unit_sm": 30, "quantum": "0.1"}`, "4.4", "4.4", "47244640256 1.000"},
	} {
		p := m.start(t, row.config)
		d := look(t, p).GetDevices()[0]
		if d.GetCapacity()["cuda.shares"] != row.capacity || d.GetCapacity()["cuda.mem"] != "85899345920" {
			t.Errorf("%s: capacity %v, want %s", row.config, d.GetCapacity(), row.capacity)
		}
		r, err := m.ask(t, p, "a", "a", "0 cuda.shares "+row.amount)
		if err != nil {
			t.Fatal(err)
		}
		env := r.GetEdits().GetEnv()
		_, mem, _ := strings.Cut(env["BERTH_CUDA_MEMORY_LIMITS"], ":")
		_, compute, _ := strings.Cut(env["BERTH_CUDA_SHARES"], ":")
		if got := mem + " " + compute; got != row.env {
			t.Errorf("%s: %s shares are %s, want %s", row.config, row.amount, got, row.env)
		}
	}
	p := m.start(t, `{"unit_mem": 109951162777600}`) // larger than any GPU
	if c := look(t, p).GetDevices()[0].GetCapacity(); c["cuda.shares"] != "" || c["cuda.device"] != "1" {
		t.Errorf("capacity %v", c)
	}
}

func TestWhatGPUsAreGoodFor(t *testing.T) {
	m := newHost(t, v100, gpus.A100_SXM4_80GB, h100)
	var got []string
	for _, d := range look(t, m.start(t, `{"fractions": false}`)).GetDevices() {
		a := d.GetAttributes()
		got = append(got, a["compute_capability"]+" "+a["training"]+" "+a["inference"]+" "+a["enforcement"])
	}
	if diff := cmp.Diff([]string{"7.0 false false ", "8.0 true false ", "9.0 true true "}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDirectAccessNodes(t *testing.T) {
	m := newHost(t, h100)
	for _, f := range []string{"nvidia-fs0", "nvidia-fs1", "gdrdrv", "nvidia-caps-imex-channels/channel0"} {
		m.nodes(t, f)
	}
	p := m.start(t, "")
	look(t, p)
	nodes := func(id, ask string) []string {
		r, err := m.ask(t, p, id, "a", ask)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, n := range r.GetEdits().GetDeviceNodes()[3:] { // after the files that every program opens
			out = append(out, n.GetPath())
		}
		return out
	}
	direct := []string{"/dev/nvidia-fs0", "/dev/nvidia-fs1", "/dev/gdrdrv"}
	if diff := cmp.Diff(append(direct, "/dev/nvidia-caps-imex-channels/channel0"), nodes("whole", "0 cuda.device 1")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(direct, nodes("part", "0 cuda.shares 0.5")); diff != "" {
		t.Error(diff)
	}
}
