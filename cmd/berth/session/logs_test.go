package session

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/clitest"
)

// The log of a container other than the main one is read by its name.
func TestLogsOfAContainer(t *testing.T) {
	f := newServer(t)
	f.Data("Sessions", `{"sessions":{"edges":[{"node":`+sampleSession+`}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.Data("SessionContainers", `{"sessions":`+clitest.Edges(`{"id":"s","name":"train","status":"RUNNING","kernels":[{"id":"k","index":0,"hostname":"main"},{"id":"k1","index":1,"hostname":"sub1"}]}`)+`}`)
	f.Stream["SessionChanged"] = func(_ context.Context, _ json.RawMessage, send func(string)) bool {
		send(`{"sessionChanged":{"id":"s","version":1,"name":"train","status":"TERMINATED","startedAt":"2026-03-04T11:58:00Z","kernels":[{"id":"k","role":"MAIN"},{"id":"k1","role":"SUB"}]}}`)
		return true
	}
	var asked []string
	f.Stream["KernelLogs"] = func(_ context.Context, vars json.RawMessage, send func(string)) bool {
		asked = append(asked, string(vars))
		send(`{"kernelLogs":{"text":"of sub1\n","offset":0,"nextOffset":8}}`)
		return true
	}
	f.Rest = func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("stored " + r.URL.Query().Get("kernel") + "\n"))
	}
	for args, want := range map[string]string{
		"train": "stored \n", "train --kernel sub1": "stored k1\n", "train --kernel k1": "stored k1\n", "train --kernel main": "stored k\n",
	} {
		if r := f.Run(append([]string{"session", "logs"}, strings.Fields(args)...)...); r.Code != 0 || r.Out != want {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if r := f.Run("session", "logs", "train", "--kernel", "sub1", "-n", "1"); r.Code != 0 || r.Out != "of sub1\n" || len(asked) != 1 || !strings.Contains(asked[0], `"kernel":"k1"`) {
		t.Errorf("%+v, asked %s", r, asked)
	}
	if r := f.Run("session", "logs", "train", "--kernel", "sub9"); r.Code == 0 || !strings.Contains(r.Errors, "main, sub1") {
		t.Errorf("a container that does not exist: %+v", r)
	}
}
