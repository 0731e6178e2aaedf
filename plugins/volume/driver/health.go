package driver

import pb "github.com/berthhq/berth/plugins/volume/volumepb"

// Worse adds a reason to a report and makes its state at least as bad as state.
func Worse(h *pb.HealthReport, state pb.HealthReport_State, reason string) {
	h.State = max(h.State, state)
	if h.Reason != "" {
		reason = h.Reason + "; " + reason
	}
	h.Reason = reason
}
