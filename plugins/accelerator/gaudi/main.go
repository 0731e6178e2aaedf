// Command gaudi is the accelerator plugin of Intel's Gaudi 2 and Gaudi 3. It needs
// the kernel's habanalabs driver, and hl-smi to measure.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
