// Command rebellions is the accelerator plugin for Rebellions' ATOM NPUs. It runs rbln-smi, which
// is part of the driver, also to create and destroy RSD groups.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
