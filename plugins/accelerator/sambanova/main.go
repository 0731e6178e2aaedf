// Command sambanova is the accelerator plugin for SambaNova's RDUs, whole and by
// tiles. It asks the daemon's SNML what the platform is, and the vendor's programs
// snconfig and sntilestat for the rest.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
