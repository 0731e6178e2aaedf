package serving_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/modelapi"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/deployment/key"
)

// Who can use which model: everything that a key may not use looks as if it did not exist.
func TestWhoCanUseAModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := w.model("own", nil)
	w.model("team", func(c *ent.DeploymentCreate) { c.SetShared(true) })
	w.model("open", func(c *ent.DeploymentCreate) { c.SetOpen(true) })
	w.deployIn(w.B, "theirs", func(c *ent.DeploymentCreate) { c.SetShared(true) })
	w.deployIn(w.A, "twice", func(c *ent.DeploymentCreate) { c.SetOpen(true) })
	w.deployIn(w.B, "twice", func(c *ent.DeploymentCreate) { c.SetOpen(true) })
	w.deploy("over", func(c *ent.DeploymentCreate) { c.SetEndedAt(time.Now()) })
	_, member := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	_, bound := w.key(w.A.Member, key.CreateDeploymentKeyInput{Deployment: &own.ID})
	_, lead := w.key(w.A.Lead, key.CreateDeploymentKeyInput{})
	_, admin := w.key(w.A.Admin, key.CreateDeploymentKeyInput{})
	_, loner := w.key(w.A.Loner, key.CreateDeploymentKeyInput{})
	_, other := w.key(w.B.Admin, key.CreateDeploymentKeyInput{})
	_, root := w.key(w.Superadmin, key.CreateDeploymentKeyInput{})
	const absent = `"code":"model_not_found"`
	for _, c := range []struct {
		who, secret, model string
		status             int
		part               string
	}{
		{"the owner", member, "own", 200, "one two three"},
		{"the owner", member, "team", 200, "one two three"},
		{"the owner", member, "theirs", 404, absent},
		{"the owner", member, "over", 404, absent},
		{"the owner", member, "nothing", 404, absent},
		{"a key for one deployment", bound, "own", 200, "one two three"},
		{"a key for one deployment", bound, "team", 404, absent},
		{"a key for one deployment", bound, "open", 404, absent},
		{"an admin of the project", lead, "own", 200, "one two three"},
		{"an admin of the domain", admin, "own", 200, "one two three"},
		{"a user of no project", loner, "own", 404, absent},
		{"a user of no project", loner, "team", 404, absent},
		{"a user of no project", loner, "open", 200, "one two three"},
		{"an admin of another domain", other, "own", 404, absent},
		{"an admin of another domain", other, "team", 404, absent},
		{"a superadmin", root, "own", 200, "one two three"},
		{"a superadmin", root, "theirs", 404, absent}, // of another domain
		{"no key", "", "open", 200, "one two three"},
		{"no key", "", "own", 404, absent},
		{"no key", "", "twice", 404, absent},
		{"a wrong key", key.Prefix + "AAAA", "open", 401, "invalid_api_key"},
		{"a login", "not-a-key", "open", 401, "invalid_api_key"},
		{"SQL", key.Prefix + `' OR 1=1 --`, "own", 401, "invalid_api_key"},
		{"the name of a model as SQL", member, `x' OR '1'='1`, 404, absent},
		{"a long name", member, strings.Repeat("x", 10_000), 404, absent},
	} {
		w.expect(c.who+": "+c.model[:min(len(c.model), 20)], c.secret, c.model, c.status, c.part)
	}
	for who, want := range map[string]string{member: "open own team twice", bound: "own", "": "open"} {
		var got []string
		status, list := text(t, w.request(http.MethodGet, "/v1/models", who, ""))
		for _, name := range []string{"open", "own", "over", "team", "theirs", "twice"} {
			if strings.Contains(list, `"id":"`+name+`"`) {
				got = append(got, name)
			}
		}
		if status != http.StatusOK || strings.Join(got, " ") != want {
			t.Errorf("models: %d %q, want %q", status, got, want)
		}
	}
	// A name that a key may not use has the same answer as one that does not exist.
	_, absentAnswer := w.ask(loner, "nowhere")
	_, hiddenAnswer := w.ask(loner, "own")
	if strings.ReplaceAll(hiddenAnswer, "own", "nowhere") != absentAnswer {
		t.Errorf("a hidden model: %s, an absent one: %s", hiddenAnswer, absentAnswer)
	}
}

