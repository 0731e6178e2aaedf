// Command furiosa is the accelerator plugin for FuriosaAI's RNGD and Warboy NPUs. It
// reads what the kernel drivers say in /sys; furiosa-smi adds power and temperature
// where it is installed.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
