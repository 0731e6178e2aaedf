package main

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
)

var update = flag.Bool("update", false, "write the golden files anew")

// testMain runs the tests of a package in UTC.
func testMain(m *testing.M) {
	time.Local = time.UTC
	flag.Parse()
	os.Exit(m.Run())
}

// now is the time of every command in tests.
var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// fake is a server that answers operations by name.
type fake struct {
	t        *testing.T
	commands func(a *app) []*cobra.Command
	url      string
	// answer returns data, or an error as {"code":…,"message":…} with more
	// extensions after that.
	answer map[string]func(vars json.RawMessage) string
	// seen, if set, looks at each GraphQL request and its body.
	seen func(r *http.Request, body []byte)
	// stream sends events; returning false cuts the connection.
	stream map[string]func(ctx context.Context, vars json.RawMessage, send func(data string)) (complete bool)
	rest   http.HandlerFunc

	mu    sync.Mutex
	calls []string
}

// newServer starts a server for the tests of these commands.
func newServer(t *testing.T, commands func(a *app) []*cobra.Command) *fake {
	f := &fake{
		t: t, commands: commands,
		answer: map[string]func(json.RawMessage) string{},
		stream: map[string]func(context.Context, json.RawMessage, func(string)) bool{},
	}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	f.url = s.URL
	return f
}

// data answers an operation with the same data always.
func (f *fake) data(operation, data string) {
	f.answer[operation] = func(json.RawMessage) string { return data }
}

var operationName = regexp.MustCompile(`(?:query|mutation|subscription) (\w+)`)

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/graphql" {
		f.called(r.Method + " " + r.URL.Path)
		if f.rest == nil {
			f.t.Errorf("unexpected %s %s", r.Method, r.URL)
			return
		}
		f.rest(w, r)
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
	if f.seen != nil {
		f.seen(r, body)
	}
	name := operationName.FindStringSubmatch(req.Query)[1]
	f.called(name)
	if stream := f.stream[name]; stream != nil {
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
	answer := f.answer[name]
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

func (f *fake) called(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, name)
}

func (f *fake) count(name string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c == name {
			n++
		}
	}
	return n
}

// result is what a command line did.
type result struct {
	code        int
	out, errors string
}

// berth runs a command line against the fake server.
func (f *fake) berth(args ...string) result {
	return f.with(map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.url}, "", args...)
}

func (f *fake) with(env map[string]string, stdin string, args ...string) result {
	f.t.Helper()
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(stdin), &out, &errs, func(k string) string { return env[k] })
	a.now = func() time.Time { return now }
	code := a.main(f.t.Context(), args, f.commands(a)...)
	return result{code, out.String(), errs.String()}
}

// golden compares what each command line prints with the file of its name.
func (f *fake) golden(lines map[string][]string) {
	for name, args := range lines {
		f.t.Run(name, func(t *testing.T) {
			r := f.berth(args...)
			if r.code != 0 || r.errors != "" {
				t.Fatalf("%+v", r)
			}
			golden(t, name, r.out)
		})
	}
}

// golden compares a text with testdata/NAME.golden.
func golden(t *testing.T, name, got string) {
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
