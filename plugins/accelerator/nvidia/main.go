// Command nvidia is the accelerator plugin for NVIDIA GPUs. It loads NVML at run time, so the same
// binary runs on machines without a driver, where it is healthy and shows no devices.
package main

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/berthhq/berth/plugins/accelerator/driver"
)

func main() {
	driver.Serve(newVendor(loadNVML))
}

// loadNVML loads the library at a path, or from the loader's search path.
func loadNVML(path string) nvml.Interface {
	if path == "" {
		return nvml.New()
	}
	return nvml.New(nvml.WithLibraryPath(path))
}
