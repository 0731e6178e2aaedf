package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Where CUDA images expect the host's driver.
const containerLibs = "/usr/local/nvidia/lib64"

func (p *plugin) Prepare(ctx context.Context, req *pb.PrepareRequest) (*pb.PrepareResponse, error) {
	s, err := p.feed.Ready()
	if err != nil {
		return nil, err
	}
	return p.ledger.Prepare(req, func() (*pb.PrepareResponse, error) {
		grants, err := accelerator.Grants(s, req.GetAllocations())
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		cfg, at := p.cfg, p.roots
		out, parts, err := p.answer(grants)
		p.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if err := p.enforce(ctx, cfg.Enforcement, at, req, parts, out); err != nil {
			return nil, err
		}
		out.ResourceData = maps.Clone(out.Edits.Env)
		return out, nil
	})
}

func (p *plugin) Unprepare(ctx context.Context, req *pb.UnprepareRequest) (*pb.UnprepareResponse, error) {
	if req.GetAllocationId() == "" {
		return nil, status.Error(codes.InvalidArgument, "allocation_id: must be set")
	}
	if err := p.mps.leave(ctx, req.GetAllocationId()); err != nil {
		return nil, status.Errorf(codes.Unavailable, "end the MPS server: %v", err)
	}
	p.ledger.Forget(req.GetAllocationId())
	return &pb.UnprepareResponse{}, nil
}

func (p *plugin) Restore(ctx context.Context, req *pb.RestoreRequest) (*pb.RestoreResponse, error) {
	s, err := p.feed.Ready()
	if err != nil {
		return nil, err
	}
	p.ledger.Restore(req.GetLive())
	p.mu.Lock()
	at := p.roots
	p.mu.Unlock()
	out := p.mps.restore(ctx, at, req.GetLive())
	out.Problems = append(out.Problems, accelerator.RestoreProblems(s, req.GetLive())...)
	return out, nil
}

// answer describes what the container needs: its GPUs' nodes and the ones all
// of them share, the driver's libraries, and the names of what it got. It also
// returns the parts of GPUs, for the caller to see that they are kept to.
func (p *plugin) answer(grants []accelerator.Grant) (*pb.PrepareResponse, []part, error) {
	e := &pb.ContainerEdits{Env: map[string]string{}}
	out := &pb.PrepareResponse{Edits: e}
	var ids []string
	var parts []part
	nodes := map[string]bool{}
	for _, g := range grants {
		unit, ok := p.gpus[g.Device.GetId()]
		if !ok {
			return nil, nil, status.Errorf(codes.NotFound, "device_id: %s has just gone", g.Device.GetId())
		}
		names, err := p.roots.nodes(unit)
		if err != nil {
			return nil, nil, status.Errorf(codes.FailedPrecondition, "device_id: %s: %v", unit.id, err)
		}
		for _, n := range names {
			nodes[n] = true
		}
		ids = append(ids, unit.id)
		has := p.cfg.part(g, unit)
		if !has.whole {
			parts = append(parts, has)
		}
		out.Attached = append(out.Attached, &pb.AttachedDevice{
			DeviceId: unit.id, Model: unit.model, MemoryBytes: has.mem, ProcessingUnits: has.units(),
		})
	}
	e.Env["NVIDIA_VISIBLE_DEVICES"] = strings.Join(ids, ",")
	e.Env["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
	p.roots.addNodes(e, nodes, len(parts) == 0)
	p.roots.addLibraries(e)
	return out, parts, nil
}

// nodes names the device files of one GPU or MIG instance below /dev.
func (r roots) nodes(g *gpu) ([]string, error) {
	out := []string{fmt.Sprintf("nvidia%d", g.minor)}
	if g.parent == nil {
		return out, nil
	}
	base := filepath.Join(r.proc, "driver/nvidia/capabilities", fmt.Sprintf("gpu%d/mig/gi%d", g.minor, g.gi))
	for _, f := range []string{"access", fmt.Sprintf("ci%d/access", g.ci)} {
		minor, err := capability(filepath.Join(base, f))
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprintf("nvidia-caps/nvidia-cap%d", minor))
	}
	return out, nil
}

// capability reads the minor number of the file that grants access to a MIG
// instance.
func capability(file string) (int, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if v, ok := strings.CutPrefix(line, "DeviceFileMinor:"); ok {
			return strconv.Atoi(strings.TrimSpace(v))
		}
	}
	return 0, fmt.Errorf("%s names no minor number", file)
}

// addNodes adds the GPUs' files, those that every CUDA program opens, and where
// they are present those of GPUDirect: for storage and for network cards. The
// channels between machines reach whole GPUs alone.
func (r roots) addNodes(e *pb.ContainerEdits, own map[string]bool, channels bool) {
	add := func(name string, optional bool) {
		n := &pb.DeviceNode{Path: "/dev/" + name, HostPath: filepath.Join(r.dev, name), Permissions: "rw", Optional: optional}
		// Numbers spare the host another look, and survive a node that udev
		// recreates meanwhile.
		if st, err := statDevice(r.dev, name); err == nil {
			n.Type, n.Major, n.Minor = pb.DeviceNode_CHAR, major(st.Rdev), minor(st.Rdev)
		}
		e.DeviceNodes = append(e.DeviceNodes, n)
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		add(name, false)
	}
	add("nvidiactl", false)
	add("nvidia-uvm", false)
	add("nvidia-uvm-tools", true)
	add("nvidia-modeset", true)
	present := []string{"nvidia-fs*", "gdrdrv"}
	if channels {
		present = append(present, "nvidia-caps-imex-channels/channel*")
	}
	for _, pattern := range present {
		files, _ := filepath.Glob(filepath.Join(r.dev, pattern))
		for _, f := range files {
			if name, err := filepath.Rel(r.dev, f); err == nil {
				add(name, true)
			}
		}
	}
}

func statDevice(dev, name string) (*syscall.Stat_t, error) {
	var st syscall.Stat_t
	path := filepath.Join(dev, name)
	if err := syscall.Stat(path, &st); err != nil {
		return nil, fmt.Errorf("stat %s: %w", path, err)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFCHR {
		return nil, fmt.Errorf("%s is no character device", path)
	}
	return &st, nil
}

// The kernel's split of a device number.
func major(dev uint64) uint32 { return uint32(dev>>8&0xfff | dev>>32&^0xfff) }
func minor(dev uint64) uint32 { return uint32(dev&0xff | dev>>12&0xffffff00) }

func (r roots) addLibraries(e *pb.ContainerEdits) {
	libs := r.libraries()
	for _, name := range slices.Sorted(maps.Keys(libs)) {
		e.Mounts = append(e.Mounts, &pb.Mount{Source: libs[name], Target: containerLibs + "/" + name})
	}
	if len(libs) > 0 {
		e.LibraryDirs = []string{containerLibs}
	}
	if smi, ok := r.inside(filepath.Join(r.driver, "usr/bin/nvidia-smi")); ok {
		e.Mounts = append(e.Mounts, &pb.Mount{Source: smi, Target: "/usr/bin/nvidia-smi"})
	}
}
