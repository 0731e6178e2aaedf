// Command groq is the accelerator plugin for GroqCards. It finds them on the PCI bus, and reads
// their state with the vendor's program tsp-ctl if it is installed.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
