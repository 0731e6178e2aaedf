package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/e2e/cluster"
)

// A new lab joins the cluster: an administrator creates a domain, a project, users, a policy and a
// machine for it. One of the users asks for more than the policy allows, gets the reason, and
// succeeds after the policy has changed.
func TestNewLab(t *testing.T) {
	admin := platform.UserAs(t, "SUPERADMIN").Shell()

	// The test reads the machine's name, and moves the machine back at the end.
	var agents []struct{ Name string }
	answer(t, admin.Must("agent", "ls", "-o", "json"), &agents)
	machine := agents[0].Name
	t.Cleanup(func() { admin.Must("agent", "move", machine, "--force", "--group", "default") })

	admin.Must("admin", "domain", "create", "vision", "--description", "the vision lab")
	admin.Must("admin", "project", "create", "thesis", "--domain", "vision")

	// Three users are created from a list. One line is wrong: the preview says which one and why,
	// and creates nothing.
	list := filepath.Join(admin.Dir, "lab.csv")
	write(t, list, "email,full_name\nann@vision.example,Ann\nben@vision.example,Ben\nnobody,Cleo\n")
	preview := admin.Run("admin", "user", "import", list, "--domain", "vision", "--project", "thesis", "--passwords", "generated", "--dry-run")
	if preview.Code == 0 || !contains(preview.Stdout, "4 nobody", "email") {
		t.Errorf("the preview of a list with a wrong line: %+v", preview)
	}
	if r := admin.Run("admin", "user", "show", "ann@vision.example"); r.Code != 3 {
		t.Errorf("a preview created a user: %+v", r)
	}
	write(t, list, "email,full_name\nann@vision.example,Ann\nben@vision.example,Ben\ncleo@vision.example,Cleo\n")
	var imported struct {
		Results []struct{ Email, Password string }
	}
	answer(t, admin.Must("admin", "user", "import", list, "--domain", "vision", "--project", "thesis", "--passwords", "generated", "-o", "json"), &imported)
	made := imported.Results
	if len(made) != 3 {
		t.Fatalf("imported %+v", made)
	}
	for _, m := range made {
		platform.Secret("the first password of "+m.Email, m.Password)
	}

	// The policy "student" limits the whole project. The machine is only for the project.
	admin.Must("admin", "policy", "create", "student", "--slots", "cpu=0.5,mem=512m", "--other-slots", "zero", "--sessions", "1")
	admin.Must("admin", "policy", "attach", "student", "--project", "thesis")
	admin.Must("admin", "group", "create", "lab")
	admin.Must("agent", "move", machine, "--force", "--group", "lab")

	// Ann logs in, and replaces her initial password.
	ann := newcomer(t, admin, made[0].Email, made[0].Password, "Sunlit harbour 42")
	small := []string{"run", "-q", "minimal:1", "--cpu", "0.1", "--mem", "64m"}
	run := func(more ...string) cluster.Result { return ann.Run(append(append([]string{}, small...), more...)...) }

	// Her project has no access to this resource group, so for her it does not exist.
	if r := run("--group", "lab", "--", "true"); r.Code == 0 || !contains(r.Stderr, `resource group "lab" does not exist`) {
		t.Errorf("a group that is not hers: %+v", r)
	}
	admin.Must("admin", "group", "grant", "lab", "--project", "thesis")
	if access := admin.Must("admin", "group", "access", "lab"); !contains(access, "project thesis", "user ann@vision.example project") {
		t.Errorf("access to the group:\n%s", access)
	}
	// She names no resource group, and gets the one that has a machine.
	if r := run("--", "echo", "hello"); r.Code != 0 || r.Stdout != "hello\n" {
		t.Errorf("a session within the limits: %+v", r)
	}

	// She asks for too much of two resources. The error names both, with the used, requested and
	// allowed amounts, and the policy.
	much := []string{"run", "-q", "minimal:1", "--cpu", "1", "--mem", "1g", "--", "echo", "more"}
	r := ann.Run(much...)
	if r.Code == 0 || !contains(r.Stderr, "student", "thesis", "cpu", "0.5", "512 MiB", "1 GiB") {
		t.Errorf("a session over the limits: %+v", r)
	}
	if limits := ann.Must("limits"); !contains(limits, "cpu 0.5 0 0.5 student", "sessions 1 0 1 student") {
		t.Errorf("her limits:\n%s", limits)
	}

	// After a change of the policy, the same session runs.
	admin.Must("admin", "policy", "update", "student", "--slots", "cpu=1,mem=1g")
	if r := ann.Run(much...); r.Code != 0 || r.Stdout != "more\n" {
		t.Errorf("the same session after the change: %+v", r)
	}

	// The audit log has the changes of the administrator and the refused requests.
	trail := admin.Must("admin", "audit", "ls", "--limit", "0", "-o", "json")
	for _, action := range []string{"createDomain", "createProject", "importUsers", "createResourcePolicy", "attachResourcePolicy",
		"createResourceGroup", "updateAgent", "grantResourceGroup", "updateResourcePolicy"} {
		if !strings.Contains(trail, `"`+action+`"`) {
			t.Errorf("no %s in the trail", action)
		}
	}
	if refused := admin.Must("admin", "audit", "ls", "--refused", "--actor", "ann@vision.example"); !contains(refused, "createSession") {
		t.Errorf("Ann's rejected requests:\n%s", refused)
	}
	if mine := ann.Must("activity"); !contains(mine, "createSession") {
		t.Errorf("Ann's own activity:\n%s", mine)
	}

	// Ben leaves: they can no longer log in, and Ann gets their folders and sessions.
	ben := newcomer(t, admin, made[1].Email, made[1].Password, "Moonlit harbour 24")
	ben.Must("folder", "create", "results")
	note := filepath.Join(ben.Dir, "note.txt")
	write(t, note, "the last word")
	ben.Must("folder", "put", "results", note)
	admin.Must("admin", "user", "deactivate", "ben@vision.example")
	if r := ben.Run("folder", "ls"); r.Code != 4 {
		t.Errorf("a user who is inactive looks on: %+v", r)
	}
	if r := admin.Run("admin", "user", "purge", "ben@vision.example", "-y"); r.Code == 0 || !contains(r.Stderr, "folder") {
		t.Errorf("a purge without a decision about the folders: %+v", r)
	}
	admin.Must("admin", "user", "purge", "ben@vision.example", "--folders-to", "ann@vision.example", "-y")
	if r := admin.Run("admin", "user", "show", "ben@vision.example"); r.Code != 3 {
		t.Errorf("a user who was purged: %+v", r)
	}
	if got := ann.Must("folder", "get", "results:note.txt", "-"); got != "the last word" {
		t.Errorf("Ben's folders at Ann: %q", got)
	}
}

// newcomer logs in with a password that must be changed, and returns the shell of the new user.
func newcomer(t *testing.T, near *cluster.Shell, email, first, own string) *cluster.Shell {
	t.Helper()
	platform.Secret("the password of "+email, own)
	s := near.Beside("BERTH_PASSWORD="+first, "BERTH_NEW_PASSWORD="+own)
	s.Must("login", platform.URL, "--email", email)
	s.Forget("BERTH_PASSWORD", "BERTH_NEW_PASSWORD")
	return s
}

// contains reports whether the text contains the words of each phrase in this order, however far apart
// the columns are.
func contains(text string, phrases ...string) bool {
	text = strings.Join(strings.Fields(text), " ")
	for _, p := range phrases {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

func answer(t *testing.T, text string, out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), out); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
