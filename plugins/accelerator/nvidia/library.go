package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

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
