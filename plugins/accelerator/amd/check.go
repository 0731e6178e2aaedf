package main

import (
	"context"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Check implements driver.Checker.
func (m *machine) Check(context.Context) []*pb.Check {
	loaded := &pb.Check{Name: "driver", Ok: driver.Exists(m.host.Sys("module/amdgpu")), Detail: "amdgpu is loaded"}
	if !loaded.Ok {
		loaded.Detail = "amdgpu is not loaded"
	}
	compute := &pb.Check{Name: "device-nodes", Ok: true, Detail: "/dev/kfd is there"}
	if _, err := m.host.Node("kfd"); err != nil {
		compute.Ok, compute.Detail = false, err.Error()
	}
	return []*pb.Check{loaded, compute}
}
