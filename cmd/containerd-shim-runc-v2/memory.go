package main

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/containerd/ttrpc"
)

const (
	// restAfter is how long nothing has to happen until memory is given back: a start
	// takes a tenth of a second, and people who type into a terminal are slower.
	restAfter = 5 * time.Second
	// percent is Go's own setting of garbage collection.
	percent = 100
	// most is when garbage is collected also while the shim rests: what it then makes
	// garbage of is noticed by no one. A shim that is used has 3 MiB.
	most = 32 << 20
)

// memory gives memory back to the system once when nothing happens any more, and
// collects no garbage until something does. Go collects every two minutes, which costs
// the same in a process that has made no garbage.
type memory struct {
	mu      sync.Mutex
	timer   *time.Timer
	resting bool
	collect func(percent int) // and with 0 or less, give back
}

func newMemory() *memory {
	debug.SetMemoryLimit(most)
	m := &memory{collect: func(percent int) {
		debug.SetGCPercent(percent)
		if percent < 0 {
			debug.FreeOSMemory()
		}
	}}
	m.timer = time.AfterFunc(restAfter, m.rest)
	return m
}

// used notes that something happens.
func (m *memory) used() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timer.Reset(restAfter)
	if m.resting {
		m.resting = false
		m.collect(percent)
	}
}

func (m *memory) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resting = true
	m.collect(-1)
}

// intercept notes calls as they begin and end: that for the end of the container takes as
// long as the container lives.
func (m *memory) intercept(ctx context.Context, unmarshal ttrpc.Unmarshaler, _ *ttrpc.UnaryServerInfo, method ttrpc.Method) (any, error) {
	m.used()
	defer m.used()
	return method(ctx, unmarshal)
}
