package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/clitest"
)

// complete returns the proposals of a shell for the last word.
func complete(f *clitest.Server, words ...string) (string, int) {
	r := f.Run(append([]string{cobra.ShellCompNoDescRequestCmd}, words...)...)
	return r.Out, r.Code
}

// TestNounsAreCompleted checks completions of arguments and flags of all kinds.
func TestNounsAreCompleted(t *testing.T) {
	f := clitest.New(t, commands)
	list := func(operation, field, node string) {
		f.Data(operation, `{"`+field+`":{"edges":[{"node":`+node+`}],"pageInfo":{}}}`)
	}
	list("Sessions", "sessions", `{"id":"1","name":"train"}`)
	list("Agents", "agents", `{"id":"1","name":"node-1"}`)
	list("Projects", "projects", `{"id":"1","name":"vision"}`)
	list("ResourceGroups", "resourceGroups", `{"id":"1","name":"gpu"}`)
	list("Users", "users", `{"id":"1","email":"kim@example.org"}`)
	list("Vfolders", "vfolders", `{"id":"1","name":"data"}`)
	list("Deployments", "deployments", `{"id":"1","name":"llama"}`)
	list("SessionGroups", "sessionGroups", `{"id":"1","name":"pair"}`)
	list("SessionTemplates", "sessionTemplates", `{"id":"1","name":"notebook"}`)
	list("Tasks", "tasks", `{"id":"task-1","kind":"scan"}`)
	list("AccessTokens", "accessTokens", `{"id":"token-1","name":"laptop"}`)
	list("Images", "images", `{"id":"1","name":"python:3.12"}`)
	for want, words := range map[string][]string{
		"train":           {"session", "show", ""},
		"node-1":          {"agent", "cordon", "node-0", ""},
		"vision":          {"admin", "project", "add", ""},
		"kim@example.org": {"admin", "project", "add", "vision", ""},
		"gpu":             {"session", "create", "--group", ""},
		"data":            {"folder", "rm", ""},
		"llama":           {"deploy", "show", ""},
		"pair":            {"session-group", "delete", ""},
		"notebook":        {"template", "delete", ""},
		"task-1":          {"admin", "task", "show", ""},
		"token-1":         {"token", "revoke", ""},
		"python:3.12":     {"run", ""},
	} {
		if out, code := complete(f, words...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%v: %q (%d), want %s", words, out, code, want)
		}
	}
	for _, words := range [][]string{{"session-group", "create", ""}, {"agent", "show", "node-1", ""}, {"admin", "user", "create", ""}} {
		if out, code := complete(f, words...); code != 0 || strings.Contains(out, "\n\n") || !strings.HasPrefix(out, ":") {
			t.Errorf("%v proposes %q (%d)", words, out, code)
		}
	}
}

// TestCompletionIsQuiet checks that a refusal, a missing login and a slow server give no proposals and no error.
func TestCompletionIsQuiet(t *testing.T) {
	f := clitest.New(t, commands)
	f.Data("Agents", `{"code":"PERMISSION_DENIED","message":"no"}`)
	if out, code := complete(f, "agent", "show", ""); code != 0 || !strings.HasPrefix(out, ":") {
		t.Errorf("after a refusal: %q (%d)", out, code)
	}
	f.Answer["Agents"] = func(json.RawMessage) string { time.Sleep(3 * time.Second); return `{}` }
	begun := time.Now()
	if out, code := complete(f, "agent", "show", ""); code != 0 || !strings.HasPrefix(out, ":") {
		t.Errorf("with a slow server: %q (%d) after %s", out, code, time.Since(begun))
	}
	if r := f.RunWith(map[string]string{"HOME": t.TempDir()}, "", cobra.ShellCompNoDescRequestCmd, "agent", "show", ""); r.Code != 0 || !strings.HasPrefix(r.Out, ":") {
		t.Errorf("without a login: %+v", r)
	}
}
