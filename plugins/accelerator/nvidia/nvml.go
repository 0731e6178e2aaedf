package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const vendorID = "10de"

// errNoDriver is normal on a machine without NVIDIA hardware.
var errNoDriver = errors.New("no driver")

// management is a loaded and initialized NVML.
type management struct {
	lib   nvml.Interface
	root  string   // the driver root from which it was loaded
	bus   []string // addresses of NVIDIA's PCI functions at the initialization
	info  map[string]string
	known map[int]string // index to uuid, to identify a GPU that was lost

	stop   chan struct{}
	events sync.WaitGroup
}

// open loads NVML from below the driver root and starts listening for errors.
func open(load func(string) nvml.Interface, h *driver.Host) (*management, error) {
	path := ""
	for _, dir := range libraryDirs(h) {
		if candidate := filepath.Join(dir, "libnvidia-ml.so.1"); driver.Exists(candidate) {
			path = candidate
			break
		}
	}
	if path == "" && h.Root() != "/" {
		return nil, errNoDriver // never use the library of another root
	}
	bus := onBus(h) // read first, so that a later change is detected
	lib := load(path)
	switch ret := lib.Init(); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, errNoDriver
	default:
		return nil, fmt.Errorf("initialise NVML: error %d", ret)
	}
	d := &management{lib: lib, root: h.Root(), bus: bus, info: map[string]string{}, known: map[int]string{}, stop: make(chan struct{})}
	if v, ret := lib.SystemGetDriverVersion(); ret == nvml.SUCCESS {
		d.info["driver"] = driver.Clean(v, 40)
	}
	if v, ret := lib.SystemGetCudaDriverVersion(); ret == nvml.SUCCESS {
		d.info["cuda"] = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	return d, nil
}

// serves reports whether it is the host's NVML and knows the GPUs that are present now.
func (d *management) serves(h *driver.Host) bool {
	return d.root == h.Root() && slices.Equal(d.bus, onBus(h))
}

func (d *management) close() {
	close(d.stop)
	d.events.Wait()
	d.lib.Shutdown()
}

// onBus returns the addresses of NVIDIA's PCI functions. NVML finds GPUs only at its
// initialization, so it must be reloaded when one is added or removed.
func onBus(h *driver.Host) []string {
	var out []string
	for _, f := range h.PCI(vendorID) {
		out = append(out, f.Address)
	}
	return out
}
