// Command rdma is the plugin for network cards that move memory between machines
// without the kernel: InfiniBand and RoCE. They are devices like accelerators, with
// a place on the bus, so that a container gets those that are near its accelerators.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
