package serving_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/promptrecord"
	"github.com/berthhq/berth/manager/deployment/key"
)

// Nothing is kept of requests unless the owner records them. Then each answer says so, and the record has the request, the
// answer and the user.
func TestRecordedRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.model("m", nil)
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	send := func(body string) *http.Response {
		return w.request(http.MethodPost, "/v1/chat/completions", secret, body)
	}
	ask := func(word, more string) *http.Response {
		resp := send(`{"model":"m","max_tokens":3,"messages":[{"role":"user","content":"` + word + `"}]` + more + `}`)
		text(t, resp)
		return resp
	}
	if resp := ask("private", ""); resp.StatusCode != http.StatusOK || resp.Header.Get("Berth-Recorded") != "" {
		t.Fatalf("without records: %d %v", resp.StatusCode, resp.Header)
	}
	w.changed(d, func(up *ent.DeploymentUpdateOne) { up.SetRecorded(true) })
	eventually(t, "the gateway records", func() bool { return ask("known", "").Header.Get("Berth-Recorded") == "true" })
	ask("streamed", `,"stream":true`)
	ask("zero \\u0000 byte "+strings.Repeat("long ", 20_000), "")
	var got []*ent.PromptRecord
	eventually(t, "the records are stored", func() bool {
		got = w.Client.PromptRecord.Query().Where(promptrecord.DeploymentID(d.ID)).Order(promptrecord.ByCreatedAt()).AllX(w.ctx)
		return len(got) >= 3 && got[len(got)-1].Truncated
	})
	last := len(got) - 1
	for _, r := range got {
		if strings.Contains(r.Request, "private") || r.UserID == nil || *r.UserID != w.A.Member.ID || r.Path != "/v1/chat/completions" || r.Status != http.StatusOK ||
			r.Revision == nil || *r.Revision != 1 || r.CompletionTokens != 3 {
			t.Errorf("record: %+v", r)
		}
	}
	if r := got[last-1]; !strings.Contains(r.Request, "streamed") || !strings.Contains(r.Answer, "data: [DONE]") || r.Truncated {
		t.Errorf("a stream: %+v", r)
	}
	if n := len(got[last].Request); n != 64<<10 {
		t.Errorf("a long request has %d bytes", n)
	}
	families, err := w.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "berth_models_recorded_requests_total" && m.Label[0].GetValue() == "stored" && int(m.Counter.GetValue()) != len(got) {
				t.Errorf("the metric counts %v of %d", m.Counter.GetValue(), len(got))
			}
		}
	}
}

// A gateway stores what it has recorded before it ends. Records of a deployment that was deleted are dropped, and the others
// of the batch are stored.
func TestRecordsAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kept := w.model("kept", func(c *ent.DeploymentCreate) { c.SetRecorded(true) })
	gone := w.model("gone", func(c *ent.DeploymentCreate) { c.SetRecorded(true) })
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	w.expect("kept", secret, "kept", http.StatusOK, "")
	w.expect("gone", secret, "gone", http.StatusOK, "")
	w.Client.Deployment.DeleteOne(gone).ExecX(w.ctx)
	w.expect("kept", secret, "kept", http.StatusOK, "")
	w.stop()
	if n := w.Client.PromptRecord.Query().Where(promptrecord.DeploymentID(kept.ID)).CountX(w.ctx); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}