// A key that is restricted to APIs is refused at the others, before anything is said about the model.
func TestApisOfKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model("own", nil)
	_, chat := w.key(w.A.Member, key.CreateDeploymentKeyInput{Apis: []modelapi.API{modelapi.Images, modelapi.Chat}})
	for _, c := range []struct {
		path, model string
		status      int
		part        string
	}{
		{"/v1/chat/completions", "own", 200, "chat.completion"},
		{"/v1/completions", "own", 403, "the key lacks the API completions; it has: chat, images"},
		{"/v1/completions", "absent", 403, "api_not_allowed"},
		{"/v1/embeddings", "own", 403, "embeddings"},
		{"/v1/rerank", "own", 403, "rerank"},
		{"/v1/audio/speech", "own", 403, "audio"},
		{"/v1/moderations", "own", 403, "other"},
		{"/deployments/own/v1/completions", "own", 403, "completions"},
		{"/api/generate", "own", 403, "completions"},
	} {
		body := fmt.Sprintf(`{"model":%q,"prompt":"one","input":"one","messages":[{"role":"user","content":"one"}],"max_tokens":4}`, c.model)
		if status, answer := text(t, w.request(http.MethodPost, c.path, chat, body)); status != c.status || !strings.Contains(answer, c.part) {
			t.Errorf("%s: %d %s, want %d %s", c.path, status, answer, c.status, c.part)
		}
	}
	row, all := w.key(w.A.Member, key.CreateDeploymentKeyInput{Apis: modelapi.All()})
	w.expect("a key for all APIs", all, "own", 200, "one")
	if len(row.Apis) != 0 {
		t.Errorf("a key for all APIs is restricted to %v", row.Apis)
	}
	for _, bad := range [][]modelapi.API{{}, {"admin"}} {
		_, err := w.keys.CreateDeploymentKey(w.As(t, w.A.Member), key.CreateDeploymentKeyInput{Name: "x", Apis: bad})
		if said, _ := problem.From(err); said.Code != problem.CodeInvalidArgument || said.Field != "apis" {
			t.Errorf("a key for %q: %v", bad, err)
		}
	}
}

// A right that ends ends the use of a key within seconds, with and without an event.
func TestRightsThatEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model("team", func(c *ent.DeploymentCreate) { c.SetShared(true) })
	refused := func(what, secret string, status int) {
		t.Helper()
		eventually(t, what, func() bool { got, _ := w.ask(secret, "team"); return got == status })
	}
	row, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	w.expect("a valid key", secret, "team", 200, "one")
	if _, err := w.keys.RevokeDeploymentKey(w.As(t, w.A.Member), key.RevokeDeploymentKeyInput{ID: row.ID}); err != nil {
		t.Fatal(err)
	}
	refused("a revoked key is refused", secret, 401)

	row, secret = w.key(w.A.Lead, key.CreateDeploymentKeyInput{})
	w.expect("a valid key", secret, "team", 200, "one")
	row.Update().SetRevokedAt(time.Now()).ExecX(w.ctx) // and the event is lost
	refused("a key that was revoked without an event is refused", secret, 401)

	_, secret = w.key(w.A.Admin, key.CreateDeploymentKeyInput{})
	w.expect("a valid key", secret, "team", 200, "one")
	w.A.Admin.Update().SetStatus(user.StatusInactive).ExecX(w.ctx)
	refused("the key of an inactive user is refused", secret, 401)

	w.Client.Membership.Create().SetUser(w.A.Loner).SetProject(w.A.Project).ExecX(w.ctx)
	_, secret = w.key(w.A.Loner, key.CreateDeploymentKeyInput{})
	w.expect("a valid key", secret, "team", 200, "one")
	w.Client.Membership.Delete().Where(membership.UserID(w.A.Loner.ID)).ExecX(w.ctx)
	refused("the key of a user who left the project is refused", secret, 404)

	expires := clock.Now().Add(700 * time.Millisecond)
	_, secret = w.key(w.A.Lead, key.CreateDeploymentKeyInput{ExpiresAt: &expires})
	refused("an expired key is refused", secret, 401)
	if clock.Now().Before(expires) {
		t.Error("the key was refused before its time")
	}
}

// A network that guesses keys is refused, except with a key that is in use.
func TestGuessesOfKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model("team", func(c *ent.DeploymentCreate) { c.SetShared(true) })
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	w.expect("a valid key", secret, "team", 200, "one")
	limited := func() bool {
		status, answer := w.ask(key.Prefix+uuid.NewString(), "team")
		return status == http.StatusTooManyRequests && strings.Contains(answer, "your network")
	}
	eventually(t, "guesses are limited", limited)
	w.expect("a key that is in use", secret, "team", 200, "one")
}
