// Command hyperaccel is the accelerator plugin for HyperAccel's LPU, a Xilinx card with the drivers
// xclmgmt and xocl. It reads /sys and requires no library or program of the vendor.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
