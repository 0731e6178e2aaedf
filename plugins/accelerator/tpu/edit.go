package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// Edit implements driver.Machine.
func (m *machine) Edit(_ context.Context, r *driver.Request) (*pb.PrepareResponse, error) {
	grants := driver.InOrder(r.Grants, "index")
	out := &pb.PrepareResponse{Edits: &pb.ContainerEdits{}}
	var chips, ports []string
	for i, g := range grants {
		if err := m.host.Give(out.Edits, nodes(g.Device)...); err != nil {
			return nil, err
		}
		if slices.Contains(nodes(g.Device), vfio) { // a program's memory is pinned for the chip
			out.Edits.Rlimits = driver.Memlock()
		}
		chips, ports = append(chips, g.Device.GetAttributes()["index"]), append(ports, strconv.Itoa(m.Port+i))
		out.Attached = append(out.Attached, driver.Attached(g.Device))
	}
	out.Edits.Env = m.env(grants, chips, ports)
	logs, err := logDir(r)
	if err != nil {
		return nil, err
	}
	out.Edits.Mounts = []*pb.Mount{{Source: logs, Target: "/tmp/tpu_logs", Writable: true}}
	out.ResourceData = map[string]string{"TPU_CHIPS": strings.Join(chips, ",")}
	return out, nil
}

// env describes the machine to libtpu, so that libtpu does not query a metadata server.
func (m *machine) env(grants []accelerator.Grant, chips, ports []string) map[string]string {
	env := map[string]string{
		m.Visible:                   strings.Join(chips, ","),
		"TPU_SKIP_MDS_QUERY":        "true",
		"TPU_RUNTIME_METRICS_PORTS": strings.Join(ports, ","),
		"TPU_WORKER_ID":             "0",
		"TPU_WORKER_HOSTNAMES":      "localhost",
	}
	what := products[grants[0].Device.GetAttributes()["pci_device"]]
	for _, g := range grants {
		if products[g.Device.GetAttributes()["pci_device"]] != what {
			return env // the shape of different chips together is undefined
		}
	}
	if shape := what.shape(len(grants)); shape != "" {
		env["TPU_TOPOLOGY"] = shape
		env["TPU_ACCELERATOR_TYPE"] = fmt.Sprintf("%s-%d", what.kind, len(grants)*what.units)
		bounds := strings.ReplaceAll(shape, "x", ",")
		if !what.deep {
			bounds += ",1"
		}
		env["TPU_CHIPS_PER_HOST_BOUNDS"], env["TPU_HOST_BOUNDS"] = bounds, "1,1,1"
	}
	return env
}

// logDir creates the directory for the library's logs, which any user of the container can write.
func logDir(r *driver.Request) (string, error) {
	dir, err := r.Dir("tpu_logs")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		return "", fmt.Errorf("directory of logs: %w", err)
	}
	return dir, nil
}
