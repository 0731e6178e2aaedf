// Command hyperaccel is the accelerator plugin for HyperAccel's LPU, a Xilinx card
// that the drivers xclmgmt and xocl serve. It reads what they publish in /sys; no
// library or program of the vendor is needed.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
