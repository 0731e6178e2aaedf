// Package berth holds the rules of the repository as tests. It has no code.
package berth

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const module = "github.com/berthhq/berth/"

// rule lists the packages of this module that the packages below from can import. The first rule
// with a matching from decides.
type rule struct {
	from  string
	allow []string // prefixes; nothing of ours when empty
	why   string
}

var rules = []rule{
	{"internal/resource", nil, "slot arithmetic is a leaf"},
	{"internal/access", nil, "permissions are a leaf"},
	{"internal/viewer", []string{"internal/access"}, "the viewer is a leaf, except for permissions"},
	{"internal/id", nil, "ids are a leaf"},
	{"internal/conversation", nil, "parts of chats are plain data"},
	{"internal/lifecycle", nil, "the state machine is a leaf"},
	{"internal/appstate", nil, "messages are a leaf"},
	{"internal/containerfile", nil, "messages are a leaf"},
	{"internal/portstream", nil, "a connection does not depend on components"},
	{"internal/noticekind", nil, "kinds and texts of notices are plain data"},
	{"internal/report", []string{"internal/resource"}, "reports know amounts alone"},
	{"internal/fixture", []string{"internal/fixture", "internal/shell", "plugins/accelerator/acceleratorpb"}, "a simulated machine depends only on the roots of a plugin"},
	{"internal/conformance", []string{"plugins/suite"}, "the commands of suites work with any suite"},
	{"internal/simulator/simulatortest", []string{"internal/simulator", "internal/testvm", "plugins/volume"}, "the harness drives a plugin against a simulator"},
	{"internal/simulator", []string{"internal/simulator", "internal/testvm", "plugins/volume/btrfs/qgroup", "plugins/volume/reflink"}, "a simulated product does not depend on plugins"},
	{"internal/", []string{"internal/"}, "packages for every component do not depend on components"},
	{"plugins/accelerator/acceleratorpb", nil, "a contract knows nobody"},
	{"plugins/volume/volumepb", nil, "a contract knows nobody"},
	{"plugins/suite", []string{"plugins/process"}, "the common part of suites does not depend on contracts"},
	{"plugins/accelerator/acceleratortest", []string{"plugins/accelerator", "plugins/suite", "internal/fixture"}, "the suite runs plugins on simulated machines"},
	{"plugins/process", nil, "to start a program is a leaf"},
	{"plugins/accelerator", []string{"plugins/accelerator", "plugins/process"}, "a vendor's plugin imports only what an outsider can"},
	{"plugins/volume/volumetest", []string{"plugins/volume", "plugins/suite"}, "a suite depends only on its contract"},
	{"plugins/volume", []string{"plugins/volume", "plugins/process"}, "a vendor's plugin imports only what an outsider can"},
	{"agent/agentpb", nil, "a contract knows nobody"},
	{"storage/storagepb", nil, "a contract knows nobody"},
	{"agent/build/builder", []string{"agent/build", "agent/runtime/push", "agent/runtime/sandbox", "agent/trust", "internal/recipe", "internal/registry/remote"}, "a builder knows only its request"},
	{"agent", []string{"agent", "plugins/accelerator", "plugins/volume/xfs/prjquota", "internal/"}, "an agent runs where there is no database"},
	{"storage", []string{"storage", "plugins/volume", "internal/"}, "a storage proxy runs where there is no database"},
	{"ent", []string{"ent", "internal/resource", "internal/viewer", "internal/access", "internal/id", "internal/lifecycle", "internal/report", "internal/appstate", "internal/conversation", "internal/noticekind"}, "the data layer does not depend on services"},
	{"manager/scheduler/plan/openb", []string{"manager/scheduler/plan", "internal/resource"}, "the trace is given to the planner alone"},
	{"manager/scheduler/plan", []string{"internal/resource", "internal/report"}, "the planner is pure"},
	{"manager/permit", downhill("manager/permit"), "services import siblings only downhill"},
	{"manager/store", []string{"ent", "internal/problem", "internal/viewer"}, "the helpers for writes do not depend on services"},
	{"manager/slot", downhill("manager/slot"), "services import siblings only downhill"},
	{"manager/leader", downhill("manager/leader"), "services import siblings only downhill"},
	{"manager/task", downhill("manager/task", "manager/leader"), "services import siblings only downhill"},
	{"manager/identity", downhill("manager/identity", "manager/task", "manager/leader"), "services import siblings only downhill"},
	{"manager/group", downhill("manager/group"), "services import siblings only downhill"},
	{"manager/role", downhill("manager/role"), "services import siblings only downhill"},
	{"manager/policy", downhill("manager/policy"), "services import siblings only downhill"},
	{"manager/image", downhill("manager/image", "manager/task"), "services import siblings only downhill"},
	{"manager/price", downhill("manager/price"), "services import siblings only downhill"},
	{"manager/budget", downhill("manager/budget", "manager/price", "manager/stats", "manager/policy"), "services import siblings only downhill"},
	{"manager/stats", downhill("manager/stats", "manager/price"), "services import siblings only downhill"},
	{"manager/devicelogin", downhill("manager/devicelogin", "manager/audit", "manager/auth", "manager/identity"), "services import siblings only downhill"},
	{"manager/remotewrite", downhill("manager/remotewrite"), "services import siblings only downhill"},
	{"manager/diagnosis", downhill("manager/diagnosis", "manager/agents", "manager/app", "manager/leader", "manager/recovery"), "services import siblings only downhill"},
	{"manager/targets", downhill("manager/targets"), "services import siblings only downhill"},
	{"manager/series", downhill("manager/series", "manager/deployment/load"), "services import siblings only downhill"},
	{"manager/starts", downhill("manager/starts", "manager/session/move"), "services import siblings only downhill"},
	{"manager/sizing", downhill("manager/sizing", "manager/series"), "services import siblings only downhill"},
	{"manager/capacity", downhill("manager/capacity", "manager/stats", "manager/leader"), "services import siblings only downhill"},
	{"manager/waste", downhill("manager/waste", "manager/stats", "manager/sizing"), "services import siblings only downhill"},
	{"manager/enrolment", downhill("manager/enrolment"), "services import siblings only downhill"},
	{"manager/agents", downhill("manager/agents", "manager/stats", "manager/enrolment"), "services import siblings only downhill"},
	{"manager/audit", downhill("manager/audit"), "services import siblings only downhill"},
	{"manager/auth", downhill("manager/auth", "manager/identity"), "services import siblings only downhill"},
	{"manager/signup", downhill("manager/signup", "manager/auth", "manager/identity"), "services import siblings only downhill"},
	{"manager/oidc", downhill("manager/oidc", "manager/signup", "manager/auth", "manager/identity"), "services import siblings only downhill"},
	{"manager/rekey", []string{"internal/seal", "internal/clock"}, "keys are changed where no service runs"},
	{"manager/vfolder", downhill("manager/vfolder", "manager/policy", "manager/task", "manager/enrolment"), "services import siblings only downhill"},
	{"manager/objectstorage", downhill("manager/objectstorage", "manager/vfolder", "manager/task"), "services import siblings only downhill"},
	{"manager/distribution", downhill("manager/distribution"), "services import siblings only downhill"},
	{"manager/overlay", downhill(), "services import siblings only downhill"},
	{"manager/notice", downhill("manager/notice", "manager/leader"), "services import siblings only downhill"},
	{"manager/session", downhill("manager/session", "manager/leader", "manager/policy", "manager/budget", "manager/overlay", "manager/vfolder"), "services import siblings only downhill"},
	{"manager/template", downhill("manager/template", "manager/session"), "services import siblings only downhill"},
	{"manager/scheduler", downhill("manager/scheduler", "manager/leader", "manager/session", "manager/policy", "manager/stats", "manager/overlay"), "services import siblings only downhill"},
	{"manager/occupancy", downhill("manager/occupancy", "manager/leader"), "services import siblings only downhill"},
	{"manager/recovery", downhill("manager/recovery"), "services import siblings only downhill"},
	{"manager/preset", downhill("manager/preset", "manager/scheduler"), "services import siblings only downhill"},
	{"manager/idle", downhill("manager/idle", "manager/session", "manager/policy"), "services import siblings only downhill"},
	{"manager/core", downhill("manager/core", "manager/agents", "manager/distribution", "manager/enrolment", "manager/image", "manager/occupancy", "manager/overlay", "manager/policy", "manager/scheduler", "manager/session", "manager/task"), "what is wired alike in production and in the simulation"},
	{"gateway/inference", []string{"internal/"}, "the router knows models through an interface"},
	{"manager/deployment/rollout", nil, "the decision is pure"},
	{"manager/deployment/scale", nil, "the decision is pure"},
	{"manager/deployment/expression", nil, "expressions know samples alone"},
	{"manager/deployment/variant", nil, "engines are data"},
	{"manager/deployment/definition", []string{"internal/shell", "internal/yamltext"}, "a file is read where nothing else is known"},
	{"gateway/serving", []string{"gateway/inference", "manager", "ent", "internal/"}, "a gateway serves models with the services of a manager"},
	{"gateway/sshproxy/sshproxytest", []string{"gateway/sshproxy", "internal/"}, "a gateway for tests is the SSH server"},
	{"gateway/sshproxy", []string{"internal/"}, "the SSH server uses accounts and kernels through interfaces"},
	{"gateway/sshaccess", []string{"gateway/sshproxy", "manager", "ent", "internal/"}, "a gateway enters sessions with the services of a manager"},
	{"manager/app", downhill("manager/app", "manager/session", "manager/auth", "manager/policy"), "services import siblings only downhill"},
	{"manager/commit", downhill("manager/commit", "manager/image", "manager/policy", "manager/task", "manager/leader"), "services import siblings only downhill"},
	{"manager/prepull", downhill("manager/prepull", "manager/task", "manager/leader"), "services import siblings only downhill"},
	{"manager/build", downhill("manager/build", "manager/commit", "manager/session", "manager/image", "manager/task"), "services import siblings only downhill"},
	{"manager/attach", downhill("manager/attach", "manager/session", "manager/idle", "manager/audit"), "services import siblings only downhill"},
	{"manager/sessionfile", downhill("manager/sessionfile", "manager/idle", "manager/audit"), "services import siblings only downhill"},
	{"images", nil, "recipes are files"},
	{"graph", []string{"graph", "ent", "images", "manager/", "internal/", "storage/storagepb"}, "resolvers read ent and call services"},
	{"manager/clustertest", []string{"manager", "agent", "storage", "ent", "internal/"}, "the harness runs agents and storage proxies beside a manager"},
	{"manager", []string{"manager", "graph", "ent", "web", "internal/", "agent/agentpb", "storage/storagepb"}, "a manager reaches nodes only through their contracts"},
	{"gateway", []string{"gateway", "manager", "ent", "internal/", "agent/agentpb"}, "a gateway enters sessions with the services of a manager"},
	{"web", nil, "the page is files"},
	{"cmd/berthd", []string{"manager", "gateway", "agent", "storage", "internal/"}, "the server's main starts every role"},
	{"cmd/berth-builder", []string{"agent/build/builder"}, "BuildKit is in one program"},
	{"cmd/berth-runner", []string{"agent/runner", "agent/logs"}, "the runner is small"},
	{"client", []string{"internal/signature"}, "programs outside import it"},
	{"cmd/berth/cli", []string{"client", "internal/", "cmd/berth/config", "cmd/berth/output"}, "the common part of commands does not depend on commands"},
	{"cmd/berth/clitest", []string{"cmd/berth/cli"}, "the common part of tests does not depend on commands"},
	{"cmd/berth/admin", berthCommand("cmd/berth/audit", "cmd/berth/preset", "cmd/berth/statistics", "cmd/berth/usage"), "commands import each other only downhill"},
	{"cmd/berth/", berthCommand("cmd/berth/admin/people", "cmd/berth/objectstorage", "cmd/berth/preset", "cmd/berth/session", "cmd/berth/stats"), "commands import each other only downhill"},
	{"cmd/", []string{"client", "internal/", "plugins/"}, "a client's main does not depend on servers"},
	{"e2e", []string{""}, "scenarios may use anything"},
	{"tools/", []string{""}, "tools may use anything"},
}

