package stories

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// A user installs a tool by hand, saves the session for a project, and a colleague starts from the
// image on another agent. Saving it again sends nothing.
func TestCommit(t *testing.T) {
	operator := operator(t)
	group := group(t, operator, "commits", nodes())
	u, colleague, stranger := platform.User(t), platform.User(t), platform.User(t)
	t.Cleanup(func() { endAll(t, u); endAll(t, colleague) })
	if _, err := platform.Admin(t).AddMembership(t.Context(), u.Project, colleague.ID, false); err != nil {
		t.Fatal(err)
	}
	s := u.Run(asks(group))
	u.Until(s.ID, "RUNNING")
	if out, code := u.Exec(s.ID, "mkdir -p /opt/tools && echo 'echo made by hand' > /opt/tools/tool && chmod +x /opt/tools/tool && echo secret > /opt/tools/.netrc && echo scratch > /tmp/x"); code != 0 {
		t.Fatalf("install a tool: %s, %d", out, code)
	}
	text := u.Shell().Must("session", "commit", s.ID, "tools:1", "--project", u.Project, "--description", "with a tool")
	mustContain(t, text, "/users/", "/tools:1")
	reference := strings.TrimSpace(text)
	text = u.Shell().Must("image", "ls", "--mine")
	mustContain(t, text, "/tools:1", "with a tool")
	t.Logf("berth image ls --mine:\n%s", text)
	before := image(t, u, reference)
	u.Shell().Must("session", "commit", s.ID, "tools:1")
	if after := image(t, u, reference); after.Digest != before.Digest {
		t.Errorf("a commit without changes: %s, before %s", after.Digest, before.Digest)
	}

	other := map[string]string{"node-1": "node-2", "node-2": "node-3", "node-3": "node-1"}[on(t, u, s.ID)]
	in := asks(group)
	in.Image, in.Project, in.Agents = reference, u.Project, []string{agentID(t, operator, other)}
	again := colleague.Run(in)
	colleague.Until(again.ID, "RUNNING")
	if at := on(t, colleague, again.ID); at != other {
		t.Errorf("the colleague's session is on %s, want %s", at, other)
	}
	out, code := colleague.Exec(again.ID, "/bin/sh /opt/tools/tool; ls -A /opt/tools /tmp")
	if code != 0 || !strings.Contains(out, "made by hand") || strings.Contains(out, ".netrc") || strings.Contains(out, "x\n") {
		t.Errorf("the colleague sees %q, %d", out, code)
	}
	if r := stranger.Shell().Run("run", "--image", reference, "--", "true"); r.Code == 0 {
		t.Errorf("a stranger starts the image: %+v", r)
	}
}

// image returns the image with a reference.
func image(t *testing.T, u *cluster.User, reference string) *client.Image {
	t.Helper()
	i, err := u.ImageByName(t.Context(), reference)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// agentID returns the id of an agent.
func agentID(t *testing.T, operator *cluster.Shell, name string) string {
	t.Helper()
	var a struct{ ID string }
	if err := json.Unmarshal([]byte(operator.Must("agent", "show", name, "-o", "json")), &a); err != nil {
		t.Fatal(err)
	}
	return a.ID
}
