package kernel

import (
	"context"
	"time"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runtime"
)

// rootEvery is the interval at which a kernel asks whether the files of its image can be read. Only kernels
// whose image was not complete ask.
const rootEvery = 2 * time.Second

// watchRoot shows in the state of the running kernel why files of its image cannot be read.
func (k *Kernel) watchRoot(ctx context.Context) {
	c, ok := k.container.(runtime.RootChecker)
	if !ok || !c.Lazy() {
		return
	}
	tick := time.NewTicker(rootEvery)
	defer tick.Stop()
	shown := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asking, cancel := context.WithTimeout(ctx, rootEvery)
		problem, lost := c.RootProblem(asking)
		cancel()
		if lost || ctx.Err() != nil || problem == shown || problem != "" && shown != "" { // only the first cause
			continue
		}
		shown = problem
		k.publish(func(s *agentpb.KernelState) {
			if s.Phase == agentpb.KernelState_RUNNING {
				s.Message = problem
			}
		})
	}
}
