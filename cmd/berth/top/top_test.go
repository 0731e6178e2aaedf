package top

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func newServer(t *testing.T) *clitest.Server {
	f := clitest.New(t, func(a *cli.App) []*cobra.Command { return []*cobra.Command{Command(a)} })
	f.Data("Viewer", `{"viewer":{"user":{"id":"me","email":"a@b"},"projects":[]}}`)
	return f
}

const loads = `{"sessions":{"pageInfo":{},"edges":[
  {"node":{"id":"1","name":"quiet","status":"RUNNING","startedAt":"2026-03-04T11:00:00Z","owner":{"email":"a@b"},"kernels":[{"id":"k","agent":{"name":"node-1"},"stats":{"metrics":[
    {"name":"cpu_util","value":5,"capacity":200,"quality":"MEASURED"},{"name":"mem_used","value":1073741824,"capacity":0,"quality":"MEASURED"}]}}]}},
  {"node":{"id":"2","name":"busy","status":"RUNNING","owner":{"email":"a@b"},"kernels":[
    {"id":"k1","agent":{"name":"node-1"},"stats":{"metrics":[{"name":"cpu_util","value":150,"capacity":200,"quality":"MEASURED"},{"name":"cuda_util","deviceId":"GPU-1","value":80,"quality":"ATTRIBUTED"},{"name":"cuda_util","deviceId":"GPU-2","value":20,"quality":"MEASURED"}]}},
    {"id":"k2","agent":{"name":"node-2"},"stats":{"metrics":[{"name":"cpu_util","value":50,"capacity":200,"quality":"MEASURED"},{"name":"mem_used","value":7,"quality":"UNAVAILABLE"}]}}]}},
  {"node":{"id":"3","name":"new","status":"RUNNING","kernels":[{"id":"k3","agent":null,"stats":{"metrics":[]}}]}}]}}`

func TestTop(t *testing.T) {
	f := newServer(t)
	asked := ""
	f.Answer["SessionLoads"] = func(vars json.RawMessage) string { asked = string(vars); return loads }
	r := f.Run("top")
	lines := strings.Split(strings.TrimSpace(r.Out), "\n")
	if r.Code != 0 || len(lines) != 4 {
		t.Fatalf("%+v", r)
	}
	if !strings.Contains(asked, `"ownerID":"me"`) || !strings.Contains(asked, "RUNNING") {
		t.Errorf("asked for %s", asked)
	}
	for i, want := range [][]string{{"SESSION", "CPU"}, {"busy", "2.00 of 4", "50 % of 2", "node-1,node-2"}, {"quiet", "0.05 of 2", "1 GiB", "node-1", "1h"}, {"new", "-"}} {
		for _, text := range want {
			if !strings.Contains(lines[i], text) {
				t.Errorf("line %d %q lacks %q", i, lines[i], text)
			}
		}
	}
	if r = f.Run("top", "--sort", "mem", "--all"); r.Code != 0 || !strings.Contains(strings.Split(r.Out, "\n")[1], "quiet") || !strings.Contains(r.Out, "OWNER") {
		t.Errorf("by memory: %+v", r)
	}
	if strings.Contains(asked, "ownerID") {
		t.Errorf("--all asked for %s", asked)
	}
	if r = f.Run("top", "-o", "json"); r.Code != 0 || !strings.Contains(r.Out, `"memory": null`) {
		t.Errorf("as JSON: %+v", r)
	}
}

func TestTopOfAgents(t *testing.T) {
	f := newServer(t)
	f.Data("AgentLoads", `{"agents":{"pageInfo":{},"edges":[{"node":{"id":"1","name":"node-1","status":"ALIVE","schedulable":false,"resourceGroup":{"name":"gpu"},"stats":[
	  {"name":"cpu_util","value":390,"capacity":400,"quality":"MEASURED"},{"name":"cuda_util","deviceId":"GPU-1","value":0,"quality":"MEASURED"}]}}]}}`)
	r := f.Run("top", "--agents")
	for _, text := range []string{"node-1", "gpu", "alive, cordoned", "3.90 of 4", "0 %"} {
		if !strings.Contains(r.Out, text) {
			t.Errorf("%+v lacks %q", r, text)
		}
	}
}

func TestTopUsage(t *testing.T) {
	f := newServer(t)
	for _, args := range [][]string{{"top", "--interval", "10ms"}, {"top", "--sort", "size"}, {"top", "x"}} {
		if r := f.Run(args...); r.Code != cli.ExitUsage {
			t.Errorf("%v: %+v", args, r)
		}
	}
}
