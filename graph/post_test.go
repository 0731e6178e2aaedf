package graph_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/berthhq/berth/manager/managertest"
)

// TestAnswersToPosts checks status, content type and length of answers.
func TestAnswersToPosts(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	member := w.Quiet(t).As(t, w.A.Member)
	const list, wrong = `{"query": "{ sessions { totalCount edges { node { id } } } }"}`, `{"query": "{ nothing }"}`
	const plain, response = "application/json", "application/graphql-response+json"
	for _, c := range []struct {
		body, accept string
		status       int
		answer       string
	}{
		{list, "", 200, plain}, {list, "*/*", 200, plain}, {list, "text/html, application/*;q=0.5", 200, plain},
		{list, response + ", application/json;q=0.9", 200, response}, {list, "application/json, " + response, 200, plain},
		{list, "text/html", 200, response},
		{wrong, "", 422, plain}, {wrong, response, 400, response},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, member.URL+"/graphql", bytes.NewReader([]byte(c.body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = member.Header.Clone()
		r.Header.Set("Content-Type", "application/json")
		if c.accept != "" {
			r.Header.Set("Accept", c.accept)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || resp.Header.Get("Content-Type") != c.answer || !json.Valid(text) {
			t.Errorf("%s as %q: %d %s %s (%v)", c.body, c.accept, resp.StatusCode, resp.Header.Get("Content-Type"), text, err)
		}
		if n := resp.Header.Get("Content-Length"); n != strconv.Itoa(len(text)) {
			t.Errorf("%s as %q: length %q of %d", c.body, c.accept, n, len(text))
		}
	}
}

// TestDeferredFieldsComeAtOnce requests deferred fields. A server may return them at once, and
// there is only one answer to a POST.
func TestDeferredFieldsComeAtOnce(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	root := w.Quiet(t).As(t, w.Superadmin)
	rows := seed(t, w)
	rows.more(1)
	var got struct {
		Sessions struct {
			Edges []struct {
				Node struct {
					Name    string
					Owner   *struct{ Email string }
					Kernels []struct{ ID string }
				}
			}
		}
	}
	root.Must(t, `{ sessions(first: 1) { edges { node { name ... @defer { owner { email } kernels { id } } } } } }`, nil, &got)
	if len(got.Sessions.Edges) != 1 {
		t.Fatal("no session")
	}
	if n := got.Sessions.Edges[0].Node; n.Name == "" || n.Owner == nil || n.Owner.Email == "" || len(n.Kernels) == 0 {
		t.Errorf("got %+v", n)
	}
}
