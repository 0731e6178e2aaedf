package session

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/session/launch"
)

// The devices of a launch that was requested and never observed stay reserved until its agent has
// reported that the launch does not exist, regardless of an earlier launch.
func TestGivenUpUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Bus: event.New(nil, slog.New(slog.DiscardHandler))})
		agent := uuid.New()
		k := &ent.Kernel{ID: uuid.New(), AgentID: &agent, LaunchEpoch: 2, Edges: ent.KernelEdges{Allocations: []*ent.Allocation{
			{Slot: "cpu", Amount: 1500, Edges: ent.AllocationEdges{Device: &ent.Device{DeviceID: "cpu"}}},
		}}}
		sess := &ent.Session{ID: uuid.New(), Status: lifecycle.Creating, Edges: ent.SessionEdges{Kernels: []*ent.Kernel{k}}}
		on := step{Service: s, sess: sess}
		spared := func(want int64, when string) {
			t.Helper()
			if n := s.Orphans.On(agent)["cpu"]["cpu"]; n != want {
				t.Errorf("%s %d are spared, want %d", when, n, want)
			}
		}
		says := func(epoch int64, phase agentpb.KernelState_Phase) {
			s.report(t.Context(), agent, k.ID, &agentpb.KernelState{
				KernelId: k.ID.String(), SessionId: sess.ID.String(), LaunchEpoch: epoch, Phase: phase, Allocations: holds(k),
			})
		}
		list := func() {
			t.Helper()
			if err := s.Adopt(t.Context(), agent, nil); err != nil {
				t.Fatal(err)
			}
		}

		on.abandon(t.Context())
		spared(1500, "given up unseen,")
		says(1, agentpb.KernelState_EXITED)
		spared(1500, "when the earlier launch has ended")
		list()
		spared(1500, "by a list that may be older")
		says(2, agentpb.KernelState_RUNNING)
		spared(1500, "when it is seen")
		says(2, agentpb.KernelState_EXITED)
		spared(0, "when it has ended")

		s.observed.Drop(k.ID, agent)
		on.abandon(t.Context())
		time.Sleep(launch.ReportDelay)
		list()
		spared(0, "by a list that would contain it")

		on.abandon(t.Context())
		on.endOrphans(t.Context())
		spared(0, "when the session was not abandoned")

		sess.Status = lifecycle.Prepared
		on.abandon(t.Context())
		spared(0, "before a request was sent to the agent")
	})
}
