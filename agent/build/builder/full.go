package builder

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// fullEvery is the time between two looks at the disk. What a failed step has written is removed soon after.
	fullEvery = 100 * time.Millisecond
	// almostNothing is the free space in bytes of a full disk.
	almostNothing = 2 << 20
)

// space notes whether the disk of the project was full during a build.
type space struct {
	root string
	full atomic.Bool
}

// watch looks at the disk until ctx ends.
func (s *space) watch(ctx context.Context) {
	tick := time.NewTicker(fullEvery)
	defer tick.Stop()
	for !s.full.Load() {
		if free, _, err := diskOf(s.root); err == nil && free < almostNothing {
			s.full.Store(true)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// explain adds the cause to the message of a failed build.
func (s *space) explain(message string) string {
	if !s.full.Load() {
		return message
	}
	_, total, err := diskOf(s.root)
	if err != nil {
		return message
	}
	return fmt.Sprintf("%s (the disk of the project's builds on this machine, which has %d bytes, was full)", message, total)
}

// diskOf returns the free bytes and all bytes of the disk of a directory.
func diskOf(dir string) (free, total int64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Blocks) * st.Bsize, nil
}
