// Command amd is the accelerator plugin for AMD's Instinct GPUs, MI250X and newer. It requires the
// kernel's amdgpu driver and no libraries or programs.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
