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

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Edit implements driver.Machine.
func (m *machine) Edit(ctx context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	out, parts, err := m.answer(r.Grants)
	if err != nil {
		return nil, err
	}
	if err := m.enforce(ctx, r.PrepareRequest, parts, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Undo implements driver.Undoer.
func (m *machine) Undo(ctx context.Context, allocation string, _ []byte) error {
	if err := m.vendor.mps.leave(ctx, allocation); err != nil {
		return fmt.Errorf("end the MPS server: %w", err)
	}
	return nil
}

// Resume implements driver.Resumer.
func (m *machine) Resume(ctx context.Context, live []*pb.LiveAllocation) []*pb.RestoreProblem {
	return m.vendor.mps.resume(ctx, m.Host, live)
}

// Sweep implements driver.Undoer. It ignores the live allocations, because Resume has handled them.
func (m *machine) Sweep(ctx context.Context, _ []*pb.LiveAllocation) ([]string, error) {
	return m.vendor.mps.sweep(ctx, m.Host), nil
}

// answer returns everything that the container needs: the files of its GPUs and the common ones,
// the driver's libraries, and the names of its devices. It also returns the shares of GPUs, for the
// caller to enforce.
func (m *machine) answer(grants []accelerator.Grant) (*pb.PrepareResponse, []part, error) {
	e := &pb.ContainerEdits{Env: map[string]string{}}
	out := &pb.PrepareResponse{Edits: e}
	var ids []string
	var parts []part
	var own []string
	for _, g := range grants {
		unit := m.gpu(g.Device.GetId())
		if unit == nil {
			return nil, nil, status.Errorf(codes.NotFound, "device_id: %s was just removed", g.Device.GetId())
		}
		names, err := nodes(m.Host, unit)
		if err != nil {
			return nil, nil, status.Errorf(codes.FailedPrecondition, "device_id: %s: %v", unit.id, err)
		}
		own = append(own, names...)
		ids = append(ids, unit.id)
		has := m.cfg.part(g, unit)
		if !has.whole {
			parts = append(parts, has)
		}
		out.Attached = append(out.Attached, &pb.AttachedDevice{
			DeviceId: unit.id, Model: unit.model, MemoryBytes: has.mem, ProcessingUnits: has.units(),
		})
	}
	e.Env["NVIDIA_VISIBLE_DEVICES"] = strings.Join(ids, ",")
	e.Env["NVIDIA_DRIVER_CAPABILITIES"] = "compute,utility"
	slices.Sort(own)
	if err := addNodes(m.Host, e, own, len(parts) == 0); err != nil {
		return nil, nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	addLibraries(m.Host, e)
	return out, parts, nil
}

// nodes returns the device files of one GPU or MIG instance below /dev.
func nodes(h *driver.Host, g *gpu) ([]string, error) {
	out := []string{fmt.Sprintf("nvidia%d", g.minor)}
	if g.parent == nil {
		return out, nil
	}
	base := h.Proc("driver/nvidia/capabilities", fmt.Sprintf("gpu%d/mig/gi%d", g.minor, g.gi))
	for _, f := range []string{"access", fmt.Sprintf("ci%d/access", g.ci)} {
		minor, err := capability(base, f)
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprintf("nvidia-caps/nvidia-cap%d", minor))
	}
	return out, nil
}

// capability reads the minor number of the file that grants access to a MIG instance.
func capability(file ...string) (uint64, error) {
	text, err := driver.Read(file...)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, "DeviceFileMinor:"); ok {
			return strconv.ParseUint(strings.TrimSpace(v), 10, 20)
		}
	}
	return 0, fmt.Errorf("%s has no minor number", filepath.Join(file...))
}

// addNodes adds the GPUs' files, the files that every CUDA program opens, and those of the other
// files that exist, among them the ones of GPUDirect for storage and network cards. Only whole GPUs
// can use the channels between machines.
func addNodes(h *driver.Host, e *pb.ContainerEdits, own []string, channels bool) error {
	if err := h.Give(e, append(own, shared...)...); err != nil {
		return err
	}
	present := []string{"nvidia-uvm-tools", "nvidia-modeset", "nvidia-fs*", "gdrdrv"}
	if channels {
		present = append(present, "nvidia-caps-imex-channels/channel*")
	}
	for _, pattern := range present {
		files, _ := filepath.Glob(h.Dev(pattern))
		for _, f := range files {
			if name, err := filepath.Rel(h.Dev(), f); err == nil {
				_ = h.Give(e, name) // optional; it may have been removed
			}
		}
	}
	return nil
}

// libraryDirs returns the directories in which distributions install the driver's libraries.
func libraryDirs(h *driver.Host) []string {
	var dirs []string
	for _, d := range []string{
		"usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/nvidia/current",
		"usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "lib64",
		"usr/local/nvidia/lib64", "opt/nvidia/lib64", "usr/lib/wsl/lib",
	} {
		dirs = append(dirs, h.Root(d))
	}
	return dirs
}

// containerLibs is where CUDA images expect the host's driver.
const containerLibs = "/usr/local/nvidia/lib64"

// wanted are the driver libraries that a compute container needs: the CUDA driver, its compilers,
// OpenCL and management.
var wanted = []string{
	"libcuda.so", "libcudadebugger.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so",
	"libnvidia-nvvm.so", "libnvidia-nvvm70.so", "libnvidia-gpucomp.so", "libnvidia-opencl.so",
	"libnvidia-cfg.so", "libnvidia-allocator.so", "libnvidia-tileiras.so", "libnvidia-pkcs11.so",
	"libnvidia-pkcs11-openssl3.so",
}

// libraries maps each name by which programs load a driver library to its file. It searches only
// the directory with the CUDA driver, and only files below the driver root.
func libraries(h *driver.Host) map[string]string {
	out := map[string]string{}
	for _, dir := range libraryDirs(h) {
		entries, err := os.ReadDir(dir)
		if err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "libcuda.so.") }) {
			continue
		}
		for _, e := range entries {
			base, _, _ := strings.Cut(e.Name(), ".so")
			if !slices.Contains(wanted, base+".so") {
				continue
			}
			if file, ok := inside(h, filepath.Join(dir, e.Name())); ok {
				out[e.Name()] = file
			}
		}
		// Some programs load the development name, which drivers lack.
		if file, ok := out["libcuda.so.1"]; ok && out["libcuda.so"] == "" {
			out["libcuda.so"] = file
		}
		break
	}
	return out
}

// inside resolves links and reports whether the result is a regular file below the driver root.
func inside(h *driver.Host, path string) (string, bool) {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	root, err := filepath.EvalSymlinks(h.Root())
	if err != nil {
		return "", false
	}
	rel, err := filepath.Rel(root, file)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	info, err := os.Stat(file)
	return file, err == nil && info.Mode().IsRegular()
}

// addLibraries mounts the driver's libraries. The image contains those of the toolkit.
func addLibraries(h *driver.Host, e *pb.ContainerEdits) {
	libs := libraries(h)
	for _, name := range slices.Sorted(maps.Keys(libs)) {
		e.Mounts = append(e.Mounts, &pb.Mount{Source: libs[name], Target: containerLibs + "/" + name})
	}
	if len(libs) > 0 {
		e.LibraryDirs = []string{containerLibs}
	}
	if smi, ok := inside(h, h.Root("usr/bin/nvidia-smi")); ok {
		e.Mounts = append(e.Mounts, &pb.Mount{Source: smi, Target: "/usr/bin/nvidia-smi"})
	}
}
