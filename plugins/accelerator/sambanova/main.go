// Command sambanova is the accelerator plugin for SambaNova's RDUs, as a whole and by tiles. It
// reads the platform from the SNML daemon, and everything else from the vendor's programs snconfig
// and sntilestat.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
