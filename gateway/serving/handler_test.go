package serving_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/deploymentreplica"
	"github.com/berthhq/berth/gateway/serving"
	"github.com/berthhq/berth/manager/deployment/key"
)

func TestOwnPaths(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/v1/chat/completions": true, "/v1/models": true, "/api/chat": true, "/api/embed": true, "/deployments/m/v1/models": true, "/deployments/m/api/chat": true,
		"/": false, "/v1": false, "/v10/x": false, "/graphql": false, "/api/": false, "/deployments": false, "/deployments/m": false, "/deployments/m/keys": false,
		"/deployments/m/x/v1/models": false, "/sessions/x/v1/": false,
	} {
		if serving.Own(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

// Browsers of other sites can call models with a key, and with nothing else: cookies are not read.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model("m", nil)
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	r, _ := http.NewRequest(http.MethodOptions, w.url+"/v1/chat/completions", nil)
	r.Header.Set("Origin", "https://else.example")
	r.Header.Set("Access-Control-Request-Method", "POST")
	r.Header.Set("Access-Control-Request-Headers", "x-stainless-os")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	h := resp.Header
	if resp.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Credentials") != "" ||
		!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Authorization") || !strings.Contains(h.Get("Access-Control-Allow-Headers"), "x-stainless-os") {
		t.Errorf("preflight: %d %v", resp.StatusCode, h)
	}
	for _, c := range []struct {
		secret string
		status int
	}{{secret, 200}, {"", 404}, {"bmk_WRONG", 401}} {
		r, _ := http.NewRequest(http.MethodPost, w.url+"/v1/completions", strings.NewReader(`{"model":"m","prompt":"x"}`))
		r.Header.Set("Origin", "https://else.example")
		r.Header.Set("Cookie", "berth="+secret+"; Authorization="+secret)
		if c.secret != "" {
			r.Header.Set("X-Api-Key", c.secret)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		h := resp.Header
		if resp.StatusCode != c.status || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || h.Get("Set-Cookie") != "" {
			t.Errorf("key %q: %d %v", c.secret, resp.StatusCode, h)
		}
	}
}

// What an attacker sends does not choose where a request goes, and reaches no other route of an engine.
func TestAttacksOnModels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var (
		mu   sync.Mutex
		seen []string
	)
	engine := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Method+" "+r.URL.String()+" "+fmt.Sprint(r.Header))
		body, _ := io.ReadAll(r.Body)
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Set-Cookie", "a=b")
		rw.Header().Set("Access-Control-Allow-Credentials", "true")
		_, _ = fmt.Fprintf(rw, `{"got":%q}`, body)
	}))
	defer engine.Close()
	d := w.deploy("m", nil)
	w.revision(d, 1, engine.URL)
	w.replica(d, 1, deploymentreplica.PhaseReady)
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	for _, c := range []struct {
		what, path, body string
		status           int
	}{
		{"a key in the address", "/v1/completions?api_key=" + secret, `{"model":"m"}`, 400},
		{"a key in the address, encoded", "/v1/completions?x=%62mk_AAAA", `{"model":"m"}`, 400},
		{"the model twice", "/v1/completions", `{"model":"m","model":"n"}`, 400},
		{"the administration of the engine", "/sleep", `{"model":"m"}`, 404},
		{"the metrics of the engine", "/deployments/m/metrics", `{"model":"m"}`, 404},
		{"a LoRA adapter", "/v1/load_lora_adapter", `{"model":"m"}`, 404},
		{"an upstream", "/v1/completions", `{"model":"m","api_base":"http://169.254.169.254","base_url":"http://x","url":"http://y","host":"z"}`, 200},
	} {
		resp := w.request(http.MethodPost, c.path, secret, c.body)
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", c.what, resp.StatusCode, c.status)
		}
		if resp.Header.Get("Set-Cookie") != "" || resp.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: headers of the engine: %v", c.what, resp.Header)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 1 || !strings.HasPrefix(seen[0], "POST /v1/completions map") || strings.Contains(seen[0], "bmk_") {
		t.Errorf("the engine got %q", seen)
	}
}

