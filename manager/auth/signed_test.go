package auth_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/signature"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

func sealing(t *testing.T) func(*auth.Config) {
	t.Helper()
	ring, err := seal.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return func(c *auth.Config) { c.Keys = ring }
}

// program signs requests with a keypair.
type program struct{ key, secret string }

func (m *manager) program(t *testing.T, w *identitytest.World, name string) (program, *auth.KeypairPayload) {
	t.Helper()
	made, err := m.CreateKeypair(w.As(t, w.A.Member), auth.CreateKeypairInput{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return program{made.Keypair.AccessKey, *made.Secret}, made
}

// request signs a request for a time; change is applied after the signature.
func (p program) request(t *testing.T, m *manager, at time.Time, change func(*http.Request)) *http.Request {
	t.Helper()
	const body = `{"a":1}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url+"/who?x=1&y=2", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := signature.Sign(r, p.key, p.secret, []byte(body), at); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	return r
}

// changed changes the matching part of a header.
func changed(name string, what *regexp.Regexp, text string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, what.ReplaceAllString(r.Header.Get(name), text)) }
}

func do(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp, text.String()
}

func (p program) call(t *testing.T, m *manager) (*http.Response, string) {
	t.Helper()
	return do(t, p.request(t, m, time.Now(), nil))
}

func TestSignedRequests(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, redisURL(t), sealing(t))
	p, made := m.program(t, w, "one")
	other, _ := m.program(t, w, "two")
	resp, body := p.call(t, m)
	status(t, resp, http.StatusOK)
	if want := w.A.Member.Email + " user 1 0"; body != want {
		t.Errorf("I am %q, want %q", body, want)
	}
	if w.Client.Keypair.GetX(viewer.SystemContext(t.Context()), made.Keypair.ID).LastUsedAt == nil {
		t.Error("the use was not noted")
	}
	late := time.Now().Add(-signature.MaxSkew - time.Minute)
	again := p.request(t, m, time.Now(), nil).Header
	for _, c := range []struct {
		name   string
		who    program
		at     time.Time
		change func(*http.Request)
	}{
		{"another method", p, time.Now(), func(r *http.Request) { r.Method = http.MethodPut }},
		{"another path", p, time.Now(), func(r *http.Request) {
			r.URL.Path = "/other"
			if err := signature.Sign(r, p.key, p.secret, []byte(`{"a":1}`), time.Now()); err != nil {
				t.Fatal(err)
			}
			r.URL.Path = "/who"
		}},
		{"another query", p, time.Now(), func(r *http.Request) { r.URL.RawQuery = "x=1&y=3" }},
		{"another host", p, time.Now(), func(r *http.Request) { r.Host = "other.example.org" }},
		{"another time", p, time.Now(), changed(signature.HeaderInput, regexp.MustCompile(`created=\d+`), fmt.Sprintf("created=%d", time.Now().Unix()-60))},
		{"another end", p, time.Now(), changed(signature.HeaderInput, regexp.MustCompile(`expires=\d+`), fmt.Sprintf("expires=%d", time.Now().Unix()+3600))},
		{"another nonce", p, time.Now(), changed(signature.HeaderInput, regexp.MustCompile(`nonce="[^"]*"`), `nonce="`+strings.Repeat("n", 20)+`"`)},
		{"on behalf of another", p, time.Now(), func(r *http.Request) { r.Header.Set(auth.ActAsHeader, w.B.Member.Email) }},
		{"another body", p, time.Now(), func(r *http.Request) {
			fresh, _ := http.NewRequest(http.MethodPost, m.url, strings.NewReader(`{"a":2}`))
			r.Body, r.GetBody = fresh.Body, fresh.GetBody
		}},
		{"another body and its digest", p, time.Now(), func(r *http.Request) {
			fresh, _ := http.NewRequest(http.MethodPost, m.url, strings.NewReader(`{"a":2}`))
			r.Body, r.GetBody = fresh.Body, fresh.GetBody
			if err := signature.Sign(fresh, p.key, p.secret, []byte(`{"a":2}`), time.Now()); err != nil {
				t.Fatal(err)
			}
			r.Header.Set(signature.HeaderDigest, fresh.Header.Get(signature.HeaderDigest))
		}},
		{"no time", p, time.Now(), changed(signature.HeaderInput, regexp.MustCompile(`created=\d+;`), "")},
		{"no digest", p, time.Now(), func(r *http.Request) { r.Header.Del(signature.HeaderDigest) }},
		{"body that is not covered", p, time.Now(), changed(signature.HeaderInput, regexp.MustCompile(` "content-digest"`), "")},
		{"key of one keypair, secret of another", program{p.key, other.secret}, time.Now(), nil},
		{"unknown key", program{"BKAAAAAAAAAAAAAAAAAA", p.secret}, time.Now(), nil},
		{"other algorithm", p, time.Now(), changed(signature.HeaderInput, regexp.MustCompile("hmac-sha256"), "none")},
		{"secret as a token", p, time.Now(), func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+p.secret) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := do(t, c.who.request(t, m, c.at, c.change))
			status(t, resp, http.StatusUnauthorized)
			if !strings.Contains(body, "the credentials are wrong or no longer valid") {
				t.Errorf("says %s", body)
			}
		})
	}
	t.Run("skew", func(t *testing.T) {
		for _, at := range []time.Time{late, time.Now().Add(signature.MaxSkew + time.Minute)} {
			resp, body := do(t, p.request(t, m, at, nil))
			status(t, resp, http.StatusUnauthorized)
			if !strings.Contains(body, time.Now().UTC().Format("2006-01-02T15")) {
				t.Errorf("does not name the time: %s", body)
			}
		}
	})
	t.Run("replay", func(t *testing.T) {
		r := p.request(t, m, time.Now(), func(r *http.Request) { r.Header = again })
		resp, _ := do(t, r)
		status(t, resp, http.StatusOK)
		resp, _ = do(t, p.request(t, m, time.Now(), func(r *http.Request) { r.Header = again }))
		status(t, resp, http.StatusUnauthorized)
	})
}

