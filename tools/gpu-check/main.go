// Command gpu-check prints values of the nvidia plugin, which tools/gpu-check.sh compares with the
// driver's own tools:
//
//	gpu-check PLUGIN devices          a line for each GPU: uuid, bytes, compute capability, usable, model
//	gpu-check PLUGIN memory GPU PID   bytes of the GPU that the process holds
//	gpu-check PLUGIN mps GPU SHARE COMMAND [ARGUMENT...]   runs the command in a share of the GPU under MPS
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-check:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "gpu-check")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if len(args) < 2 {
		return errUsage
	}
	o := accelerator.Options{Path: args[0], SocketDir: dir}
	if libs := os.Getenv("LD_LIBRARY_PATH"); libs != "" { // some machines have the driver's libraries there
		o.Env = append(o.Env, "LD_LIBRARY_PATH="+libs)
	}
	c, err := accelerator.Launch(ctx, o, &pb.DescribeRequest{AgentVersion: "gpu-check", NodeName: "gpu-check", Incarnation: "1"})
	if err != nil {
		return err
	}
	defer c.Close()
	cfg := &pb.ConfigureRequest{Roots: &pb.Roots{State: dir}}
	if args[1] == "mps" {
		cfg.ConfigJson = []byte(`{"enforcement": "mps"}`)
	}
	if _, err := c.Configure(ctx, cfg); err != nil {
		return err
	}
	switch {
	case args[1] == "devices" && len(args) == 2:
		return devices(ctx, c)
	case args[1] == "memory" && len(args) == 4:
		return memory(ctx, c, args[2], args[3])
	case args[1] == "mps" && len(args) > 4:
		return share(ctx, c, dir, args[2], args[3], args[4:])
	}
	return errUsage
}

var errUsage = errors.New("usage: gpu-check PLUGIN devices | PLUGIN memory GPU PID | PLUGIN mps GPU SHARE COMMAND")

func devices(ctx context.Context, c *accelerator.Client) error {
	w, err := c.WatchDevices(ctx, &pb.WatchDevicesRequest{})
	if err != nil {
		return err
	}
	s, err := w.Recv()
	if err != nil {
		return err
	}
	if err := accelerator.Validate(c.Description, s); err != nil {
		return err
	}
	for _, d := range s.GetDevices() {
		if d.GetParentId() == "" {
			fmt.Println(d.GetId(), d.GetMemoryBytes(), d.GetAttributes()["compute_capability"], d.GetAllocatable(), d.GetModel())
		}
	}
	return nil
}

// memory prints the memory that is attributed to a process, as soon as there is any.
func memory(ctx context.Context, c *accelerator.Client, gpu, pid string) error {
	n, err := strconv.ParseInt(pid, 10, 32)
	if err != nil {
		return err
	}
	w, err := c.WatchWorkloadMetrics(ctx)
	if err != nil {
		return err
	}
	err = w.Send(&pb.WorkloadSet{IntervalMs: 500, Workloads: []*pb.Workload{{
		AllocationId: "check", HostPids: []int32{int32(n)},
		Allocations: []*pb.Allocation{{Slot: "cuda.device", DeviceId: gpu, Amount: "1"}},
	}}})
	if err != nil {
		return err
	}
	for range 20 {
		sample, err := w.Recv()
		if err != nil {
			return err
		}
		for _, work := range sample.GetWorkloads() {
			for _, m := range work.GetMetrics() {
				if m.GetName() == "cuda_mem" && m.GetQuality() == pb.Metric_MEASURED && m.GetValue() > 0 {
					fmt.Printf("%.0f\n", m.GetValue())
					return nil
				}
			}
		}
	}
	return fmt.Errorf("no memory of %s is attributed to process %d", gpu, n)
}
