package main

import (
	"context"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Check implements driver.Checker.
func (m *machine) Check(context.Context) []*pb.Check {
	_, err := m.host.Node("kfd")
	return []*pb.Check{
		driver.Checked("driver", driver.Exists(m.host.Sys("module/amdgpu")), "amdgpu is loaded", "amdgpu is not loaded"),
		driver.Tried("device-nodes", err, "/dev/kfd is there", ""),
	}
}
