package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Edit implements driver.Machine.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	grants := driver.InOrder(r.Grants, "index")
	out := &pb.PrepareResponse{Edits: &pb.ContainerEdits{Env: map[string]string{}}}
	var nodes, indices, modules []string
	for _, g := range grants {
		at := g.Device.GetAttributes()
		nodes = append(nodes, at["node"], at["control_node"])
		if at["verbs_node"] != "" && m.ScaleOut {
			nodes = append(nodes, at["verbs_node"])
		}
		indices = append(indices, at["index"])
		if at["module_id"] != "" {
			modules = append(modules, at["module_id"])
		}
		out.Attached = append(out.Attached, driver.Attached(g.Device))
	}
	if err := m.host.Give(out.Edits, nodes...); err != nil {
		return nil, err
	}
	out.Edits.Env["HABANA_VISIBLE_DEVICES"] = strings.Join(indices, ",")
	if len(modules) == len(grants) && len(grants) < len(r.Snapshot.GetDevices()) { // a part of the board
		out.Edits.Env["HABANA_VISIBLE_MODULES"] = strings.Join(modules, ",")
	}
	if m.SysNice {
		out.Edits.Capabilities = []string{"CAP_SYS_NICE"}
	}
	out.ResourceData = map[string]string{"GAUDI_DEVICES": strings.Join(indices, ",")}
	if m.ScaleOut {
		if err := m.network(r, grants, out.Edits); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// network creates the files that the vendor's communication library expects in /etc/habanalabs.
// They are in the allocation's own directory, so that the host's /etc is not mounted.
func (m *machine) network(r *driver.Request, grants []accelerator.Grant, e *pb.ContainerEdits) error {
	files := map[string][]byte{"macAddrInfo.json": m.addresses(grants), "gaudinet.json": nil}
	if text, err := m.gaudinet(); err == nil {
		files["gaudinet.json"] = text
	}
	for _, name := range []string{"gaudinet.json", "macAddrInfo.json"} {
		if len(files[name]) == 0 {
			continue
		}
		dir, err := r.Dir()
		if err != nil {
			return err
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			return fmt.Errorf("network of the devices: %w", err)
		}
		e.Mounts = append(e.Mounts, &pb.Mount{Source: file, Target: "/etc/habanalabs/" + name})
	}
	return nil
}
