// Command tpu is the accelerator plugin for Google's TPUs, v4 and newer, on machines with the chips
// on their PCI bus.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
