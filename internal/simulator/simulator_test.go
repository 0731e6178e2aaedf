package simulator_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/internal/simulator/simulatortest"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// shop is a product with one call for each feature of the package.
type shop struct {
	server *simulator.Server
	tokens *simulator.Tokens
}

func newShop(a *simulator.Server) (simulator.Product, error) {
	return &shop{server: a, tokens: a.NewTokens(0)}, nil
}

func (s *shop) Options() map[string]any { return map[string]any{"url": s.server.URL} }

func (s *shop) Refusal(status int) any { return map[string]int{"trouble": status} }

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/login" && s.server.Basic(r):
		token, _ := s.tokens.Issue()
		simulator.JSON(w, http.StatusOK, map[string]string{"token": token})
	case !s.tokens.Valid(r.Header.Get("X-Auth-Token")):
		simulator.JSON(w, http.StatusUnauthorized, s.Refusal(http.StatusUnauthorized))
	default:
		simulator.JSON(w, http.StatusOK, map[string]string{"hello": s.server.Setting("name")})
	}
}

type client struct {
	t      *testing.T
	server *simulator.Server
	http   *http.Client
	token  string
}

func newClient(t *testing.T, a *simulator.Server) *client {
	raw, err := os.ReadFile(a.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(raw)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t: t, server: a, http: &http.Client{Transport: transport, Timeout: time.Minute}}
}

func (c *client) get(path string) (int, http.Header, string, error) {
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.server.URL+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if path == "/login" {
		r.SetBasicAuth(c.server.User, c.server.Password)
	} else {
		r.Header.Set("X-Auth-Token", c.token)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body), nil
}

func (c *client) login() {
	_, _, body, err := c.get("/login")
	if err != nil {
		c.t.Fatal(err)
	}
	c.token = strings.Split(body, `"`)[3]
}

func (c *client) want(path string, status int, body string) http.Header {
	c.t.Helper()
	got, header, text, err := c.get(path)
	if err != nil || got != status || text != body {
		c.t.Errorf("%s: %d %s, %v; want %d %s", path, got, text, err, status, body)
	}
	return header
}

func TestFaultsAndLog(t *testing.T) {
	a := simulatortest.Start(t, newShop, simulator.Options{Settings: map[string]string{"name": "a"}})
	c := newClient(t, a)
	c.want("/x", 401, `{"trouble":401}`)
	c.login()
	c.want("/x", 200, `{"hello":"a"}`)
	a.Set("name", "b")
	c.want("/x", 200, `{"hello":"b"}`)

	remove := a.Inject(simulator.Fault{Path: "/x", Skip: 1, Times: 1, Status: 503, RetryAfter: 2 * time.Second})
	c.want("/x", 200, `{"hello":"b"}`)
	if h := c.want("/x", 503, `{"trouble":503}`); h.Get("Retry-After") != "2" {
		t.Errorf("Retry-After: %q", h.Get("Retry-After"))
	}
	c.want("/x", 200, `{"hello":"b"}`)
	remove()

	defer a.Inject(simulator.Fault{Path: "/gone", Drop: true})()
	if _, _, _, err := c.get("/gone"); err == nil {
		t.Error("an answer came over a connection that was cut")
	}
	defer a.Inject(simulator.Fault{Path: "/lost", Lost: true})()
	if _, _, _, err := c.get("/lost"); err == nil {
		t.Error("an answer came that was lost")
	}
	began := time.Now()
	defer a.Inject(simulator.Fault{Path: "/slow", Delay: 50 * time.Millisecond})()
	c.want("/slow", 200, `{"hello":"b"}`)
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("a slow answer took %v", took)
	}
	defer a.Inject(simulator.Fault{Path: "/expired", Expire: true})()
	c.want("/expired", 401, `{"trouble":401}`)
	c.want("/x", 401, `{"trouble":401}`)

	text := a.Transcript()
	if strings.Contains(text, c.token) || strings.Contains(text, a.Password) {
		t.Errorf("a secret is in the log:\n%s", text)
	}
	if !strings.HasPrefix(text, "> GET /x\n< 401 {\"trouble\":401}\n\n> GET /login (Basic)\n< 200 {\"token\":\"***\"}\n\n> GET /x (X-Auth-Token)\n") {
		t.Errorf("transcript:\n%s", text)
	}
}

func TestTokensEnd(t *testing.T) {
	a := simulatortest.Start(t, newShop, simulator.Options{TokenLife: time.Millisecond})
	c := newClient(t, a)
	c.login()
	wait.Until(t, "a token of a millisecond expires", func() bool {
		status, _, _, err := c.get("/x")
		if err != nil {
			t.Fatal(err)
		}
		return status == 401
	})
}

func TestJobs(t *testing.T) {
	a := simulatortest.Start(t, newShop, simulator.Options{JobTime: 200 * time.Millisecond})
	boom := errors.New("boom")
	follow := func(work func() error) []simulator.State {
		job := a.Jobs.Start("test", work)
		seen := []simulator.State{job.State}
		for job.State != simulator.Done && job.State != simulator.Failed {
			time.Sleep(time.Millisecond)
			job, _ = a.Jobs.Get(job.ID)
			if job.State != seen[len(seen)-1] {
				seen = append(seen, job.State)
			}
		}
		if same, ok := a.Jobs.ByNumber(job.Number); !ok || same.ID != job.ID {
			t.Errorf("job %d is %+v", job.Number, same)
		}
		return seen
	}
	done := false
	if seen := follow(func() error { done = true; return nil }); fmt.Sprint(seen) != "[queued running done]" || !done {
		t.Errorf("states %v, done: %v", seen, done)
	}
	if seen := follow(func() error { return boom }); fmt.Sprint(seen) != "[queued running failed]" {
		t.Errorf("states %v", seen)
	}
	a.Jobs.FailNext(boom)
	done = false
	if seen := follow(func() error { done = true; return nil }); fmt.Sprint(seen) != "[queued running failed]" || done {
		t.Errorf("states %v, done: %v", seen, done)
	}
}