// Two lengths of a body, and headers with line breaks, do not put a second request into the connection of an engine.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got atomic.Int64
	engine := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		got.Add(1)
		if r.URL.Path != "/v1/completions" {
			t.Errorf("the engine got %s", r.URL)
		}
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprint(rw, `{}`)
	}))
	defer engine.Close()
	d := w.deploy("m", func(c *ent.DeploymentCreate) { c.SetOpen(true) })
	w.revision(d, 1, engine.URL)
	w.replica(d, 1, deploymentreplica.PhaseReady)
	inner := "POST /sleep HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
	body := `{"model":"m"}`
	for what, request := range map[string]string{
		"both lengths":     "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body) + inner,
		"two lengths":      fmt.Sprintf("Content-Length: %d\r\nContent-Length: 4\r\n\r\n%s%s", len(body), body, inner),
		"a wrong encoding": fmt.Sprintf("Transfer-Encoding: xchunked\r\nContent-Length: %d\r\n\r\n%s%s", len(body), body, inner),
		"an extension":     fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x;a=\n%s\r\n0\r\n\r\n%s", len(body), body, inner),
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"+request)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else {
			resp.Body.Close()
		}
		c.Close()
	}
	if n := got.Load(); n > 4 {
		t.Errorf("the engine got %d requests from 4", n)
	}
}

// A client that sends nothing of its body, or reads nothing, does not keep more than its share.
func TestBodiesAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model("m", func(c *ent.DeploymentCreate) { c.SetOpen(true) })
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	open := func(secret string) net.Conn {
		c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		head := "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 33554432\r\n"
		if secret != "" {
			head += "Authorization: Bearer " + secret + "\r\n"
		}
		fmt.Fprint(c, head+"\r\n{")
		return c
	}
	for range 3 { // one more than the limit, because a short request can take the place of one
		open("")
	}
	eventually(t, "a network without a key is limited", func() bool {
		status, answer := w.ask("", "m")
		return status == 429 && strings.Contains(answer, "your network has requests with 64 MiB")
	})
	w.expect("a key at the same network", secret, "m", 200, "one")
	for range 9 {
		open(secret)
	}
	eventually(t, "a user is limited", func() bool {
		status, answer := w.ask(secret, "m")
		return status == 429 && strings.Contains(answer, "your user has requests with 256 MiB")
	})
	_, other := w.key(w.A.Lead, key.CreateDeploymentKeyInput{})
	w.expect("another user", other, "m", 200, "one")
	// A body of unknown length counts with its size when it has been read.
	var arrived atomic.Int64
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived.Add(1)
		<-r.Context().Done()
	}))
	defer slow.Close()
	d := w.deploy("slow", nil)
	w.revision(d, 1, slow.URL)
	w.replica(d, 1, deploymentreplica.PhaseReady)
	_, lead := w.key(w.A.Lead, key.CreateDeploymentKeyInput{})
	for i := range int64(12) { // of which 32 MiB each would be more than the limit
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/completions", io.MultiReader(strings.NewReader(`{"model":"slow"}`)))
		r.Header.Set("Authorization", "Bearer "+lead)
		go func() {
			if resp, err := http.DefaultClient.Do(r); err == nil {
				resp.Body.Close()
			}
		}()
		eventually(t, "the request is at the engine", func() bool { return arrived.Load() == i+1 })
	}
	_, wrong := w.ask("bmk_WRONG", "m")
	if !strings.Contains(wrong, "invalid_api_key") {
		t.Errorf("a wrong key: %s", wrong)
	}
}

// Metrics have classes, and no name of a model, person or key.
func TestMetricsHaveNoNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model("model-of-mine", nil)
	_, secret := w.key(w.A.Member, key.CreateDeploymentKeyInput{})
	w.expect("a request", secret, "model-of-mine", 200, "one")
	w.request(http.MethodGet, "/deployments/model-of-mine/v1/models", secret, "")
	w.request(http.MethodGet, "/nowhere", secret, "")
	counted := func() (list []string) {
		families, err := w.metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.Metric {
				if f.GetName() == "berth_models_requests_total" {
					list = append(list, fmt.Sprint(m.Label[0].GetValue(), " ", m.Label[1].GetValue(), " ", m.Counter.GetValue()))
				}
			}
		}
		return list
	}
	want := []string{"/v1/completions 2xx 1", "/v1/models 2xx 1", "other 4xx 1"}
	eventually(t, "the requests are counted", func() bool { return slices.Equal(counted(), want) })
	families, err := w.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.Contains(f.String(), "model-of-mine") || strings.Contains(f.String(), "bmk_") || strings.Contains(f.String(), w.A.Member.ID.String()) {
			t.Errorf("a name in %s", f)
		}
	}
}
