package main

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/containerd/ttrpc"
)

const (
	// restAfter is how long the shim must be idle before it returns memory: a start takes a tenth
	// of a second, and pauses of people who type into a terminal are longer.
	restAfter = 5 * time.Second
	// percent is Go's own setting of garbage collection.
	percent = 100
	// most is the memory above which garbage is collected even while the shim is idle. A shim in
	// use has 3 MiB.
	most = 32 << 20
)

// memory returns free memory to the system once when the shim becomes idle, and turns garbage
// collection off until the next call. Go collects at least every two minutes, which costs the same
// in a process without garbage.
type memory struct {
	mu      sync.Mutex
	timer   *time.Timer
	resting bool
	collect func(percent int) // a negative percentage also returns memory to the system
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

// used records that the shim is in use.
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

// intercept records the beginning and the end of each call, and not the time between: the call that
// waits for the end of the container lasts as long as the container.
func (m *memory) intercept(ctx context.Context, unmarshal ttrpc.Unmarshaler, _ *ttrpc.UnaryServerInfo, method ttrpc.Method) (any, error) {
	m.used()
	defer m.used()
	return method(ctx, unmarshal)
}
