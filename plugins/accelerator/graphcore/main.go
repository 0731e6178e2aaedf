// Command graphcore is the accelerator plugin for Graphcore's IPUs, on PCIe cards and in
// IPU-Machines that are reached over the network. It runs the vendor's programs gc-inventory and
// gc-monitor.
package main

import "github.com/berthhq/berth/plugins/accelerator/driver"

func main() { driver.Serve(vendor{}) }
