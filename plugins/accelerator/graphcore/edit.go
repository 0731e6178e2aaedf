package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const (
	inside = "/etc/ipuof.conf.d" // where the vendor's library looks for it in a container
	file   = "berth.conf"
)

// Edit implements driver.Machine.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	e := &pb.ContainerEdits{
		Env: map[string]string{}, HostIpc: m.config.HostIPC,
		Rlimits: driver.Memlock(),
	}
	if m.config.IPCLock {
		e.Capabilities = []string{"CAP_IPC_LOCK"}
	}
	out := &pb.PrepareResponse{Edits: e}
	var remote []*pb.Device
	for _, g := range r.Grants {
		d := g.Device
		out.Attached = append(out.Attached, driver.Attached(d))
		if d.GetAttributes()["ipu_machine"] != "" {
			remote = append(remote, d)
			continue
		}
		nodes, err := m.nodes(driver.Number(d, "number"))
		if err != nil {
			return nil, err
		}
		if err := m.Give(e, nodes...); err != nil {
			return nil, err
		}
	}
	if len(remote) > 0 {
		return out, m.network(r, remote, e)
	}
	return out, nil
}

// network adds the files that a container needs to reach its IPUs in IPU-Machines.
func (m *machine) network(r *driver.Request, devices []*pb.Device, e *pb.ContainerEdits) error {
	text, err := m.filtered(devices)
	if err != nil {
		return err
	}
	own, err := r.Dir("ipuof.conf.d")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(own, file), text, 0o644); err != nil {
		return fmt.Errorf("IPUoF file: %w", err)
	}
	e.Mounts = append(e.Mounts, &pb.Mount{Source: own, Target: inside})
	e.Env["IPUOF_CONFIG_PATH"] = inside + "/" + file
	if m.config.Infiniband {
		return m.Give(e, m.rdma()...)
	}
	return nil
}

var rdmaForm = regexp.MustCompile(`^(uverbs[0-9]{1,4}|rdma_cm)$`)

// rdma returns the host's RDMA devices, which connect it to IPU-Machines, without those that manage
// the network (umad, issm).
func (m *machine) rdma() []string {
	var out []string
	for _, name := range driver.Names(m.Dev("infiniband")) {
		if rdmaForm.MatchString(name) {
			out = append(out, "infiniband/"+name)
		}
	}
	return out
}

// Check implements driver.Checker.
func (m *machine) Check(ctx context.Context) []*pb.Check {
	all, err := m.inventory(ctx)
	out := []*pb.Check{driver.Tried("gc-inventory", err, "answers", "")}
	for _, one := range all {
		if one.fabric() {
			f := m.fabric(ctx)
			return append(out,
				driver.Tried("fabric", f.doubt, "gc-monitor and the IPUoF file have the addresses of IPU-Machines", ""),
				driver.Checked("rdma", len(m.rdma()) > 0, "there are RDMA devices", "there are no RDMA devices in /dev/infiniband"))
		}
	}
	return out
}
