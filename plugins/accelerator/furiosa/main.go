// Command furiosa is the accelerator plugin for FuriosaAI's RNGD and Warboy NPUs. It reads /sys; if
// furiosa-smi is installed, it also reports power and temperature.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
