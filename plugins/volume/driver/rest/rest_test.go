package rest_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// product starts a server and returns a client that trusts it.
func product(t *testing.T, auth rest.Auth, h http.HandlerFunc) (*rest.Client, *httptest.Server) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	o := rest.Defaults()
	o.URL, o.CAFile = s.URL, ca
	c, err := rest.New(o, auth)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, s
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func secret(t *testing.T, text string) driver.Secret {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	write(t, file, text+"\n")
	return driver.Secret(file)
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(driver.Error("", err)); got != want {
		t.Errorf("%v is %v, want %v", err, got, want)
	}
}

func detail(err error) *pb.ErrorDetail {
	for _, d := range status.Convert(driver.Error("doing", err)).Details() {
		if d, ok := d.(*pb.ErrorDetail); ok {
			return d
		}
	}
	return nil
}

func TestJSON(t *testing.T) {
	c, _ := product(t, nil, func(w http.ResponseWriter, r *http.Request) {
		var in map[string]string
		if r.Method != "POST" || r.URL.Path != "/a b" || r.URL.Query().Get("q") != "ü&" || r.Header.Get("X-Y") != "z" ||
			r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&in) != nil {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		answer(w, 201, map[string]string{"got": in["send"]})
	})
	var out struct{ Got string }
	err := c.JSON(t.Context(), rest.Request{Method: "POST", Path: "/a%20b", Query: url.Values{"q": {"ü&"}},
		Header: http.Header{"x-y": {"z"}}, Body: map[string]string{"send": "this"}}, &out)
	if err != nil || out.Got != "this" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestBasic(t *testing.T) {
	file := secret(t, "first-password")
	c, _ := product(t, rest.Basic{User: "admin", Password: file}, func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != "admin" || p != "second-password" {
			answer(w, 401, map[string]string{"message": "not " + p + " nor " + r.Header.Get("Authorization")})
		}
	})
	_, err := c.Do(t.Context(), rest.Request{Path: "/"})
	wantCode(t, err, codes.Unauthenticated)
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "first-password") || strings.Contains(err.Error(), "YWRtaW4") {
		t.Errorf("the password is in %v", err)
	}
	write(t, string(file), "second-password") // changed while the plugin runs
	if _, err := c.Do(t.Context(), rest.Request{Path: "/"}); err != nil {
		t.Error(err)
	}
	if err := os.Remove(string(file)); err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), rest.Request{Path: "/"})
	wantCode(t, err, codes.Unauthenticated) // not NOT_FOUND, which means a missing scope
}

// login is a product whose sessions end on request.
type login struct {
	logins, renewals atomic.Int32
	valid            atomic.Value // the token that is valid now
}

func (l *login) auth(t *testing.T, password driver.Secret, life time.Duration) rest.Auth {
	return rest.NewLogin(func(ctx context.Context, c *rest.Client, old *rest.Session) (*rest.Session, error) {
		var in struct{ Access, Refresh string }
		q := rest.Request{Method: "POST", Path: "/login", Anonymous: true, Again: true}
		if old != nil && old.Refresh != "" {
			q.Path, q.Body = "/refresh", map[string]string{"refresh": old.Refresh}
		} else {
			p, err := c.Secret(password)
			if err != nil {
				return nil, err
			}
			q.Body = map[string]string{"password": p}
		}
		if err := c.JSON(ctx, q, &in); err != nil {
			return nil, err
		}
		s := &rest.Session{Header: http.Header{"authorization": {"Bearer " + in.Access}}, Refresh: in.Refresh}
		if life != 0 {
			s.Expires = time.Now().Add(life)
		}
		return s, nil
	})
}

