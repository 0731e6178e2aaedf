// Command xpu is the accelerator plugin for Intel's discrete GPUs: Data Center GPU Max and Flex,
// Arc and Arc Pro. It reads the files of the kernel drivers xe and i915 in /sys and /proc, and
// requires no library or program of the vendor.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
