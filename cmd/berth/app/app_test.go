package app

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

const (
	jupyter = `{"name":"jupyter","title":"JupyterLab","kernelId":"k0","port":8888,"source":"IMAGE","status":"RUNNING","reason":"","startable":true,
		"sharing":{"id":"h","audience":"PROJECT","networks":["10.1.0.0/16"],"expiresAt":"2026-03-04T20:00:00Z","createdAt":"2026-03-04T11:00:00Z"}}`
	board = `{"name":"tensorboard","title":"TensorBoard","kernelId":"k0","port":6006,"source":"CATALOGUE","status":"FAILED",
		"reason":"tensorboard ended with exit code 1","startable":true,"sharing":null}`
	found = `{"name":"8501","title":"8501","kernelId":"k0","port":8501,"source":"FOUND","status":"RUNNING","reason":"","startable":false,"sharing":null}`
)

func TestList(t *testing.T) {
	f := newServer(t)
	asked := clitest.Record(f, map[string]string{"Apps": `{"node":{"apps":[` + jupyter + `,` + board + `,` + found + `]}}`})
	f.Golden(map[string][]string{
		"app-ls":      {"app", "ls", "train"},
		"app-ls-json": {"app", "ls", "train", "-o", "json"},
	})
	if want := `{"id":"s1"}`; asked["Apps"] != want {
		t.Errorf("asked %s, want %s", asked["Apps"], want)
	}
	for _, name := range []string{"sub1", "k1"} {
		r := f.Run("app", "ls", "train", "--kernel", name)
		if want := `{"id":"s1","kernel":"k1"}`; r.Code != 0 || asked["Apps"] != want {
			t.Errorf("%+v asked %s, want %s", r, asked["Apps"], want)
		}
	}
	if r := f.Run("app", "ls", "train", "--kernel", "sub2"); r.Code != cli.ExitNotFound || !strings.Contains(r.Errors, "main, sub1") {
		t.Errorf("%+v", r)
	}
	f.Data("Sessions", `{"sessions":`+clitest.Edges(`{"id":"s1","name":"train","status":"PENDING"}`)+`}`)
	f.Data("Apps", `{"node":{"apps":[]}}`)
	if r := f.Run("app", "ls", "train"); r.Code != 0 || !strings.Contains(r.Errors, "session train is pending") {
		t.Errorf("%+v", r)
	}
}

func TestRestartStopUnshare(t *testing.T) {
	f := newServer(t)
	asked := clitest.Record(f, map[string]string{
		"RestartApp": `{"payload":{"app":` + jupyter + `}}`,
		"StopApp":    `{"payload":{"app":` + jupyter + `}}`,
		"UnshareApp": `{"payload":{"app":` + jupyter + `}}`,
	})
	for operation, args := range map[string][]string{
		"RestartApp": {"app", "restart", "train", "jupyter"},
		"StopApp":    {"app", "stop", "train", "jupyter"},
		"UnshareApp": {"app", "unshare", "train", "jupyter"},
	} {
		r := f.Run(append(args, "--kernel", "sub1")...)
		if want := `{"input":{"session":"s1","app":"jupyter","kernel":"k1"}}`; r.Code != 0 || asked[operation] != want || !strings.Contains(r.Out, "JupyterLab") {
			t.Errorf("%s: %+v asked %s, want %s", operation, r, asked[operation], want)
		}
	}
	f.Data("StopApp", `{"code":"FAILED_PRECONDITION","message":"only the session itself can stop this app"}`)
	if r := f.Run("app", "stop", "train", "8501"); r.Code != cli.ExitConflict || !strings.Contains(r.Errors, "only the session itself") {
		t.Errorf("%+v", r)
	}
}

func TestLogs(t *testing.T) {
	f := newServer(t)
	asked := clitest.Record(f, map[string]string{"AppLog": `{"node":{"appLog":"listening\nfailed\n"}}`})
	if r := f.Run("app", "logs", "train", "jupyter"); r.Code != 0 || r.Out != "listening\nfailed\n" {
		t.Errorf("%+v", r)
	}
	if want := `{"id":"s1","app":"jupyter","bytes":16384}`; asked["AppLog"] != want {
		t.Errorf("asked %s, want %s", asked["AppLog"], want)
	}
	f.Run("app", "logs", "train", "jupyter", "--bytes", "1k", "--kernel", "sub1")
	if want := `{"id":"s1","app":"jupyter","kernel":"k1","bytes":1024}`; asked["AppLog"] != want {
		t.Errorf("asked %s, want %s", asked["AppLog"], want)
	}
}

func TestShare(t *testing.T) {
	f := newServer(t)
	asked := clitest.Record(f, map[string]string{"ShareApp": `{"payload":{"app":` + jupyter + `}}`})
	for _, c := range []struct{ args, want string }{
		{"--with project", `{"session":"s1","app":"jupyter","audience":"PROJECT"}`},
		{"--with everyone --expires 8h --network 10.1.0.0/16 --network 10.2.0.0/16",
			`{"session":"s1","app":"jupyter","audience":"EVERYONE","expiresAt":"2026-03-04T20:00:00Z","networks":["10.1.0.0/16","10.2.0.0/16"]}`},
	} {
		r := f.Run(append([]string{"app", "share", "train", "jupyter"}, strings.Fields(c.args)...)...)
		var got struct{ Input json.RawMessage }
		if err := json.Unmarshal([]byte(asked["ShareApp"]), &got); err != nil {
			t.Fatal(err)
		}
		if r.Code != 0 || string(got.Input) != c.want || !strings.Contains(r.Out, "project from 10.1.0.0/16 for 8h0m") {
			t.Errorf("%s: %+v asked %s, want %s", c.args, r, got.Input, c.want)
		}
	}
	for args, word := range map[string]string{
		"":                              "--with",
		"--with nobody":                 "project, everyone",
		"--with project --expires soon": "--expires",
	} {
		r := f.Run(append([]string{"app", "share", "train", "jupyter"}, strings.Fields(args)...)...)
		if r.Code != cli.ExitUsage || !strings.Contains(r.Errors, word) {
			t.Errorf("%s: %+v", args, r)
		}
	}
	f.Data("ShareApp", `{"code":"PERMISSION_DENIED","message":"not allowed by policy","field":"audience"}`)
	if r := f.Run("app", "share", "train", "jupyter", "--with", "everyone"); r.Code != cli.ExitDenied || !strings.Contains(r.Errors, "see --with") {
		t.Errorf("%+v", r)
	}
}
