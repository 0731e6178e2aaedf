package diagnosis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/internal/clock"
)

const (
	// silent is the time without a report after which a storage proxy is away.
	silent = time.Minute
	// soonExpired is the time before the end of the CA's certificate at which it should be renewed.
	soonExpired = 90 * 24 * time.Hour
)

// leader checks that a manager leads.
func (s *Service) leader(ctx context.Context) ([]Finding, error) {
	l, err := s.Leader.Current(ctx)
	if err != nil {
		return []Finding{{Severity: Fault, Text: fmt.Sprintf("it is not known who leads: %v", err), Consequence: "no session starts, ends or moves", Fix: "check etcd"}}, nil
	}
	if l == nil {
		return []Finding{{Severity: Fault, Text: "no manager leads", Consequence: "no session starts, ends or moves; running sessions continue",
			Fix: "a new leader is elected within seconds; if not, check etcd and the logs of the managers"}}, nil
	}
	return fine("%s leads since %s", l.Address, l.Since.UTC().Format(time.DateTime)), nil
}

// managers checks that another manager can take over, and that all have one version.
func (s *Service) managers(ctx context.Context) (found []Finding, err error) {
	list, err := s.Leader.Managers(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if m.Version != s.Version {
			found = append(found, Finding{Severity: Notice, Subject: m.Address, Text: fmt.Sprintf("the manager at %s has version %q, this one %q", m.Address, m.Version, s.Version),
				Consequence: "new functions work only when all managers are upgraded", Fix: "finish the upgrade"})
		}
	}
	if len(list) == 1 {
		found = append(found, Finding{Severity: Notice, Text: "there is one manager", Consequence: "the page and the API are away while it is", Fix: "run a second one with the same secrets and stores"})
	}
	return orFine(found, "%d managers of version %s", len(list), s.Version)
}

// recovery checks whether the cluster is in recovery mode, or has stopped evictions.
func (s *Service) recovery(ctx context.Context) (found []Finding, err error) {
	state, err := s.Recovery.Current(ctx)
	if err != nil {
		return nil, err
	}
	if state != nil {
		found = append(found, Finding{Severity: Fault, Text: "the cluster is in recovery mode: " + state.Reason, Consequence: "no session starts, and nothing is ended or removed by itself",
			Fix: "read berth admin occupancy, then turn the mode off: berth admin cluster recovery off"})
	}
	stopped, err := s.Agents.Disruptions(ctx)
	if err != nil {
		return found, err
	}
	for _, d := range stopped {
		found = append(found, Finding{Severity: Fault, Subject: d.ResourceGroup, SubjectID: &d.GroupID,
			Text:        fmt.Sprintf("%d of %d agents of group %s are unreachable at the same time", d.Unreachable, d.Agents, d.ResourceGroup),
			Consequence: "a fault of the network is likely, so their sessions are neither ended nor restarted", Fix: "check the network between the managers and these machines"})
	}
	return orFine(found, "off")
}

// gateways checks that apps can be opened.
func (s *Service) gateways(context.Context) ([]Finding, error) {
	list := s.Gateways()
	if len(list) == 0 {
		return []Finding{{Severity: Warning, Text: "no gateway is alive", Consequence: "Jupyter, VS Code and other apps cannot be opened, and models cannot be called", Fix: "start berthd gateway"}}, nil
	}
	var names []string
	for _, g := range list {
		names = append(names, g.Address)
	}
	return fine("%d: %s", len(list), strings.Join(names, ", ")), nil
}

// certificates checks the certificate of the cluster's CA. Those of nodes renew themselves.
func (s *Service) certificates(context.Context) ([]Finding, error) {
	end := s.Authority()
	left := end.Sub(clock.Now())
	if left < soonExpired {
		return []Finding{{Severity: Warning, Text: fmt.Sprintf("the certificate of the cluster's CA ends at %s", end.UTC().Format(time.DateTime)),
			Consequence: "no agent and no storage proxy can connect after that", Fix: "rotate the CA before; see docs/keys.md"}}, nil
	}
	return fine("the certificate of the CA is valid until %s", end.UTC().Format(time.DateOnly)), nil
}

// proxies checks that the storage proxies report.
func (s *Service) proxies(ctx context.Context) (found []Finding, err error) {
	list, err := s.Client.StorageProxy.Query().Order(storageproxy.ByName()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read storage proxies: %w", err)
	}
	for _, p := range list {
		switch age := clock.Now().Sub(p.LastSeenAt); {
		case age > silent:
			found = append(found, Finding{Severity: Fault, Subject: p.Name, SubjectID: &p.ID, Text: fmt.Sprintf("storage proxy %s was last seen %s ago", p.Name, age.Round(time.Second)),
				Consequence: "files of its volumes cannot be opened; running sessions keep their folders", Fix: "start it, or look at its log; delete it if its machine is gone"})
		case p.Version != s.Version:
			found = append(found, Finding{Severity: Notice, Subject: p.Name, SubjectID: &p.ID, Text: fmt.Sprintf("storage proxy %s has version %q, this manager %q", p.Name, p.Version, s.Version),
				Consequence: "new functions of folders can be missing", Fix: "upgrade it"})
		}
	}
	if len(list) == 0 {
		found = append(found, Finding{Severity: Warning, Text: "there is no storage proxy", Consequence: "there are no folders", Fix: "start berthd storage with a volume"})
	}
	return orFine(found, "%d report", len(list))
}
