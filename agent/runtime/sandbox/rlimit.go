package sandbox

import (
	"sync"

	"golang.org/x/sys/unix"
)

// openFiles returns the open-file limits that containers can inherit. Without CAP_SYS_RESOURCE they
// cannot exceed those of containerd, which are the agent's.
var openFiles = sync.OnceValues(func() (soft, hard uint64) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 1024, 1024
	}
	return l.Max, l.Max
})
