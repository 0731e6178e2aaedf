// Command xpu is the accelerator plugin for Intel's discrete GPUs: Data Center GPU Max
// and Flex, Arc and Arc Pro. It reads what the kernel drivers xe and i915 publish in
// /sys and /proc; no library or program of the vendor is needed.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
