package images

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/e2e/cluster"
)

// An administrator pulls an image on the agents of a group, keeps another one there, and sees where they are. A session
// starts without a pull then. An agent that comes into the group pulls what the group keeps.
func TestImagesAreThereBeforeSessions(t *testing.T) {
	offer(t, "pre", 1, 4<<20)
	offer(t, "kept", 1, 4<<20)
	u := platform.UserAs(t, "SUPERADMIN")
	t.Cleanup(func() { end(t, u) })
	berth := u.Shell()
	berth.Must("admin", "group", "create", "prepulled", "--public")
	berth.Must("agent", "move", "--group", "prepulled", "node-1", "node-2")
	t.Cleanup(func() { berth.Must("agent", "move", "--force", "--group", "default", "node-1", "node-2", "node-3") })

	if out := berth.Must("image", "prepull", "pre:1", "--group", "prepulled"); !strings.Contains(out, "Pull image pre:1") {
		t.Errorf("berth image prepull:\n%s", out)
	}
	has := func(image, agent string) bool {
		for line := range strings.Lines(berth.Must("image", "describe", image)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == agent && f[1] == "present" {
				return true
			}
		}
		return false
	}
	cluster.Eventually(t, "both agents have the image", func() bool { return has("pre:1", "node-1") && has("pre:1", "node-2") })
	if has("pre:1", "node-3") {
		t.Error("an agent outside of the group has the image")
	}
	t.Logf("berth image describe pre:1:\n%s", berth.Must("image", "describe", "pre:1"))

	berth.Must("image", "keep", "kept:1", "--group", "prepulled")
	cluster.Eventually(t, "both agents keep the image", func() bool { return has("kept:1", "node-1") && has("kept:1", "node-2") })
	berth.Must("agent", "move", "--group", "prepulled", "node-3")
	cluster.Eventually(t, "the agent that joined the group has the image", func() bool { return has("kept:1", "node-3") })
	before := platform.Egress.Sent()
	s := start(u, "kept", agentIDs(t)[0])
	u.Until(s.ID, "RUNNING")
	if sent := platform.Egress.Sent() - before; sent > 0 {
		t.Errorf("the session pulled %d bytes of an image that was there", sent)
	}
	berth.Must("image", "keep", "kept:1", "--none")
}