func downhill(also ...string) []string {
	return append(also, "manager/permit", "manager/slot", "manager/store", "ent", "internal/", "agent/agentpb", "storage/storagepb")
}

// berthCommand returns the packages that the commands about one noun can import.
func berthCommand(also ...string) []string {
	return append(also, "client", "internal/", "cmd/berth/cli", "cmd/berth/config", "cmd/berth/output", "cmd/berth/admin/task")
}

type pkg struct {
	ImportPath string
	Name, Doc  string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImportsGoDownhill(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			for _, r := range rules {
				if !below(from, r.from) {
					continue
				}
				if !allowed(from, to, r) {
					t.Errorf("%s imports %s: %s", from, to, r.why)
				}
				break
			}
		}
	}
}

func allowed(from, to string, r rule) bool {
	if below(to, from) || below(from, to) && strings.HasPrefix(from, "plugins/") {
		return true
	}
	for _, a := range r.allow {
		if below(to, a) {
			return true
		}
	}
	return false
}

func below(path, root string) bool {
	return path == root || strings.HasSuffix(root, "/") && strings.HasPrefix(path, root) ||
		root == "" || strings.HasPrefix(path, root+"/")
}

// Generated packages have no doc of their own.
var generated = []string{"ent/", "graph/exec", "agent/agentpb", "storage/storagepb", "plugins/accelerator/acceleratorpb", "plugins/volume/volumepb", "internal/cluster/clusterpb"}

