package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/berthhq/berth/plugins/accelerator"
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

// serves reports whether the library is the host's NVML and lists the present GPUs.
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

// gpu is a GPU or a MIG instance, from NVML and sysfs.
type gpu struct {
	handle nvml.Device
	id     string // uuid
	index  int
	minor  int // of /dev/nvidiaN; that of its parent for a MIG instance
	model  string
	serial string
	pci    string
	memory uint64
	units  uint32
	major  int // compute capability
	lesser int
	mig    bool // MIG mode is on: only the instances are allocatable
	lost   bool
	hot    bool // above the temperature at which it slows down

	parent  *gpu // of a MIG instance
	profile string
	gi, ci  int
	slices  map[string]string // GPU instances; for an instance, the one that contains it

	problems []string // why it cannot be used
}

// profileForm is the allowed form of a profile in the name of a slot.
var profileForm = regexp.MustCompile(`^[0-9a-z][0-9a-z.+-]{0,40}$`)

// scan reads the whole machine. A GPU that cannot be read is in the list with its problems.
func (d *management) scan() ([]*gpu, error) {
	n, ret := d.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("count devices: error %d", ret)
	}
	var out []*gpu
	for i := range n {
		g := d.read(i)
		if g.id == "" {
			g.id = d.known[i]
		}
		if g.id == "" {
			g.id = fmt.Sprintf("index-%d", i)
		} else {
			d.known[i] = g.id
		}
		out = append(out, g)
		if g.mig && !g.lost {
			parts := g.instances()
			g.cut(parts)
			out = append(out, parts...)
		}
	}
	return out, nil
}

func (d *management) read(i int) *gpu {
	g := &gpu{index: i, minor: -1, model: "NVIDIA GPU"}
	need := func(what string, ret nvml.Return) bool {
		switch ret {
		case nvml.SUCCESS:
			return true
		case nvml.ERROR_GPU_IS_LOST:
			g.lost = true
		}
		g.problems = append(g.problems, fmt.Sprintf("%s cannot be read: NVML error %d", what, ret))
		return false
	}
	h, ret := d.lib.DeviceGetHandleByIndex(i)
	if !need("device", ret) {
		return g
	}
	g.handle = h
	if g.id, ret = h.GetUUID(); need("uuid", ret) && !accelerator.IsDeviceID(g.id) {
		g.id, g.problems = "", append(g.problems, "uuid is malformed")
	}
	if name, ret := h.GetName(); need("model", ret) {
		g.model = cmp.Or(driver.Clean(name, 100), g.model)
	}
	g.minor, ret = h.GetMinorNumber()
	need("minor number", ret)
	g.major, g.lesser, ret = h.GetCudaComputeCapability()
	need("compute capability", ret)
	if m, ret := h.GetMemoryInfo(); need("memory", ret) {
		g.memory = m.Total
	}
	if p, ret := h.GetPciInfo(); need("PCI address", ret) {
		g.pci = driver.Clean(address(p.BusId), 40)
	}
	// Not every product supports the following calls.
	if s, ret := h.GetSerial(); ret == nvml.SUCCESS {
		g.serial = driver.Clean(s, 100)
	}
	if now, ret := h.GetTemperature(nvml.TEMPERATURE_GPU); ret == nvml.SUCCESS {
		most, ret := h.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)
		g.hot = ret == nvml.SUCCESS && most > 0 && now >= most
	}
	if mode, _, ret := h.GetMigMode(); ret == nvml.SUCCESS {
		g.mig = mode == nvml.DEVICE_MIG_ENABLE
	}
	if cores, ret := d.cores(h); ret == nvml.SUCCESS && g.major > 0 {
		g.units = uint32(cores / coresPerSM(g.major, g.lesser))
	}
	return g
}

// cut sets the counters of a GPU's instances. Compute instances in the same GPU instance share its
// memory, so only one of them can be allocated at a time.
func (g *gpu) cut(parts []*gpu) {
	g.slices = map[string]string{}
	for _, m := range parts {
		name := fmt.Sprintf("gi%d", m.gi)
		g.slices[name] = "1"
		m.slices = map[string]string{name: "1"}
	}
}

// cores avoids a call that drivers before 470 lack: a missing symbol would end the process.
func (d *management) cores(h nvml.Device) (int, nvml.Return) {
	if d.lib.Extensions().LookupSymbol("nvmlDeviceGetNumGpuCores") != nil {
		return 0, nvml.ERROR_FUNCTION_NOT_FOUND
	}
	return h.GetNumGpuCores()
}

func coresPerSM(major, minor int) int {
	if major == 7 || major == 8 && minor == 0 {
		return 64
	}
	return 128
}

// address converts NVML's 00000000:3B:00.0 to the kernel's 0000:3b:00.0.
func address(raw [32]int8) string {
	var b strings.Builder
	for _, c := range raw {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return driver.Address(b.String())
}

// instances returns a GPU's MIG instances.
func (g *gpu) instances() []*gpu {
	n, ret := g.handle.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return nil
	}
	var out []*gpu
	for i := range n {
		h, ret := g.handle.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue // no instance has this index
		}
		out = append(out, g.instance(i, h))
	}
	return out
}

func (g *gpu) instance(i int, h nvml.Device) *gpu {
	m := &gpu{handle: h, parent: g, index: g.index, minor: g.minor, pci: g.pci, serial: g.serial,
		major: g.major, lesser: g.lesser, model: g.model, gi: -1, ci: -1}
	var ret nvml.Return
	if m.id, ret = h.GetUUID(); ret != nvml.SUCCESS || !accelerator.IsDeviceID(m.id) {
		m.id, m.problems = fmt.Sprintf("%s/mig-%d", g.id, i), []string{"its uuid cannot be read"}
	}
	if gi, ret := h.GetGpuInstanceId(); ret == nvml.SUCCESS {
		m.gi = gi
	}
	if ci, ret := h.GetComputeInstanceId(); ret == nvml.SUCCESS {
		m.ci = ci
	}
	if m.gi < 0 || m.ci < 0 {
		m.problems = append(m.problems, "its instance ids cannot be read")
	}
	a, ret := h.GetAttributes()
	if ret == nvml.SUCCESS {
		m.memory, m.units = a.MemorySizeMB<<20, a.MultiprocessorCount
	}
	// "NVIDIA A100-SXM4-40GB MIG 1g.5gb" ends with the public name of the profile.
	if name, ret := h.GetName(); ret == nvml.SUCCESS {
		m.model = cmp.Or(driver.Clean(name, 100), m.model)
		_, m.profile, _ = strings.Cut(name, " MIG ")
	}
	if m.profile == "" && a.GpuInstanceSliceCount > 0 {
		m.profile = fmt.Sprintf("%dg.%dgb", a.GpuInstanceSliceCount, (a.MemorySizeMB+1023)/1024)
	}
	m.profile = strings.ToLower(strings.TrimSpace(m.profile))
	if !profileForm.MatchString(m.profile) {
		m.profile = ""
		m.problems = append(m.problems, "its profile cannot be read")
	}
	return m
}
