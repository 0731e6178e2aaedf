package e2e

import (
	"strings"
	"testing"
)

// A session has three containers. Each one has the variables for its position and reaches the
// others by name, and all end together.
func TestSeveralContainers(t *testing.T) {
	u := platform.User(t)
	berth := u.Shell()
	berth.Must("session", "create", "minimal:1", "--name", "trio", "--kernels", "3", "--cpu", "0.1", "--mem", "32m", "-w")
	out := berth.Must("session", "exec", "trio", "--", "sh", "-c", "echo $BERTH_CLUSTER_IDX of $BERTH_CLUSTER_SIZE; grep -c -e main -e sub1 -e sub2 /etc/hosts")
	if strings.TrimSpace(out) != "0 of 3\n3" {
		t.Errorf("the first container prints %q", out)
	}
	shown := berth.Must("session", "show", "trio")
	if n := strings.Count(shown, "sub"); n != 2 {
		t.Errorf("%d of the other containers shown:\n%s", n, shown)
	}
	berth.Must("session", "rm", "trio")
	if r := berth.Run("run", "minimal:1", "--kernels", "30", "--", "true"); r.Code == 0 || !strings.Contains(r.Stderr, "kernels") || !strings.Contains(r.Stderr, "29") {
		t.Errorf("thirty containers: %+v", r)
	}
}
