package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

const (
	ticket  = "https://jupyter--s1.apps.example.org/?ticket=t"
	address = "https://jupyter--s1.apps.example.org/"
	opened  = `{"payload":{"url":"` + ticket + `","address":"` + address + `","expiresAt":"2026-03-04T12:00:30Z"}}`
)

func TestOpenPrintsTheAddress(t *testing.T) {
	f := newServer(t)
	asked := clitest.Record(f, map[string]string{"OpenApp": opened, "Apps": `{"node":{"apps":[` + jupyter + `]}}`})
	for args, want := range map[string]string{
		"train jupyter --path /tree/data?a=b": `{"input":{"session":"s1","app":"jupyter","path":"/tree/data?a=b"}}`,
		"train 8501 --kernel sub1":            `{"input":{"session":"s1","port":8501,"kernel":"k1"}}`,
		"train":                               `{"input":{"session":"s1","app":"jupyter"}}`,
	} {
		r := f.Run(append([]string{"app", "open"}, strings.Fields(args)...)...)
		if r.Code != 0 || r.Out != ticket+"\n" || !strings.Contains(r.Errors, "within 30s") || asked["OpenApp"] != want {
			t.Errorf("%s: %+v asked %s, want %s", args, r, asked["OpenApp"], want)
		}
	}
	f.Data("Apps", `{"node":{"apps":[`+jupyter+`,`+board+`]}}`)
	if r := f.Run("app", "open", "train"); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, "jupyter, tensorboard") {
		t.Errorf("%+v", r)
	}
	f.Data("Apps", `{"node":{"apps":[]}}`)
	if r := f.Run("app", "open", "train"); r.Code != cli.ExitNotFound || !strings.Contains(r.Errors, "port") {
		t.Errorf("%+v", r)
	}
	f.Data("Sessions", `{"sessions":`+clitest.Edges(`{"id":"s1","name":"train","status":"PENDING"}`)+`}`)
	if r := f.Run("app", "open", "train"); r.Code != cli.ExitConflict || !strings.Contains(r.Errors, "is pending") {
		t.Errorf("%+v", r)
	}
}

// TestOpenInABrowser runs a script in place of the program that opens a browser.
func TestOpenInABrowser(t *testing.T) {
	f := newServer(t)
	f.Data("OpenApp", opened)
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	script := func(text string) {
		for _, name := range []string{"xdg-open", "open"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	env := map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.URL, "DISPLAY": ":0"}

	script("printf %s \"$1\" > " + seen)
	r := f.RunWith(env, "", "app", "open", "train", "jupyter")
	if got, _ := os.ReadFile(seen); r.Code != 0 || string(got) != ticket || r.Out != address+"\n" || r.Errors != "" {
		t.Errorf("%+v opened %q", r, got)
	}
	os.Remove(seen)
	for _, more := range [][]string{{"--no-browser"}, {"-o", "json"}} {
		if r := f.RunWith(env, "", append([]string{"app", "open", "train", "jupyter"}, more...)...); r.Code != 0 || !strings.Contains(r.Out, ticket) {
			t.Errorf("%q: %+v", more, r)
		}
	}
	f.Data("OpenApp", strings.Replace(opened, ticket, "file:///etc/passwd", 1))
	if r := f.RunWith(env, "", "app", "open", "train", "jupyter"); !strings.Contains(r.Errors, "not a web address") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(seen); err == nil {
		t.Error("a browser was opened")
	}

	f.Data("OpenApp", opened)
	script("exit 3")
	if r := f.RunWith(env, "", "app", "open", "train", "jupyter"); r.Code != 0 || r.Out != ticket+"\n" || !strings.Contains(r.Errors, "exit status 3") {
		t.Errorf("%+v", r)
	}
}
