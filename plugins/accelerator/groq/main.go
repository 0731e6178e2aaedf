// Command groq is the accelerator plugin for GroqCards. It finds them on the PCI
// bus, and asks the vendor's program tsp-ctl, where there is one, how they are.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
