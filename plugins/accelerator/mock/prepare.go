package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

func (m *mock) Prepare(_ context.Context, req *pb.PrepareRequest) (*pb.PrepareResponse, error) {
	m.faults.strike("Prepare")
	s, err := m.feed.Ready()
	if err != nil {
		return nil, err
	}
	return m.ledger.Prepare(req, func() (*pb.PrepareResponse, error) {
		grants, err := accelerator.Grants(s, req.GetAllocations())
		if err != nil {
			return nil, err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		return edits(m.cfg, m.dev, grants), nil
	})
}

func edits(c config, dev string, grants []accelerator.Grant) *pb.PrepareResponse {
	var ids, parts []string
	out := &pb.PrepareResponse{Edits: &pb.ContainerEdits{}, ResourceData: map[string]string{}}
	for i, g := range grants {
		thousandths := int64(math.Round(g.Part * 1000))
		ids = append(ids, g.Device.GetId())
		parts = append(parts, g.Device.GetId()+":"+accelerator.FormatAmount(pb.SlotType_SHARES, thousandths))
		mem := uint64(g.Part * float64(g.Device.GetMemoryBytes()))
		if g.Slot.GetName() == memory {
			mem = uint64(g.Amount)
		}
		out.Attached = append(out.Attached, &pb.AttachedDevice{
			DeviceId: g.Device.GetId(), Model: g.Device.GetModel(), MemoryBytes: mem,
			ProcessingUnits: uint32(g.Part * float64(g.Device.GetProcessingUnits())),
		})
		if c.DeviceNodes {
			out.Edits.DeviceNodes = append(out.Edits.DeviceNodes, &pb.DeviceNode{
				Path: fmt.Sprintf("/dev/mock%d", i), HostPath: filepath.Join(dev, "zero"),
				Type: pb.DeviceNode_CHAR, Major: 1, Minor: 5, Permissions: "rw",
			})
		}
	}
	out.Edits.Env = map[string]string{
		"MOCK_VISIBLE_DEVICES": strings.Join(ids, ","),
		"MOCK_SHARES":          strings.Join(parts, ","),
	}
	out.ResourceData["MOCK_SHARES"] = strings.Join(parts, ",")
	return out
}

func (m *mock) Unprepare(_ context.Context, req *pb.UnprepareRequest) (*pb.UnprepareResponse, error) {
	m.faults.strike("Unprepare")
	if req.GetAllocationId() == "" {
		return nil, status.Error(codes.InvalidArgument, "allocation_id: must be set")
	}
	m.ledger.Forget(req.GetAllocationId())
	return &pb.UnprepareResponse{}, nil
}

func (m *mock) Restore(_ context.Context, req *pb.RestoreRequest) (*pb.RestoreResponse, error) {
	m.faults.strike("Restore")
	s, err := m.feed.Ready()
	if err != nil {
		return nil, err
	}
	m.ledger.Restore(req.GetLive())
	return &pb.RestoreResponse{Problems: accelerator.RestoreProblems(s, req.GetLive())}, nil
}
