package integration

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// What a revision says cannot reach another host, name another session or become a command.
func TestHostileRevisions(t *testing.T) {
	s := newSite(t)
	for what, c := range map[string]struct {
		field string
		more  managertest.Vars
	}{
		"a host in the path of the check":    {"revision.health", managertest.Vars{"health": "//169.254.169.254/latest"}},
		"an address as the path":             {"revision.health", managertest.Vars{"health": "http://169.254.169.254/"}},
		"a line break in the path":           {"revision.metrics", managertest.Vars{"metrics": "/metrics\r\nHost: evil"}},
		"a path above the folder":            {"revision.subpath", managertest.Vars{"model": "m", "subpath": "../other"}},
		"a folder of another user":           {"revision.model", managertest.Vars{"model": "secrets"}},
		"an argument as a value of options":  {"revision.options.toolCallParser", managertest.Vars{"variant": "vllm", "options": managertest.Vars{"toolCallParser": "--api-key"}}},
		"a command beside that of a variant": {"revision.request.command", managertest.Vars{"variant": "vllm"}},
		"a name for the session":             {"revision.request.name", managertest.Vars{"request": clustertest.SessionInput(managertest.Vars{"name": "x"}, "sleep", "600")}},
		"another project":                    {"revision.request.project", managertest.Vars{"request": clustertest.SessionInput(managertest.Vars{"project": s.B.Project.ID}, "sleep", "600")}},
		"a definition with an alias bomb": {"revision.definition", managertest.Vars{"request": clustertest.SessionInput(nil),
			"definition": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nmodels: [*c]"}},
	} {
		in := managertest.Vars{"name": "m", "revision": revision(healthy, c.more)}
		errs := s.Member.Ask(t, `mutation($in: CreateDeploymentInput!) { createDeployment(input: $in) { deployment { id } } }`, managertest.Vars{"in": in}, nil)
		if len(errs) != 1 || !strings.HasPrefix(fieldOf(errs), c.field) {
			t.Errorf("%s: %s (field %q), want field %s", what, errs, fieldOf(errs), c.field)
		}
	}
	_, errs := clustertest.TryCreate(t, s.Member, clustertest.SessionInput(managertest.Vars{"type": "INFERENCE"}, "sleep", "600"))
	if errs.Code() != "INVALID_ARGUMENT" || fieldOf(errs) != "type" {
		t.Errorf("a session of the type of replicas: %s", errs)
	}
	if n := s.Client.Deployment.Query().CountX(s.System(t)) + s.Client.Session.Query().Where(session.TypeEQ(session.TypeInference)).CountX(s.System(t)); n != 0 {
		t.Errorf("%d deployments and sessions were stored", n)
	}
}

func fieldOf(errs managertest.Errors) string {
	if len(errs) == 0 {
		return ""
	}
	return errs[0].Extensions.Field
}

// A revision runs with the rights of the owner, so an administrator cannot add one. Without rights, the owner's replicas do not start.
func TestRightsOfTheOwner(t *testing.T) {
	s := newSite(t)
	id := s.deploy(t, "m", managertest.Vars{"shared": true})
	s.awaitReady(t, id, 1)
	add := `mutation($in: AddDeploymentRevisionInput!) { addDeploymentRevision(input: $in) { deployment { id } } }`
	for who, as := range map[string]*managertest.Client{"superadmin": s.Manager.As(t, s.Superadmin), "project admin": s.Manager.As(t, s.A.Lead)} {
		if errs := as.Ask(t, add, managertest.Vars{"in": managertest.Vars{"deployment": id, "revision": revision(healthy, nil)}}, nil); errs.Code() != "PERMISSION_DENIED" {
			t.Errorf("a %s adds a revision: %s", who, errs)
		}
	}
	s.Client.User.UpdateOne(s.A.Member).SetStatus("inactive").ExecX(s.System(t))
	s.Client.DeploymentReplica.Update().SetPhase(deploymentreplica.PhaseEnding).ExecX(s.System(t))
	managertest.Eventually(t, "the reason is shown", func() bool {
		return strings.Contains(s.Client.Deployment.GetX(s.System(t), id).Message, "the owner of the deployment is not active")
	})
}

// Only the owner records the requests to a deployment, reads the records and deletes them.
func TestWhoRecords(t *testing.T) {
	s := newSite(t)
	id := s.deploy(t, "m", managertest.Vars{"shared": true})
	update := `mutation($in: UpdateDeploymentInput!) { updateDeployment(input: $in) { deployment { recorded } } }`
	remove := `mutation($in: DeletePromptRecordsInput!) { deletePromptRecords(input: $in) { deleted } }`
	on, off := managertest.Vars{"in": managertest.Vars{"id": id, "recorded": true}}, managertest.Vars{"in": managertest.Vars{"id": id, "recorded": false}}
	read := func(as *managertest.Client) int {
		var got struct {
			Node struct{ PromptRecords struct{ TotalCount int } }
		}
		as.Must(t, `query($id: ID!) { node(id: $id) { ... on Deployment { promptRecords { totalCount } } } }`, managertest.Vars{"id": id}, &got)
		return got.Node.PromptRecords.TotalCount
	}
	s.Member.Must(t, update, on, nil)
	s.Client.PromptRecord.Create().SetDeploymentID(id).SetPath("/v1/completions").SetStatus(200).SetRequest("{}").SetAnswer("{}").
		SetTruncated(false).SetPromptTokens(1).SetCompletionTokens(1).SetFirstByteMs(1).SetDurationMs(1).ExecX(s.System(t))
	if n := read(s.Member); n != 1 {
		t.Errorf("the owner reads %d records", n)
	}
	for who, as := range map[string]*managertest.Client{"superadmin": s.Manager.As(t, s.Superadmin), "project admin": s.Manager.As(t, s.A.Lead)} {
		if errs := as.Ask(t, update, on, nil); errs.Code() != "PERMISSION_DENIED" {
			t.Errorf("a %s turns records on: %s", who, errs)
		}
		if errs := as.Ask(t, remove, managertest.Vars{"in": managertest.Vars{"deployment": id}}, nil); errs.Code() != "PERMISSION_DENIED" {
			t.Errorf("a %s deletes records: %s", who, errs)
		}
		if n := read(as); n != 0 {
			t.Errorf("a %s reads %d records", who, n)
		}
	}
	s.Manager.As(t, s.A.Lead).Must(t, update, off, nil)
	var gone struct{ DeletePromptRecords struct{ Deleted int } }
	s.Member.Must(t, remove, managertest.Vars{"in": managertest.Vars{"deployment": id}}, &gone)
	if gone.DeletePromptRecords.Deleted != 1 || read(s.Member) != 0 {
		t.Errorf("%d records were deleted", gone.DeletePromptRecords.Deleted)
	}
}

// Policies limit the deployments of a user, a project and a domain; those that have ended do not count.
func TestLimitOfDeployments(t *testing.T) {
	s := newSite(t)
	create := func(name string) managertest.Errors {
		in := managertest.Vars{"name": name, "revision": revision(healthy, nil), "replicas": 0, "scaling": managertest.Vars{"min": 0}}
		return s.Member.Ask(t, `mutation($in: CreateDeploymentInput!) { createDeployment(input: $in) { deployment { id } } }`, managertest.Vars{"in": in}, nil)
	}
	policy := s.CreatePolicy(t, s.A.Member, "few", managertest.Vars{"maxDeployments": 1})
	if errs := create("a"); len(errs) > 0 {
		t.Fatal(errs)
	}
	errs := create("b")
	if errs.Code() != "RESOURCE_EXHAUSTED" || !strings.Contains(errs.String(), "few") || !strings.Contains(errs.String(), "deployments") {
		t.Errorf("the second deployment: %s", errs)
	}
	var got struct {
		EffectiveLimits []struct{ What, Used, Limit, Policy string }
	}
	s.Member.Must(t, `{ effectiveLimits { what used limit policy } }`, nil, &got)
	if len(got.EffectiveLimits) != 1 || got.EffectiveLimits[0].What != "deployments" || got.EffectiveLimits[0].Used != "1" || got.EffectiveLimits[0].Limit != "1" {
		t.Errorf("the limits are %+v", got)
	}
	s.UpdatePolicy(t, policy, managertest.Vars{"maxDeployments": 2})
	var made atomic.Int32
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			if errs := create(fmt.Sprint("b", i)); len(errs) == 0 {
				made.Add(1)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("%d of 4 requests at the same time took the last place", made.Load())
	}
	s.Client.Deployment.Update().SetEndedAt(time.Now()).SetStatus("ended").ExecX(s.System(t))
	if errs := create("c"); len(errs) > 0 {
		t.Errorf("ended deployments count: %s", errs)
	}
}
