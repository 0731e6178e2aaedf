// Command rebellions is the accelerator plugin for Rebellions' ATOM NPUs. It runs
// rbln-smi, which comes with the driver, and makes and destroys RSD groups with it.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
