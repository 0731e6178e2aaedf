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

// errNoDriver is the ordinary state of a machine without NVIDIA hardware.
var errNoDriver = errors.New("no driver")

// management is a loaded and initialised NVML.
type management struct {
	lib   nvml.Interface
	root  string   // of the driver that it was loaded from
	bus   []string // addresses of NVIDIA's functions when it was initialised
	info  map[string]string
	known map[int]string // index to uuid, to name a GPU that has since been lost

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
		return nil, errNoDriver // never another root's library
	}
	bus := onBus(h) // before, so that what changes meanwhile is seen
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

// serves reports whether it is the host's, and counts the GPUs that are there now.
func (d *management) serves(h *driver.Host) bool {
	return d.root == h.Root() && slices.Equal(d.bus, onBus(h))
}

func (d *management) close() {
	close(d.stop)
	d.events.Wait()
	d.lib.Shutdown()
}

// onBus lists where NVIDIA's functions are. NVML counts GPUs when it is
// initialised: when one is pulled or put in, it has to begin again.
func onBus(h *driver.Host) []string {
	var out []string
	for _, f := range h.PCI(vendorID) {
		out = append(out, f.Address)
	}
	return out
}
