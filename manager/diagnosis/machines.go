package diagnosis

import (
	"context"
	"fmt"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/report"
)

// list returns the agents that were not removed.
func (s *Service) list(ctx context.Context) ([]*ent.Agent, error) {
	list, err := s.Client.Agent.Query().Where(agent.StatusNEQ(agent.StatusTerminated)).Order(agent.ByName()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	return list, nil
}

// ofAgents returns a check of the agents, which list reads once for several checks.
func ofAgents(list func() ([]*ent.Agent, error), judge func([]*ent.Agent) ([]Finding, error)) func(context.Context) ([]Finding, error) {
	return func(context.Context) ([]Finding, error) {
		all, err := list()
		if err != nil {
			return nil, err
		}
		return judge(all)
	}
}

func about(a *ent.Agent, severity Severity, text, consequence, fix string) Finding {
	return Finding{Severity: severity, Subject: a.Name, SubjectID: &a.ID, Text: text, Consequence: consequence, Fix: fix}
}

// agents checks that the agents are alive and have the version of this manager.
func (s *Service) agents(list []*ent.Agent) (found []Finding, err error) {
	for _, a := range list {
		switch {
		case a.Status == agent.StatusLost:
			found = append(found, about(a, Fault, fmt.Sprintf("agent %s is lost: last seen %s ago", a.Name, clock.Now().Sub(a.LastSeenAt).Round(time.Second)),
				"its sessions cannot be reached, and are restarted elsewhere after a while if they may be", "look at the machine, its network and the log of berthd agent; expel it if it is gone"))
		case !a.Schedulable:
			found = append(found, about(a, Notice, fmt.Sprintf("agent %s is cordoned: %s", a.Name, orUnknown(a.CordonReason)), "no new session is placed on it", "uncordon it when the work is done"))
		case a.Version != s.Version:
			found = append(found, about(a, Notice, fmt.Sprintf("agent %s has version %q, this manager %q", a.Name, a.Version, s.Version), "new functions can be missing on it", "upgrade it; its sessions continue"))
		}
	}
	if len(list) == 0 {
		found = append(found, Finding{Severity: Warning, Text: "there is no agent", Consequence: "no session can start", Fix: "join a machine: berth agent join prints the command"})
	}
	return orFine(found, "%d alive", len(list))
}

// conditions checks what agents report about their machines, such as a full disk or a wrong clock.
func (s *Service) conditions(list []*ent.Agent) (found []Finding, err error) {
	fixes := map[string]string{
		"disk_pressure": "free space on the disk of its containers, or add some", "inode_pressure": "delete small files on the disk of its containers",
		"memory_pressure": "end what uses memory beside sessions, or reserve more", "runtime_unavailable": "look at containerd in the log of the agent",
		"clock_skew": "synchronize the clock of the machine with NTP",
	}
	for _, a := range list {
		for _, c := range a.Conditions {
			if c.Status {
				found = append(found, about(a, Warning, fmt.Sprintf("agent %s: %s", a.Name, c), "no new session is placed on it", fixes[c.Type]))
			}
		}
	}
	return orFine(found, "none holds on %d agents", len(list))
}

// plugins checks that the plugins of accelerators run and that their requirements are met.
func (s *Service) plugins(list []*ent.Agent) (found []Finding, err error) {
	n := 0
	for _, a := range list {
		for _, p := range a.Plugins {
			n++
			if p.State != "running" {
				found = append(found, about(a, Fault, fmt.Sprintf("plugin %s of agent %s is %s: %s", p.Name, a.Name, p.State, orUnknown(p.Message)),
					"its devices get no new session", "look at the log of the agent; berth agent restart-plugin starts it again"))
			}
			for _, c := range p.Checks {
				if c.Level != report.CheckOK {
					severity := Warning
					if c.Level == report.CheckError {
						severity = Fault
					}
					found = append(found, about(a, severity, fmt.Sprintf("plugin %s of agent %s: %s", p.Name, a.Name, c.Text), "devices can be missing or not be shared", "see berth agent show "+a.Name))
				}
			}
		}
	}
	return orFine(found, "%d run", n)
}

// volumes checks the health and the free space of volumes.
func (s *Service) volumes(ctx context.Context) (found []Finding, err error) {
	list, err := s.Client.Volume.Query().Order(volume.ByName()).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read volumes: %w", err)
	}
	for _, v := range list {
		if v.Health != "healthy" {
			found = append(found, Finding{Severity: Fault, Subject: v.Name, SubjectID: &v.ID, Text: fmt.Sprintf("volume %s is %s: %s", v.Name, v.Health, orUnknown(v.HealthMessage)),
				Consequence: "folders on it cannot be created, and files cannot be opened", Fix: "look at the storage and at the log of the storage proxy"})
		}
		if !v.Elastic && v.TotalBytes > 0 && v.UsedBytes > v.TotalBytes*9/10 {
			found = append(found, Finding{Severity: Warning, Subject: v.Name, SubjectID: &v.ID,
				Text:        fmt.Sprintf("volume %s is %d %% full: %s of %s", v.Name, v.UsedBytes*100/v.TotalBytes, mebibytes(v.UsedBytes), mebibytes(v.TotalBytes)),
				Consequence: "writes of all users on it fail when it is full", Fix: "add storage, empty the trash, or lower limits"})
		}
	}
	return orFine(found, "%d healthy", len(list))
}

func orUnknown(reason string) string {
	if reason == "" {
		return "no reason is known"
	}
	return reason
}
