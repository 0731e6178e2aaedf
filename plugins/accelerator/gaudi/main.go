// Command gaudi is the accelerator plugin for Intel's Gaudi 2 and Gaudi 3. It requires the kernel's
// habanalabs driver, and hl-smi for metrics.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
