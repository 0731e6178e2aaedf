package device

import (
	"strings"

	ocispecs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// resources maps the names of rlimits to their numbers.
var resources = map[string]int{"memlock": unix.RLIMIT_MEMLOCK, "nofile": unix.RLIMIT_NOFILE, "stack": unix.RLIMIT_STACK, "nproc": unix.RLIMIT_NPROC}

// limit converts a limit. An agent that cannot raise limits, such as one in a container, lowers it
// to its own: otherwise the container would not start.
func limit(l *acceleratorpb.Rlimit, mayRaise bool) ocispecs.POSIXRlimit {
	out := ocispecs.POSIXRlimit{Type: "RLIMIT_" + strings.ToUpper(l.Name), Soft: l.Soft, Hard: l.Hard}
	resource, known := resources[strings.ToLower(l.Name)]
	var own unix.Rlimit
	if mayRaise || !known || unix.Getrlimit(resource, &own) != nil {
		return out
	}
	out.Hard = min(out.Hard, own.Max)
	out.Soft = min(out.Soft, out.Hard)
	return out
}

// mayRaiseLimits reports whether this process has CAP_SYS_RESOURCE.
func mayRaiseLimits() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	return unix.Capget(&header, &sets[0]) == nil && sets[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
