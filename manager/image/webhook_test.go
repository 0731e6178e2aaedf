package image_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/berthhq/berth/ent"
	enttask "github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/image"
)

const (
	fromDistribution = `{"events":[{"action":"push","target":{"repository":"team/tool","tag":"1"}},{"action":"pull","target":{"repository":"team/read"}}]}`
	fromHarbor       = `{"type":"PUSH_ARTIFACT","occur_at":1,"event_data":{"resources":[{"tag":"1"}],"repository":{"name":"tool","namespace":"team","repo_full_name":"team/tool"}}}`
)

// A push event reads just its repository; wrong secrets, bodies that are too large, and floods are refused.
func TestWebhooks(t *testing.T) {
	o := newOwnBed(t)
	_, err := o.SetRegistryWebhook(o.As(t, o.A.Admin), image.SetRegistryWebhookInput{ID: o.reg.ID, Enabled: true})
	want(t, err, problem.CodePermissionDenied, "")
	out, err := o.SetRegistryWebhook(o.root, image.SetRegistryWebhookInput{ID: o.reg.ID, Enabled: true})
	if err != nil || out.Secret == nil || len(*out.Secret) < 20 || out.Path == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	mux := http.NewServeMux()
	from := "192.0.2.1"
	mux.HandleFunc("POST "+image.WebhookPath+"{id}", func(w http.ResponseWriter, r *http.Request) {
		o.Webhook(w, r, netip.MustParseAddr(from))
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	post := func(path, authorization, body string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for name, c := range map[string]struct {
		path, authorization, body string
		want                      int
	}{
		"no secret":            {*out.Path, "", fromHarbor, 401},
		"a wrong secret":       {*out.Path, "Bearer x", fromHarbor, 401},
		"an unknown registry":  {image.WebhookPath + "019aaaaa-0000-7000-8000-000000000000", *out.Secret, fromHarbor, 401},
		"a path for an id":     {image.WebhookPath + "..%2f..%2fx", *out.Secret, fromHarbor, 401},
		"no JSON":              {*out.Path, *out.Secret, "hello", 400},
		"a path for a name":    {*out.Path, *out.Secret, strings.ReplaceAll(fromHarbor, "team/tool", "../../x"), 400},
		"two million bytes":    {*out.Path, *out.Secret, strings.Repeat("x", 2<<20), 413},
		"only a pull":          {*out.Path, *out.Secret, `{"events":[{"action":"pull","target":{"repository":"team/tool"}}]}`, 202},
		"another kind of JSON": {*out.Path, *out.Secret, `{}`, 202},
	} {
		if got := post(c.path, c.authorization, c.body); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if n := o.Client.Task.Query().CountX(o.root); n != 0 {
		t.Errorf("%d tasks were started by requests that are refused or ignored", n)
	}

	o.put(t, "team/tool", "1")
	o.put(t, "team/other", "1")
	for _, body := range []string{fromDistribution, fromHarbor} { // the second one is covered by the task of the first
		if got := post(*out.Path, "Bearer "+*out.Secret, body); got != 202 {
			t.Fatalf("an event: %d", got)
		}
	}
	if got := o.run(t, o.rescan(t)); got.Status != enttask.StatusDone || got.Message != "new: 1" {
		t.Errorf("the task is %s: %s", got.Status, got.Message)
	}
	same(t, o.results(o.reg), map[string]string{"team/tool:1": "new"})
	// A full scan, and an event about a repository without tags, keep the results of the others.
	o.scan(t, o.reg)
	if got := post(*out.Path, *out.Secret, strings.ReplaceAll(fromHarbor, "team/tool", "team/gone")); got != 202 {
		t.Fatal(got)
	}
	o.run(t, o.rescan(t))
	same(t, o.results(o.reg), map[string]string{"team/tool:1": "unchanged", "team/other:1": "new"})

	limited := 0
	for range 150 {
		if post(*out.Path, *out.Secret, `{}`) == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited < 30 {
		t.Errorf("%d of 150 events were limited", limited)
	}
	if _, err := o.SetRegistryWebhook(o.root, image.SetRegistryWebhookInput{ID: o.reg.ID}); err != nil {
		t.Fatal(err)
	}
	if got := post(*out.Path, *out.Secret, fromHarbor); got != 401 {
		t.Errorf("a webhook that is off: %d", got)
	}
	// Who guesses secrets is stopped, and stops no one else.
	from = "198.51.100.7"
	for range 40 {
		if limited = post(*out.Path, "guess", fromHarbor); limited == http.StatusTooManyRequests {
			break
		}
	}
	if from = "192.0.2.1"; limited != http.StatusTooManyRequests || post(*out.Path, "x", fromHarbor) != 401 {
		t.Error("guesses of one address are not limited, or those of another one are")
	}
	families, err := o.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "berth_registry_webhooks_total" {
				counts[m.Label[0].GetValue()] = m.Counter.GetValue()
			}
		}
	}
	if counts["refused"] < 5 || counts["refused"] > 40 || counts["broken"] != 3 || counts["accepted"] != 3 || counts["limited"] < 30 {
		t.Errorf("requests by result: %v", counts)
	}
}

// rescan returns the task of a webhook that has not ended.
func (o *ownBed) rescan(t *testing.T) *ent.Task {
	t.Helper()
	all, err := o.Client.Task.Query().Where(enttask.Kind("image.rescan"), enttask.EndedAtIsNil()).All(o.root)
	if err != nil || len(all) != 1 {
		t.Fatalf("tasks of webhooks: %v, %v", all, err)
	}
	return all[0]
}
