package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/nvidia/limit"
)

// enforce describes the program's shares of GPUs to it, and enforces them by the configured
// mechanism.
func (m *machine) enforce(ctx context.Context, req *pb.PrepareRequest, parts []part, out *pb.PrepareResponse) error {
	if len(parts) == 0 {
		return nil
	}
	how := m.cfg.Enforcement
	var shares, limits []string
	var caps []limit.Cap
	for _, x := range parts {
		shares = append(shares, x.unit.id+":"+strconv.FormatFloat(x.compute, 'f', 3, 64))
		limits = append(limits, fmt.Sprintf("%s:%d", x.unit.id, x.mem))
		caps = append(caps, limit.Cap{UUID: x.unit.id, Bytes: x.mem})
	}
	// A program can change its environment, but not this file.
	out.ResourceData = map[string]string{
		"BERTH_CUDA_ENFORCEMENT":   how,
		"BERTH_CUDA_SHARES":        strings.Join(shares, ","),
		"BERTH_CUDA_MEMORY_LIMITS": strings.Join(limits, ","),
	}
	maps.Copy(out.Edits.Env, out.ResourceData)
	switch how {
	case limited:
		return m.vendor.limit(req.GetWorkDir(), caps, out.Edits)
	case mps:
		// The MPS server limits each process; the library limits all processes together.
		if m.vendor.library != "" {
			if err := m.vendor.limit(req.GetWorkDir(), caps, out.Edits); err != nil {
				return err
			}
		}
		return m.serve(ctx, req, parts, out)
	}
	return nil
}

func (v *vendor) limit(dir string, caps []limit.Cap, e *pb.ContainerEdits) error {
	if dir == "" {
		return status.Error(codes.InvalidArgument, "work_dir: must be set")
	}
	if err := limit.Apply(e, v.library, dir, caps); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}

// held is the stored state of an allocation under MPS, for Restore.
type held struct {
	GPU    string `json:"gpu"`
	Domain string `json:"domain"`
}

// serve connects a container to the MPS server of its GPU. A program can connect to only one
// server, so it can have a share of only one GPU.
func (m *machine) serve(ctx context.Context, req *pb.PrepareRequest, parts []part, out *pb.PrepareResponse) error {
	if len(parts) != 1 || len(req.GetAllocations()) != 1 {
		return status.Error(codes.InvalidArgument, "allocations: under MPS a container can have a part of one GPU, and no other GPU")
	}
	if os.Geteuid() != 0 {
		return status.Error(codes.FailedPrecondition, "only root can start MPS servers")
	}
	x := parts[0]
	state, err := json.Marshal(held{x.unit.id, req.GetTrustDomain()})
	if err != nil {
		return err
	}
	s, err := m.vendor.mps.join(ctx, m.Host, x.unit.id, req.GetTrustDomain(), req.GetAllocationId())
	if err != nil {
		return err
	}
	env := out.Edits.Env
	env["CUDA_MPS_PIPE_DIRECTORY"] = mpsInContainer
	env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = x.percent()
	env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = fmt.Sprintf("0=%dM", x.mem>>20)
	out.Edits.Mounts = append(out.Edits.Mounts,
		&pb.Mount{Source: s.pipe, Target: mpsInContainer, Writable: true},
		&pb.Mount{Source: s.shm, Target: "/dev/shm", Writable: true})
	out.State = state
	return nil
}
