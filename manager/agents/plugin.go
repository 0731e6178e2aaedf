package agents

import (
	"context"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/manager/permit"
)

// restartTimeout limits a call that the agent answers at once.
const restartTimeout = 10 * time.Second

// RestartPlugin makes an agent restart a plugin's process. It returns NotFound for a plugin
// that the agent does not have, and Unavailable for an agent that is not connected.
func (s *Service) RestartPlugin(ctx context.Context, in RestartPluginInput) (*AgentPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	a, err := s.Client.Agent.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "agent", "id")
	}
	if err := permit.To(ctx, access.Update, a); err != nil {
		return nil, err
	}
	if a.Status != agent.StatusAlive {
		return nil, problem.Precondition("agent %s is %s; its plugins cannot be restarted", a.Name, a.Status).WithField("id")
	}
	rpc, err := s.RPC(a.Name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	_, err = rpc.RestartPlugin(ctx, &agentpb.RestartPluginRequest{Name: in.Plugin, Reason: "user " + v.Email + " restarted it"})
	if err = errgrpc.ToNative(err); errdefs.IsNotFound(err) {
		return nil, problem.NotFound("plugin").WithField("plugin")
	}
	if err != nil {
		return nil, err
	}
	return &AgentPayload{Agent: a}, nil
}

func plugins(list []*agentpb.Plugin) []report.Plugin {
	out := []report.Plugin{}
	for _, p := range list {
		one := report.Plugin{
			Name: p.Name, Version: p.Version, State: strings.ToLower(p.State.String()),
			Message: p.Message, Restarts: int(p.Restarts), Checks: []report.PluginCheck{},
		}
		for _, c := range p.Checks {
			one.Checks = append(one.Checks, report.PluginCheck{Name: c.Name, Level: levels[c.Level], Text: c.Text})
		}
		out = append(out, one)
	}
	return out
}

var levels = map[agentpb.PluginCheck_Level]report.PluginCheckLevel{
	agentpb.PluginCheck_OK:      report.CheckOK,
	agentpb.PluginCheck_WARNING: report.CheckWarning,
	agentpb.PluginCheck_ERROR:   report.CheckError,
}