func TestReplayAtAnotherManagerAndWithoutRedis(t *testing.T) {
	w := identitytest.New(t)
	keys, url := sealing(t), redisURL(t)
	first, second := start(t, w.Client, url, keys), start(t, w.Client, url, keys)
	p, _ := first.program(t, w, "one")
	r := p.request(t, first, time.Now(), func(r *http.Request) {
		r.Host = "berth.example.org"
		if err := signature.Sign(r, p.key, p.secret, []byte(`{"a":1}`), time.Now()); err != nil {
			t.Fatal(err)
		}
	})
	header := r.Header
	resp, _ := do(t, r)
	status(t, resp, http.StatusOK)
	resp, _ = do(t, p.request(t, second, time.Now(), func(r *http.Request) { r.Host, r.Header = "berth.example.org", header }))
	status(t, resp, http.StatusUnauthorized)

	gone := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer gone.Close()
	alone := start(t, w.Client, "", func(c *auth.Config) { keys(c); c.Redis = gone })
	r = p.request(t, alone, time.Now(), nil)
	header = r.Header
	resp, _ = do(t, r)
	status(t, resp, http.StatusOK)
	resp, _ = do(t, p.request(t, alone, time.Now(), func(r *http.Request) { r.Header = header }))
	status(t, resp, http.StatusUnauthorized)
}

func TestRate(t *testing.T) {
	w := identitytest.New(t)
	keys, url := sealing(t), redisURL(t)
	managers := []*manager{start(t, w.Client, url, keys), start(t, w.Client, url, keys)}
	p, made := managers[0].program(t, w, "one")
	resp, _ := p.call(t, managers[0])
	if got := resp.Header.Get("X-RateLimit-Limit") + " " + resp.Header.Get("X-RateLimit-Remaining") + " " + resp.Header.Get("X-RateLimit-Window"); got != "10000 9999 900" {
		t.Errorf("headers %s", got)
	}
	four := 4
	_, err := managers[0].UpdateKeypair(w.As(t, w.A.Member), auth.UpdateKeypairInput{ID: made.Keypair.ID, RateLimit: &four})
	code(t, err, problem.CodePermissionDenied)
	if _, err := managers[0].UpdateKeypair(w.As(t, w.Superadmin), auth.UpdateKeypairInput{ID: made.Keypair.ID, RateLimit: &four}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		resp, _ := p.call(t, managers[i%2])
		status(t, resp, http.StatusOK)
		if got := resp.Header.Get("X-RateLimit-Remaining"); got != strconv.Itoa(2-i) {
			t.Errorf("after %d more: %s remain", i+1, got)
		}
	}
	resp, body := p.call(t, managers[1])
	status(t, resp, http.StatusTooManyRequests)
	wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || wait < 1 || wait > 900 || !strings.Contains(body, problem.CodeResourceExhausted) || resp.Header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("wait %d, %v: %s", wait, err, body)
	}
	another, _ := managers[0].program(t, w, "two")
	resp, _ = another.call(t, managers[1])
	status(t, resp, http.StatusOK)
}

func TestKeypairsDieAtOnce(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", sealing(t))
	p, made := m.program(t, w, "one")
	k, as := made.Keypair, w.As(t, w.A.Member)
	v := w.Viewer(t, w.A.Member)
	v.Credential = k.ID
	on, off := true, false

	open := m.Watch(t.Context(), v)
	if _, err := m.UpdateKeypair(as, auth.UpdateKeypairInput{ID: k.ID, Active: &off}); err != nil {
		t.Fatal(err)
	}
	ends(t, "connection of an inactive keypair", open)
	resp, _ := p.call(t, m)
	status(t, resp, http.StatusUnauthorized)
	if _, err := m.UpdateKeypair(as, auth.UpdateKeypairInput{ID: k.ID, Active: &on}); err != nil {
		t.Fatal(err)
	}
	resp, _ = p.call(t, m)
	status(t, resp, http.StatusOK)

	open = m.Watch(t.Context(), v)
	rotated, err := m.RotateKeypair(as, auth.RotateKeypairInput{ID: k.ID})
	if err != nil {
		t.Fatal(err)
	}
	ends(t, "connection of a rotated keypair", open)
	resp, _ = p.call(t, m)
	status(t, resp, http.StatusUnauthorized)
	p.secret = *rotated.Secret
	resp, _ = p.call(t, m)
	status(t, resp, http.StatusOK)

	system := viewer.SystemContext(t.Context())
	w.Client.User.UpdateOneID(w.A.Member.ID).SetStatus(user.StatusInactive).ExecX(system)
	resp, _ = p.call(t, m)
	status(t, resp, http.StatusUnauthorized)
	w.Client.User.UpdateOneID(w.A.Member.ID).SetStatus(user.StatusActive).ExecX(system)

	if _, err := m.DeleteKeypair(as, auth.DeleteKeypairInput{ID: k.ID}); err != nil {
		t.Fatal(err)
	}
	resp, _ = p.call(t, m)
	status(t, resp, http.StatusUnauthorized)
}
