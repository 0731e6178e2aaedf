package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/agent/device"
	"github.com/berthhq/berth/internal/fixture"
)

const acme = `
name: acme-1
description: One card
plugin: acme
config: {at: "http://${server:smi}"}
allow: {capabilities: [CAP_IPC_LOCK]}
files: {sys/class/acme/temperature: "40\n"}
commands: {acme-smi: [{stdout: "fine\n"}]}
servers: {smi: {kind: http, routes: {/: {body: fine}}}}
changes: {hot: {files: {sys/class/acme/temperature: "99\n"}}}
expect: {devices: 1}
`

// options returns the options of a platform with the programs of these plugins.
func options(t *testing.T, plugins ...string) upOptions {
	t.Helper()
	o := upOptions{data: t.TempDir(), bin: t.TempDir()}
	if err := os.MkdirAll(o.plugin(""), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range plugins {
		if err := os.WriteFile(o.plugin(p), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPluginsOfMadeUpMachines(t *testing.T) {
	o := options(t, "acme", "mock", "nvidia", "other")
	o.fixtures = []string{file(t, "acme.yaml", acme), "mock-4"}
	o.pluginFile = file(t, "plugins.yaml", "plugins: [{path: "+o.plugin("other")+", force: true}]")
	machines, err := o.machines()
	if err != nil {
		t.Fatal(err)
	}
	defer machines.close()
	list, err := o.accelerators(machines)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]agent.PluginConfig{}
	for _, p := range list {
		got[filepath.Base(p.Path)] = p
	}
	if len(list) != 4 || len(got) != 4 || got["nvidia"].Force || !got["other"].Force {
		t.Errorf("plugins: %+v", list)
	}
	want := agent.PluginConfig{
		Path: o.plugin("acme"), Force: true, Roots: machines[0].Roots(), ConfigJSON: machines[0].Config(),
		Allow: device.Allow{Capabilities: []string{"CAP_IPC_LOCK"}},
	}
	if d := cmp.Diff(want, got["acme"], protocmp.Transform()); d != "" {
		t.Error(d)
	}
	if c := string(got["mock"].ConfigJSON); c != `{"device_nodes":true,"devices":4,"seed":1}` {
		t.Errorf("config of mock: %s", c)
	}
	if err := machines.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := o.machines(); err != nil {
		t.Errorf("the next start: %v", err)
	}
}

func TestMachinesThatCannotBe(t *testing.T) {
	machine := file(t, "acme.yaml", acme)
	for _, row := range []struct {
		name string
		o    upOptions
		want string
	}{
		{"unknown", upOptions{fixtures: []string{"no-such"}}, "no-such is neither a file nor one of"},
		{"no program", upOptions{fixtures: []string{"mock-4"}}, "its plugin: stat"},
		{"two of a kind", upOptions{fixtures: []string{machine, machine}}, "acme-1 already has plugin acme"},
		{"two mocks", upOptions{fixtures: []string{"mock-4"}, mock: 2}, "--mock-accelerators already has plugin mock"},
	} {
		o := options(t, "acme")
		o.fixtures, o.mock = row.o.fixtures, row.o.mock
		if _, err := o.machines(); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v; want %s", row.name, err, row.want)
		}
	}
	o := options(t, "acme")
	o.fixtures, o.pluginFile = []string{machine}, file(t, "plugins.yaml", "plugins: [{path: "+o.plugin("acme")+"}]")
	machines, err := o.machines()
	if err != nil {
		t.Fatal(err)
	}
	defer machines.close()
	if _, err := o.accelerators(machines); err == nil || !strings.Contains(err.Error(), "is listed twice") {
		t.Errorf("of two minds: %v", err)
	}
}

func TestFixtureCommands(t *testing.T) {
	o := options(t, "acme")
	o.fixtures = []string{file(t, "acme.yaml", acme)}
	machines, err := o.machines()
	if err != nil {
		t.Fatal(err)
	}
	defer machines.close()
	run := func(args ...string) (string, error) {
		cmd, out := root(), &bytes.Buffer{}
		cmd.SetArgs(append([]string{"fixture"}, args...))
		cmd.SetOut(out)
		err := cmd.Execute()
		return out.String(), err
	}
	if out, err := run("ls"); err != nil || strings.Count(out, "\n") != len(fixture.Names())+1 || !strings.Contains(out, "mock-4") {
		t.Errorf("ls: %q, %v", out, err)
	}
	for _, args := range [][]string{{"change", "acme-1", "hot"}, {"hang", "acme-1", "smi"}, {"heal", "acme-1", "smi"}, {"flood", "acme-1", "acme-smi"}, {"fail", "acme-1", "acme-smi", "--stderr", "no"}} {
		if out, err := run(append(args, "--data", o.data)...); err != nil {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
	if text, _ := os.ReadFile(machines[0].Roots().Sys + "/class/acme/temperature"); string(text) != "99\n" {
		t.Errorf("after the change: %q", text)
	}
	for _, args := range [][]string{{"change", "acme-1", "cold"}, {"hang", "acme-1", "x"}, {"change", "acme-2", "hot"}, {"change", "../fixtures/acme-1", "hot"}} {
		if out, err := run(append(args, "--data", o.data)...); err == nil {
			t.Errorf("%v: %q", args, out)
		}
	}
}
