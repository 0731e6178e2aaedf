// Command rdma is the plugin for network cards with RDMA: InfiniBand and RoCE. They are devices
// like accelerators, with a location on the bus, so that a container gets cards near its
// accelerators.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
