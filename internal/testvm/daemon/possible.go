package daemon

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/containerd/errdefs"
)

// Possible returns an Unavailable error with the reason if this machine lacks something for a
// product whose client mounts by FUSE. target is the make target that installs its programs.
func Possible(product, target string, programs ...string) error {
	unavailable := func(format string, args ...any) error {
		return fmt.Errorf("no "+product+": "+format+": %w", append(args, errdefs.ErrUnavailable)...)
	}
	if os.Geteuid() != 0 {
		return unavailable("it requires root, to mount for other users")
	}
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			return unavailable("%s is not installed (make %s installs it)", name, target)
		}
	}
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return unavailable("no FUSE: %v", err)
	}
	return fuse.Close()
}
