// Package clitest runs command lines against a fake server. Each test defines the server's answers.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Main runs the tests of a package in UTC.
func Main(m *testing.M) {
	time.Local = time.UTC
	flag.Parse()
	os.Exit(m.Run())
}

// Now is the time of every command in tests.
var Now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// Server is a server that answers operations by name.
type Server struct {
	t        *testing.T
	commands func(a *cli.App) []*cobra.Command
	URL      string
	// Answer has a function for each operation. It returns data, or an error as
	// {"code":…,"message":…} that can have more extensions.
	Answer map[string]func(vars json.RawMessage) string
	// Seen, if set, is called with each GraphQL request and its body.
	Seen func(r *http.Request, body []byte)
	// Stream has a function for each subscription, which sends events. If it returns false, the
	// connection is cut.
	Stream map[string]func(ctx context.Context, vars json.RawMessage, send func(data string)) (complete bool)
	Rest   http.HandlerFunc

	mu    sync.Mutex
	Calls []string
}

// New starts a server for the tests of these commands.
func New(t *testing.T, commands func(a *cli.App) []*cobra.Command) *Server {
	f := &Server{
		t: t, commands: commands,
		Answer: map[string]func(json.RawMessage) string{},
		Stream: map[string]func(context.Context, json.RawMessage, func(string)) bool{},
	}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	f.URL = s.URL
	return f
}

// Data sets the answer of an operation to constant data.
func (f *Server) Data(operation, data string) {
	f.Answer[operation] = func(json.RawMessage) string { return data }
}

var operationName = regexp.MustCompile(`(?:query|mutation|subscription) (\w+)`)

// ServeHTTP answers GraphQL operations by name, and passes other paths to Rest.
func (f *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/graphql" {
		f.called(r.Method + " " + r.URL.Path)
		if f.Rest == nil {
			f.t.Errorf("unexpected %s %s", r.Method, r.URL)
			return
		}
		f.Rest(w, r)
		return
	}
	var req struct {
		Query     string
		Variables json.RawMessage
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		f.t.Error(err)
	}
	if f.Seen != nil {
		f.Seen(r, body)
	}
	name := operationName.FindStringSubmatch(req.Query)[1]
	f.called(name)
	if stream := f.Stream[name]; stream != nil {
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(data string) {
			fmt.Fprintf(w, "event: next\ndata: {\"data\":%s}\n\n", strings.ReplaceAll(data, "\n", " "))
			w.(http.Flusher).Flush()
		}
		if !stream(r.Context(), req.Variables, send) {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "event: complete\n\n")
		return
	}
	answer := f.Answer[name]
	if answer == nil {
		answer = f.byName(name)
	}
	if answer == nil {
		f.t.Errorf("unexpected operation %s", name)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	data := answer(req.Variables)
	if strings.HasPrefix(data, `{"code"`) {
		var e struct{ Message string }
		_ = json.Unmarshal([]byte(data), &e)
		fmt.Fprintf(w, `{"errors":[{"message":%q,"extensions":{"requestId":"r-1",%s}]}`, e.Message, data[1:])
		return
	}
	fmt.Fprintf(w, `{"data":%s}`, data)
}

func (f *Server) called(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Calls = append(f.Calls, name)
}

// Count is how often an operation was called.
func (f *Server) Count(name string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.Calls {
		if c == name {
			n++
		}
	}
	return n
}

// Result is the result of a command line.
type Result struct {
	Code        int
	Out, Errors string
}

// Run runs a command line against the fake server.
func (f *Server) Run(args ...string) Result {
	return f.RunWith(map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.URL}, "", args...)
}

// RunWith runs a command line with environment variables and standard input.
func (f *Server) RunWith(env map[string]string, stdin string, args ...string) Result {
	f.t.Helper()
	var out, errs bytes.Buffer
	a := cli.New(strings.NewReader(stdin), &out, &errs, func(k string) string { return env[k] })
	a.Now = func() time.Time { return Now }
	code := a.Main(f.t.Context(), args, f.commands(a)...)
	return Result{code, out.String(), errs.String()}
}

// Golden compares what each command line prints with the file of its name.
func (f *Server) Golden(lines map[string][]string) {
	for name, args := range lines {
		f.t.Run(name, func(t *testing.T) {
			r := f.Run(args...)
			if r.Code != 0 || r.Errors != "" {
				t.Fatalf("%+v", r)
			}
			Golden(t, name, r.Out)
		})
	}
}

// Golden compares a text with testdata/NAME.golden.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -update accepts it:\n%s", path, diff)
	}
}
