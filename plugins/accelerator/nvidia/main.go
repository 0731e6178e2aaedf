// Command nvidia is the accelerator plugin for NVIDIA GPUs. It loads NVML when
// it starts to run, so the same binary works on machines without a driver,
// where it is healthy and shows nothing.
package main

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/berthhq/berth/plugins/accelerator/driver"
)

func main() {
	driver.Serve(newVendor(loadNVML))
}

// loadNVML uses the library at a path, or where the system's loader looks.
func loadNVML(path string) nvml.Interface {
	if path == "" {
		return nvml.New()
	}
	return nvml.New(nvml.WithLibraryPath(path))
}
