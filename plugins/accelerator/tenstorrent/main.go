// Command tenstorrent is the accelerator plugin for Tenstorrent's Wormhole boards.
// It reads what the kernel driver tt-kmd says in /sys; no library or program of the
// vendor is needed.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
