package agent

import (
	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/lazy"
)

// lazyCommand returns the command of package lazy, or nil if this machine or its configuration excludes
// starts before the image is complete. Images are pulled as usual then.
func (a *Agent) lazyCommand() []string {
	p := &agentpb.Probe{Name: "lazy-start", Ok: true, Detail: "sessions can start before their image is complete"}
	if a.cfg.LazyCommand == nil {
		p.Ok, p.Detail = false, "it is switched off"
	} else if err := lazy.Check(); err != nil {
		p.Ok, p.Detail = false, err.Error()
	}
	a.probes = append(a.probes, p)
	if !p.Ok {
		return nil
	}
	return a.cfg.LazyCommand
}
