package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
	"github.com/berthhq/berth/plugins/accelerator/nvidia/limit"
)

// enforce tells the program its parts of GPUs, and sees that it keeps to them as
// the configuration wants it.
func (p *plugin) enforce(ctx context.Context, how string, at *driver.Host, req *pb.PrepareRequest, parts []part, out *pb.PrepareResponse) error {
	if len(parts) == 0 {
		return nil
	}
	var shares, limits []string
	var caps []limit.Cap
	for _, x := range parts {
		shares = append(shares, x.unit.id+":"+strconv.FormatFloat(x.compute, 'f', 3, 64))
		limits = append(limits, fmt.Sprintf("%s:%d", x.unit.id, x.mem))
		caps = append(caps, limit.Cap{UUID: x.unit.id, Bytes: x.mem})
	}
	env := out.Edits.Env
	env["BERTH_CUDA_ENFORCEMENT"] = how
	env["BERTH_CUDA_SHARES"] = strings.Join(shares, ",")
	env["BERTH_CUDA_MEMORY_LIMITS"] = strings.Join(limits, ",")
	switch how {
	case limited:
		return p.limit(req.GetWorkDir(), caps, out.Edits)
	case mps:
		// The server limits each process; the library all of them together.
		if p.library != "" {
			if err := p.limit(req.GetWorkDir(), caps, out.Edits); err != nil {
				return err
			}
		}
		return p.serve(ctx, at, req, parts, out)
	}
	return nil
}

func (p *plugin) limit(dir string, caps []limit.Cap, e *pb.ContainerEdits) error {
	if dir == "" {
		return status.Error(codes.InvalidArgument, "work_dir: must be set")
	}
	if err := limit.Apply(e, p.library, dir, caps); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}

// held is what an allocation under MPS hands back in Restore.
type held struct {
	GPU    string `json:"gpu"`
	Domain string `json:"domain"`
}

// serve puts a container under the MPS server of its GPU. A program speaks to one
// server, so it can have a part of one GPU and nothing else.
func (p *plugin) serve(ctx context.Context, at *driver.Host, req *pb.PrepareRequest, parts []part, out *pb.PrepareResponse) error {
	if len(parts) != 1 || len(req.GetAllocations()) != 1 {
		return status.Error(codes.InvalidArgument, "allocations: under MPS a container can have a part of one GPU, and no other GPU beside")
	}
	if os.Geteuid() != 0 {
		return status.Error(codes.FailedPrecondition, "MPS servers are started by root alone")
	}
	x := parts[0]
	state, err := json.Marshal(held{x.unit.id, req.GetTrustDomain()})
	if err != nil {
		return err
	}
	s, err := p.mps.join(ctx, at, x.unit.id, req.GetTrustDomain(), req.GetAllocationId())
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