func (l *login) serve(w http.ResponseWriter, r *http.Request) {
	var in map[string]string
	_ = json.NewDecoder(r.Body).Decode(&in)
	switch {
	case r.URL.Path == "/login" && in["password"] == "pass-word-1":
		token := fmt.Sprintf("token-%d", l.logins.Add(1))
		l.valid.Store("Bearer " + token)
		answer(w, 200, map[string]string{"access": token, "refresh": "refresh-" + token})
	case r.URL.Path == "/refresh" && strings.HasPrefix(in["refresh"], "refresh-token-"):
		token := fmt.Sprintf("renewed-%d", l.renewals.Add(1))
		l.valid.Store("Bearer " + token)
		answer(w, 200, map[string]string{"access": token}) // cannot be refreshed again
	case r.URL.Path == "/login" || r.URL.Path == "/refresh":
		answer(w, 404, map[string]string{"message": "who is " + in["password"]})
	case r.Header.Get("Authorization") != l.valid.Load():
		answer(w, 401, map[string]string{"message": "expired: " + r.Header.Get("Authorization")})
	default:
		answer(w, 200, "fine")
	}
}

func TestLogin(t *testing.T) {
	l := &login{}
	c, _ := product(t, l.auth(t, secret(t, "pass-word-1"), 0), l.serve)
	errs := make(chan error)
	for range 16 {
		go func() { _, err := c.Do(t.Context(), rest.Request{Path: "/x"}); errs <- err }()
	}
	for range 16 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := l.logins.Load(); n != 1 {
		t.Errorf("%d logins for 16 requests at once", n)
	}
	for i, want := range []int32{1, 1, 2} { // refreshed, then logged in because there is no refresh token
		if i > 0 {
			l.valid.Store("none")
		}
		if _, err := c.Do(t.Context(), rest.Request{Method: "POST", Path: "/x"}); err != nil {
			t.Error(err)
		}
		if n := l.logins.Load(); n != want {
			t.Errorf("%d logins, want %d", n, want)
		}
	}
	if l.renewals.Load() != 1 {
		t.Errorf("%d renewals", l.renewals.Load())
	}
}

func TestLoginIsRenewedBeforeItsEnd(t *testing.T) {
	l := &login{}
	c, _ := product(t, l.auth(t, secret(t, "pass-word-1"), 200*time.Millisecond), l.serve)
	if _, err := c.Do(t.Context(), rest.Request{Path: "/x"}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); l.renewals.Load() == 0; time.Sleep(20 * time.Millisecond) {
		if _, err := c.Do(t.Context(), rest.Request{Path: "/x"}); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatal("never renewed")
		}
	}
}

func TestLoginRefused(t *testing.T) {
	l := &login{}
	c, _ := product(t, l.auth(t, secret(t, "wrong-password"), 0), l.serve)
	_, err := c.Do(t.Context(), rest.Request{Path: "/x"})
	wantCode(t, err, codes.Unauthenticated) // though the product returned 404
	if strings.Contains(err.Error(), "wrong-password") {
		t.Errorf("the password is in %v", err)
	}
}

func TestCookiesAndCSRF(t *testing.T) {
	var logins atomic.Int32
	auth := rest.NewLogin(func(ctx context.Context, c *rest.Client, _ *rest.Session) (*rest.Session, error) {
		r, err := c.Do(ctx, rest.Request{Method: "POST", Path: "/session", Anonymous: true, Body: url.Values{"user": {"root"}}})
		if err != nil {
			return nil, err
		}
		s := &rest.Session{Header: http.Header{}}
		for _, k := range r.Cookies() {
			if k.Name == "csrf" {
				s.Header.Set("X-CSRF-Token", k.Value)
			} else {
				s.Cookies = append(s.Cookies, k)
			}
		}
		return s, nil
	})
	c, _ := product(t, auth, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/session" {
			if r.FormValue("user") != "root" {
				t.Errorf("form %v", r.Form)
			}
			n := logins.Add(1)
			http.SetCookie(w, &http.Cookie{Name: "sess", Value: fmt.Sprint("session-", n), Secure: true, HttpOnly: true})
			http.SetCookie(w, &http.Cookie{Name: "csrf", Value: fmt.Sprint("csrf-", n)})
			return
		}
		k, err := r.Cookie("sess")
		if err != nil || k.Value != "session-2" || r.Header.Get("X-CSRF-Token") != "csrf-2" {
			answer(w, 403, map[string]string{"message": "session expired"})
		}
	})
	c.Expired = func(r *rest.Response) bool { return r.Status == 403 }
	if _, err := c.Do(t.Context(), rest.Request{Path: "/x"}); err != nil {
		t.Error(err)
	}
	if logins.Load() != 2 {
		t.Errorf("%d logins", logins.Load())
	}
}