func TestLimitsRefuseBytes(t *testing.T) {
	a := simulatortest.Start(t, newShop, simulator.Options{})
	limit := int64(8 << 20)
	data := make([]byte, 16<<20)
	for name, make := range map[string]func(string) error{
		"made":  func(name string) error { return a.Tree.Make(name, 0o750) },
		"mkdir": func(name string) error { return os.Mkdir(a.Tree.Path(name), 0o750) },
		"full": func(name string) error {
			return errors.Join(os.Mkdir(a.Tree.Path(name), 0o750), os.Mkdir(a.Tree.Path(name+"/sub"), 0o700),
				os.WriteFile(a.Tree.Path(name+"/sub/old"), data[:1<<20], 0o640), os.Chown(a.Tree.Path(name), 12, 34))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := make(name); err != nil {
				t.Fatal(err)
			}
			if err := a.Tree.Limit(name, &limit); err != nil {
				t.Fatal(err)
			}
			st, err := os.Stat(a.Tree.Path(name))
			if err != nil || st.Mode().Perm() != 0o750 {
				t.Errorf("%v, %v, want the mode 0750", st, err)
			}
			if name == "full" {
				if own := st.Sys().(*syscall.Stat_t); own.Uid != 12 || own.Gid != 34 {
					t.Errorf("owned by %d:%d", own.Uid, own.Gid)
				}
				if old, err := os.Stat(a.Tree.Path(name + "/sub/old")); err != nil || old.Size() != 1<<20 || old.Mode() != 0o640 {
					t.Errorf("previous contents: %v, %v", old, err)
				}
			}
			if err := os.WriteFile(a.Tree.Path(name+"/data"), data, 0o600); !errors.Is(err, unix.EDQUOT) {
				t.Errorf("write past the limit: %v", err)
			}
			u, err := a.Tree.Usage(name)
			if err != nil || u.Bytes > limit || u.Bytes < limit-1<<20 {
				t.Errorf("usage %+v, %v", u, err)
			}
			if err := a.Tree.Limit(name, nil); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(a.Tree.Path(name+"/data"), data, 0o600); err != nil {
				t.Errorf("without a limit: %v", err)
			}
			if err := a.Tree.Remove(name, false); !errors.Is(err, unix.ENOTEMPTY) {
				t.Errorf("remove: %v", err)
			}
			if err := a.Tree.Remove(name, true); err != nil || a.Tree.IsDir(name) {
				t.Errorf("remove all: %v", err)
			}
		})
	}
	if left, err := os.ReadDir(a.Mount()); len(left) != 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestNamesStayInside creates links and uses paths that lead out of the tree.
func TestNamesStayInside(t *testing.T) {
	a := simulatortest.Start(t, newShop, simulator.Options{})
	out := t.TempDir()
	if err := os.Symlink(out, a.Tree.Path("link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "link/x", "/etc/x"} {
		if err := a.Tree.Make(name, 0o755); err == nil {
			t.Errorf("made %s", name)
		}
		if err := a.Tree.Limit(filepath.Dir(name), nil); err == nil {
			t.Errorf("limited %s", filepath.Dir(name))
		}
	}
	if made, err := os.ReadDir(out); len(made) != 0 || err != nil {
		t.Errorf("created outside: %v, %v", made, err)
	}
}

func TestRates(t *testing.T) {
	a := simulatortest.Start(t, newShop, simulator.Options{})
	f, err := os.Create(a.Tree.Path("data"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	wait.For(t, func() error {
		r := a.Tree.Rates(time.Minute)
		if r.Writes == 0 || r.BytesWritten*r.Window.Seconds() <= 8<<20-1<<18 {
			return fmt.Errorf("after 8 MiB the rates are %+v", r)
		}
		return nil
	})
}

func TestCommand(t *testing.T) {
	a := simulatortest.Start(t, newShop, simulator.Options{})
	path, err := a.Command("lfs", func(_ context.Context, args []string) simulator.Output {
		return simulator.Output{Stdout: fmt.Sprintf("%q\n", args), Stderr: "warning\n", Code: 3}
	})
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), path, "quota", "-p", "", "a b", "tab\tnew\nline", `"'$x`)
	c.Env = []string{"PATH=/usr/bin:/bin"}
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || errs.String() != "warning\n" ||
		out.String() != `["quota" "-p" "" "a b" "tab\tnew\nline" "\"'$x"]`+"\n" {
		t.Errorf("%v: %q, %q", err, out.String(), errs.String())
	}
	if e := a.Exchanges(); len(e) != 1 || e[0].Method != "lfs" || e[0].Status != 3 {
		t.Errorf("log: %+v", e)
	}
}

func TestPages(t *testing.T) {
	a := simulatortest.Start(t, newShop, simulator.Options{PageSize: 2})
	var got []int
	for from, pages := 0, 0; ; {
		page, next := simulator.Page(a, []int{1, 2, 3, 4, 5}, from, 10)
		got = append(got, page...)
		if pages++; next == 0 {
			if fmt.Sprint(got) != "[1 2 3 4 5]" || pages != 3 {
				t.Errorf("%v in %d pages", got, pages)
			}
			return
		}
		from = next
	}
}
