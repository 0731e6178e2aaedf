package containerd

import (
	"sync"

	"golang.org/x/sys/unix"
)

// openFiles returns the open-file limits that containers may inherit. Without
// CAP_SYS_RESOURCE no one can raise them above what containerd has; the agent
// has the same.
var openFiles = sync.OnceValues(func() (soft, hard uint64) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 1024, 1024
	}
	return l.Max, l.Max
})