func TestToken(t *testing.T) {
	c, _ := product(t, rest.Token{Prefix: "Api-Token ", Secret: secret(t, "abcdef")}, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Api-Token abcdef" {
			answer(w, 401, nil)
		}
	})
	if _, err := c.Do(t.Context(), rest.Request{Path: "/x"}); err != nil {
		t.Error(err)
	}
}

func TestBusy(t *testing.T) {
	for name, tc := range map[string]struct {
		method string
		status int
		after  string
		tries  int32 // number of attempts with this response
		asked  int32
		want   codes.Code
	}{
		"429 once":               {"POST", 429, "0", 1, 2, codes.OK},
		"503 twice":              {"GET", 503, "", 2, 3, codes.OK},
		"503 for an hour":        {"GET", 503, "3600", 9, 1, codes.Unavailable},
		"lost behind a gateway":  {"POST", 502, "", 1, 1, codes.Unavailable},
		"read behind a gateway":  {"GET", 504, "0", 1, 2, codes.OK},
		"broken":                 {"GET", 500, "", 1, 1, codes.Internal},
		"not allowed":            {"GET", 403, "", 1, 1, codes.PermissionDenied},
		"not there":              {"GET", 404, "", 1, 1, codes.NotFound},
		"in the way":             {"POST", 409, "", 1, 1, codes.FailedPrecondition},
		"bad":                    {"POST", 400, "", 1, 1, codes.InvalidArgument},
		"full":                   {"POST", 507, "", 1, 1, codes.ResourceExhausted},
		"not followed elsewhere": {"GET", 302, "", 1, 1, codes.FailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			c, _ := product(t, nil, func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) > tc.tries {
					return
				}
				if tc.after != "" {
					w.Header().Set("Retry-After", tc.after)
				}
				w.Header().Set("Location", "/elsewhere")
				answer(w, tc.status, map[string]any{"error": map[string]string{"code": "917", "message": "no,\n not now"}})
			})
			_, err := c.Do(t.Context(), rest.Request{Method: tc.method, Path: "/x"})
			wantCode(t, err, tc.want)
			if got := asked.Load(); got != tc.asked {
				t.Errorf("asked %d times, want %d", got, tc.asked)
			}
			if err == nil {
				return
			}
			if !rest.IsStatus(err, tc.status) || rest.Code(err) != "917" || !strings.Contains(err.Error(), "no, not now") {
				t.Errorf("%v", err)
			}
			d := detail(err)
			if d.GetVendorCode() != "917" || d.GetRetryable() != (tc.want == codes.Unavailable) || tc.after == "3600" && d.GetRetryAfterMs() != 3600_000 {
				t.Errorf("detail %v", d)
			}
		})
	}
}

func TestNoAnswer(t *testing.T) {
	var asked atomic.Int32
	c, s := product(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			panic(http.ErrAbortHandler) // the connection ends
		}
	})
	if _, err := c.Do(t.Context(), rest.Request{Method: "PUT", Path: "/x"}); err != nil || asked.Load() != 2 {
		t.Errorf("%v after %d", err, asked.Load())
	}
	asked.Store(0)
	_, err := c.Do(t.Context(), rest.Request{Method: "POST", Path: "/x", Query: url.Values{"token": {"hidden-in-query"}}})
	wantCode(t, err, codes.Unavailable)
	if asked.Load() != 1 || strings.Contains(err.Error(), "hidden-in-query") {
		t.Errorf("%v after %d", err, asked.Load())
	}
	s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = c.Do(ctx, rest.Request{Path: "/x"})
	if got := status.Code(driver.Error("", err)); got != codes.Unavailable && got != codes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
}

func TestAnotherAddress(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "here") }))
	defer s.Close()
	o := rest.Defaults()
	o.URL, o.MoreURLs = "https://127.0.0.1:1", []string{s.URL}
	o.Fingerprint = fmt.Sprintf("%X", sha256.Sum256(s.Certificate().Raw))
	c, err := rest.New(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if _, err := c.Do(t.Context(), rest.Request{Method: "POST", Path: "/x"}); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Link("https://elsewhere.example/x"); err == nil {
		t.Error("a link to elsewhere is followed")
	}
	q, err := c.Link("/api/x?page=2")
	if err != nil || q.Path != "/api/x" || q.Query.Get("page") != "2" {
		t.Errorf("%+v %v", q, err)
	}
}

