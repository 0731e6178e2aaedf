package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// errNoDriver is the ordinary state of a machine without NVIDIA hardware.
var errNoDriver = errors.New("no driver")

// driver is a loaded and initialised NVML.
type driver struct {
	lib   nvml.Interface
	info  map[string]string
	known map[int]string // index to uuid, to name a GPU that has since been lost

	stop   chan struct{}
	events sync.WaitGroup
}

// open loads NVML from below the driver root and starts listening for errors.
func open(load func(string) nvml.Interface, r roots) (*driver, error) {
	path := ""
	for _, dir := range r.libraryDirs() {
		candidate := filepath.Join(dir, "libnvidia-ml.so.1")
		if _, err := os.Stat(candidate); err == nil {
			path = candidate
			break
		}
	}
	if path == "" && r.driver != "/" {
		return nil, errNoDriver // never another root's library
	}
	lib := load(path)
	switch ret := lib.Init(); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, errNoDriver
	default:
		return nil, fmt.Errorf("initialise NVML: error %d", ret)
	}
	d := &driver{lib: lib, info: map[string]string{}, known: map[int]string{}, stop: make(chan struct{})}
	if v, ret := lib.SystemGetDriverVersion(); ret == nvml.SUCCESS {
		d.info["driver"] = v
	}
	if v, ret := lib.SystemGetCudaDriverVersion(); ret == nvml.SUCCESS {
		d.info["cuda"] = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	return d, nil
}

func (d *driver) close() {
	close(d.stop)
	d.events.Wait()
	d.lib.Shutdown()
}

// libraryDirs lists where distributions put the driver's libraries.
func (r roots) libraryDirs() []string {
	var dirs []string
	for _, d := range []string{
		"usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/nvidia/current",
		"usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "lib64",
		"usr/local/nvidia/lib64", "opt/nvidia/lib64", "usr/lib/wsl/lib",
	} {
		dirs = append(dirs, filepath.Join(r.driver, d))
	}
	return dirs
}

// wanted are the driver libraries a compute container needs: the CUDA driver,
// its compilers, OpenCL and management.
var wanted = []string{
	"libcuda.so", "libcudadebugger.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so",
	"libnvidia-nvvm.so", "libnvidia-nvvm70.so", "libnvidia-gpucomp.so", "libnvidia-opencl.so",
	"libnvidia-cfg.so", "libnvidia-allocator.so", "libnvidia-tileiras.so", "libnvidia-pkcs11.so",
	"libnvidia-pkcs11-openssl3.so",
}

// libraries maps every name under which a driver library is asked for to the
// file behind it. Only the directory that has the CUDA driver counts, and only
// files below the driver root.
func (r roots) libraries() map[string]string {
	out := map[string]string{}
	for _, dir := range r.libraryDirs() {
		entries, err := os.ReadDir(dir)
		if err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "libcuda.so.") }) {
			continue
		}
		for _, e := range entries {
			base, _, _ := strings.Cut(e.Name(), ".so")
			if !slices.Contains(wanted, base+".so") {
				continue
			}
			if file, ok := r.inside(filepath.Join(dir, e.Name())); ok {
				out[e.Name()] = file
			}
		}
		// Some programs ask for the development name, which drivers lack.
		if file, ok := out["libcuda.so.1"]; ok && out["libcuda.so"] == "" {
			out["libcuda.so"] = file
		}
		break
	}
	return out
}

// inside resolves links and reports whether a regular file below the driver
// root is at the end.
func (r roots) inside(path string) (string, bool) {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	root, err := filepath.EvalSymlinks(r.driver)
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
