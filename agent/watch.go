package agent

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
)

// Watch sends a full report, then changes as they happen.
func (s *server) Watch(r *agentpb.WatchRequest, stream grpc.ServerStreamingServer[agentpb.Event]) error {
	if r.Epoch != 0 {
		if err := s.a.kernels.Fence(r.Epoch); err != nil {
			return err
		}
	}
	if s.a.node != nil {
		s.a.node.Learn(r.Managers...)
	}
	// The subscription precedes the report, so that no change is lost between the two.
	w, cancel := s.a.hub.subscribe()
	defer cancel()
	if err := s.sendReport(stream); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeatEvery)
	defer beat.Stop()
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-beat.C:
			if err := stream.Send(s.a.heartbeat()); err != nil {
				return err
			}
		case <-w.wake:
			if err := s.sendChanges(stream, w); err != nil {
				return err
			}
		}
	}
}

func (a *Agent) heartbeat() *agentpb.Event {
	return &agentpb.Event{Event: &agentpb.Event_Heartbeat{Heartbeat: &agentpb.Heartbeat{
		UnixMs: time.Now().UnixMilli(), Conditions: a.monitor.List(),
	}}}
}

func (s *server) sendReport(stream grpc.ServerStreamingServer[agentpb.Event]) error {
	report, err := s.a.report(stream.Context())
	if err != nil {
		return err
	}
	return stream.Send(&agentpb.Event{Event: &agentpb.Event_Report{Report: report}})
}

func (s *server) sendChanges(stream grpc.ServerStreamingServer[agentpb.Event], w *watcher) error {
	full, beat, events := w.take()
	if full {
		if err := s.sendReport(stream); err != nil {
			return err
		}
	}
	if beat {
		if err := stream.Send(s.a.heartbeat()); err != nil {
			return err
		}
	}
	for _, e := range events {
		if err := stream.Send(e); err != nil {
			return err
		}
	}
	return nil
}

// report returns everything that a manager needs to know about the node.
func (a *Agent) report(ctx context.Context) (*agentpb.Report, error) {
	r := &agentpb.Report{
		Name: a.cfg.Name, Incarnation: a.incarnation, Version: a.cfg.Version, Architecture: architecture,
		ResourceGroup: a.cfg.ResourceGroup, Probes: a.probes, Address: a.cfg.Address,
		Volumes:    a.volumes.Names(),
		Conditions: a.monitor.List(),
	}
	overlay, probe := a.overlay()
	if r.Overlay = overlay; probe != nil {
		r.Probes = append(slices.Clip(r.Probes), probe)
	}
	a.devices.Describe(r)
	for _, k := range a.kernels.List() {
		r.Kernels = append(r.Kernels, k.State())
	}
	images, err := a.runtime.Images(ctx)
	if err != nil {
		return nil, err
	}
	for _, img := range images {
		r.Images = append(r.Images, img.Reference)
	}
	return r, nil
}