func TestUnknownCertificate(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	for name, fingerprint := range map[string]string{"no authority": "", "another": strings.Repeat("00", 32)} {
		o := rest.Defaults()
		o.URL, o.Fingerprint = s.URL, fingerprint
		c, err := rest.New(o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do(t.Context(), rest.Request{Method: "POST", Path: "/"}); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnswerHasALimit(t *testing.T) {
	var asked atomic.Int32
	c, _ := product(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		for range 17 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	_, err := c.Do(t.Context(), rest.Request{Path: "/"})
	wantCode(t, err, codes.Internal)
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestNoJSON(t *testing.T) {
	c, _ := product(t, nil, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	if err := c.Get(t.Context(), "/", nil, &struct{}{}); err == nil {
		t.Error("HTML was understood")
	}
}

type page struct {
	Records []int
	Next    string
}

func TestPages(t *testing.T) {
	c, _ := product(t, nil, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("at") {
		case "":
			answer(w, 200, page{[]int{1, 2}, "/list?at=b"})
		case "b":
			answer(w, 200, page{nil, "/list?at=c"})
		case "c":
			answer(w, 200, page{[]int{3}, ""})
		case "loop":
			answer(w, 200, page{nil, "/list?at=loop"})
		default:
			answer(w, 500, nil)
		}
	})
	list := func(at string) (got []int, err error) {
		q := rest.Request{Path: "/list", Query: url.Values{"at": {at}}}
		next := func(p *page, _ *rest.Response) (*rest.Request, error) {
			if p.Next == "" {
				return nil, nil
			}
			q, err := c.Link(p.Next)
			return &q, err
		}
		for n, err := range rest.All(t.Context(), c, q, func(p *page) []int { return p.Records }, next) {
			if err != nil {
				return got, err
			}
			got = append(got, n)
		}
		return got, nil
	}
	if got, err := list(""); err != nil || fmt.Sprint(got) != "[1 2 3]" {
		t.Errorf("%v %v", got, err)
	}
	for _, at := range []string{"loop", "broken"} {
		if got, err := list(at); err == nil {
			t.Errorf("%s: %v", at, got)
		}
	}
}

func TestPoll(t *testing.T) {
	states := []string{"queued", "busy", "running", "paused", "success"}
	var asked atomic.Int32
	c, _ := product(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		s := states[min(int(asked.Add(1)), len(states))-1]
		if s == "busy" {
			answer(w, 502, nil)
			return
		}
		answer(w, 200, map[string]string{"state": s})
	})
	job := func(ctx context.Context) (bool, error) {
		var out struct{ State string }
		if err := c.JSON(ctx, rest.Request{Method: "POST", Path: "/job"}, &out); err != nil {
			return false, err
		}
		if out.State == "failure" {
			return false, c.Failed("job 7", "5308568", "rule is\nnot active")
		}
		return out.State == "success", nil
	}
	if err := rest.Poll(t.Context(), "job 7", time.Millisecond, job); err != nil || asked.Load() != 5 {
		t.Errorf("%v after %d", err, asked.Load())
	}
	states = []string{"running", "failure"}
	asked.Store(0)
	err := rest.Poll(t.Context(), "job 7", time.Millisecond, job)
	wantCode(t, err, codes.Internal)
	if rest.Code(err) != "5308568" || detail(err).GetVendorCode() != "5308568" || !strings.Contains(err.Error(), "rule is not active") {
		t.Errorf("%v", err)
	}
	states = []string{"running"}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantCode(t, rest.Poll(ctx, "job 7", time.Millisecond, job), codes.DeadlineExceeded)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rest.Poll(cancelled, "job 7", time.Millisecond, job); !errors.Is(err, context.Canceled) && status.Code(err) != codes.Canceled {
		t.Errorf("%v", err)
	}
}