func TestEveryPackageHasADoc(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		skip := from == "ent" || p.ImportPath+"/" == module
		for _, g := range generated {
			skip = skip || strings.HasPrefix(from, g) && from != "ent/schema"
		}
		if !skip && p.Doc == "" {
			t.Errorf("%s has no package doc", from)
		}
	}
}

func TestNoGrabBags(t *testing.T) {
	for _, p := range packages(t) {
		switch p.Name {
		case "util", "utils", "common", "helper", "helpers", "misc":
			t.Errorf("%s: name the package after its idea", p.ImportPath)
		}
	}
}

// TestOneRowIsFirst keeps ent's Only from queries with a limit: Only sets a limit of two rows of
// its own, so a second matching row is an error. Use First.
func TestOneRowIsFirst(t *testing.T) {
	limited := regexp.MustCompile(`\.Limit\([^()]*\)[\w\s.()\[\],*"&]*?\.Only(ID)?X?\(`)
	files, err := exec.Command("git", "ls-files", "-co", "--exclude-standard", "manager", "graph", "ent/schema", "cmd", "e2e").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for path := range strings.Lines(string(files)) {
		path = strings.TrimSpace(path)
		if !strings.HasSuffix(path, ".go") || strings.HasPrefix(path, "graph/exec/") {
			continue
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if at := limited.FindIndex(text); at != nil {
			t.Errorf("%s:%d: call First: Only ignores the limit before it", path, 1+strings.Count(string(text[:at[0]]), "\n"))
		}
	}
}
