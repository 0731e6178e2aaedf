// Command amd is the accelerator plugin of AMD's Instinct GPUs, MI250X and newer.
// It needs the kernel's amdgpu driver and nothing else: no library, no program.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
