package agents

import (
	"fmt"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
)

// countersOf returns the sets of counters that an agent reports.
func countersOf(sets []*agentpb.CounterSet) (report.Counters, error) {
	out := report.Counters{}
	for _, set := range sets {
		amounts, err := counts(set.Counters)
		if err != nil {
			return nil, fmt.Errorf("counter set %s: %w", set.Name, err)
		}
		out[set.Name] = amounts
	}
	return out, nil
}

// consumesOf returns the amounts of counters that a device uses.
func consumesOf(d *agentpb.Device) ([]report.CounterUse, error) {
	out := []report.CounterUse{}
	for _, use := range d.Consumes {
		amounts, err := counts(use.Amounts)
		if err != nil {
			return nil, fmt.Errorf("device %s, counter set %s: %w", d.Id, use.Set, err)
		}
		out = append(out, report.CounterUse{Set: use.Set, Amounts: amounts})
	}
	return out, nil
}

func counts(texts map[string]string) (map[string]int64, error) {
	out := map[string]int64{}
	for name, text := range texts {
		n, err := resource.Parse("count", text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", name, err, errdefs.ErrInvalidArgument)
		}
		out[name] = n
	}
	return out, nil
}

func linksOf(links []*agentpb.Link) []report.Link {
	out := []report.Link{}
	for _, l := range links {
		out = append(out, report.Link{
			A: l.A, B: l.B, Type: linkType(l.Type), Distance: int(l.Distance), GBps: l.Gbps, P2P: l.P2P,
		})
	}
	return out
}

// linkType returns the type of a link; one that only a newer agent knows is unknown.
func linkType(t agentpb.Link_Type) string {
	if _, known := agentpb.Link_Type_name[int32(t)]; !known {
		t = agentpb.Link_UNKNOWN
	}
	return strings.ToLower(t.String())
}
