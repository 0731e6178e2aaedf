// Command tenstorrent is the accelerator plugin for Tenstorrent's Wormhole boards. It reads the
// files of the kernel driver tt-kmd in /sys and requires no library or program of the vendor.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
