package main

import (
	"context"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Edit implements driver.Machine. A board keeps its number in the container: the vendor's library
// uses everything in /dev/tenstorrent.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	out := &pb.PrepareResponse{Edits: &pb.ContainerEdits{}}
	for _, g := range driver.InOrder(r.Grants, "number") {
		if err := m.Give(out.Edits, "tenstorrent/"+g.Device.GetAttributes()["number"]); err != nil {
			return nil, err
		}
		out.Attached = append(out.Attached, driver.Attached(g.Device))
	}
	if m.config.Hugepages {
		for _, name := range []string{"hugepages", "hugepages-1G"} {
			out.Edits.Mounts = append(out.Edits.Mounts, &pb.Mount{
				Source: m.Dev(name), Target: "/dev/" + name, Writable: true, Recursive: true, Optional: true,
			})
		}
	}
	if m.config.IPCLock {
		out.Edits.Capabilities = []string{"CAP_IPC_LOCK"}
	}
	return out, nil
}

// Check implements driver.Checker.
func (m *machine) Check(context.Context) []*pb.Check {
	return []*pb.Check{
		driver.Checked("driver", driver.Exists(m.class()), "tt-kmd is loaded", "tt-kmd is not loaded: /sys/class/tenstorrent is missing"),
		driver.Optional(driver.Checked("huge-pages", !m.config.Hugepages || driver.Exists(m.Dev("hugepages-1G")), "ready",
			"/dev/hugepages-1G is not mounted; without it, boards need an IOMMU that translates")),
	}
}
