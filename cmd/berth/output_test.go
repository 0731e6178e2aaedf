package main

import (
	"os"
	"testing"
)

const sampleSession = `{"id":"01908a5e-0000-7000-8000-000000000001","version":7,"name":"train","type":"batch","status":"running",
  "result":"undefined","exitCode":null,"priority":10,"slots":{"cpu":"1","mem":"1073741824","mock.shares":"0.5"},
  "command":["python3","train.py","--name=a b"],"terminationReason":null,"statusMessage":"",
  "createdAt":"2026-03-04T11:56:48Z","startedAt":"2026-03-04T11:57:00Z","terminatedAt":null,
  "owner":{"id":"u","email":"mina@example.org"},"project":{"id":"p","name":"vision"},
  "resourceGroup":{"id":"g","name":"default"},"image":{"id":"i","reference":"registry:5000/python:3.11","name":"python:3.11"}`

const pendingReport = `"pending":{"stage":"room","position":2,"decidedAt":"2026-03-04T11:59:50Z","summary":"no agent has 0.50 mock.shares free on one device",
  "agents":3,"dropped":[{"check":"cordoned","slot":"","count":1},{"check":"slot_contiguity","slot":"mock.shares","count":2}],
  "limits":[{"scope":"user","holder":"kim","policy":"students","what":"mock.shares","used":"1","requested":"0.5","limit":"1"}],
  "nearest":{"agent":"node-2","slot":"mock.shares","requested":"0.5","free":"0.25"},
  "ahead":[{"position":1,"mine":false,"priority":50,"waitingSince":"2026-03-04T11:50:00Z","stage":"room","why":"It waits for free capacity.","holds":2,"session":null}],
  "suggestions":[{"kind":"slots","text":"With 0.25 mock.shares instead of 0.5 mock.shares it would start now.","field":"slots.mock.shares","from":"0.5","to":"0.25","slots":{"cpu":"1","mock.shares":"0.25"}},
    {"kind":"resource_group","text":"In the resource group spare it would start now.","field":"resourceGroup","from":"g","to":"g2","resourceGroup":"g2"},
    {"kind":"end_session","text":"Once your session old has ended, it would start.","field":"","from":"","to":"s9","session":"s9"}]}`

const sampleDetail = sampleSession + `,"environment":{"A":"1"},"scheduledAt":null,"deadlineAt":null,"domain":{"id":"d","name":"lab"},
  "kernels":[{"id":"k","role":"main","index":0,"hostname":"main","status":"running","statusMessage":"","exitCode":null,
    "slots":{"cpu":"1"},"createdAt":"2026-03-04T11:56:48Z","startedAt":null,"terminatedAt":null,"agent":{"id":"a","name":"node-1"},
    "allocations":[{"id":"x","slot":"mock.shares","amount":"0.5","createdAt":"2026-03-04T11:56:48Z","freedAt":null,"device":{"id":"d","deviceId":"mock-0","model":"M","health":"lost","healthMessage":"no longer reported by its plugin"}},
      {"id":"y","slot":"cpu","amount":"1","createdAt":"2026-03-04T11:56:48Z","freedAt":null,"device":{"id":"c","deviceId":"cpu","model":""}}],
    "stats":{"at":null,"metrics":[{"name":"mem","deviceId":"","value":104857600,"capacity":0,"unit":"bytes","quality":"measured"}]}}],
  "mounts":[{"id":"m","vfolder":{"id":"f","name":"data"},"target":"/home/work/data","subpath":"","readOnly":true},
    {"id":"m2","vfolder":null,"target":"/home/work/theirs","subpath":"in","readOnly":false,"revokedAt":"2026-03-04T11:58:00Z"}],
  "history":[{"id":"h","at":"2026-03-04T11:56:48.25Z","phase":"schedule","fromStatus":"pending","toStatus":"scheduled","result":"success","attempt":1,"code":"","message":"","steps":[]},
    {"id":"h2","at":"2026-03-04T11:56:49Z","phase":"prepare","fromStatus":null,"toStatus":null,"result":"retry","attempt":1,"code":"pull_failed","message":"registry\u001b[31m is away","steps":[]},
    {"id":"h3","at":"2026-03-04T11:58:00Z","phase":"run","fromStatus":null,"toStatus":null,"result":"info","attempt":1,"code":"folder_revoked","message":"folder theirs is in the trash: /home/work/theirs is empty","steps":[]}],
  "usage":[{"slot":"cpu","slotSeconds":"180"},{"slot":"mem","slotSeconds":"193273528320"}],`

const sampleAgent = `{"id":"a","name":"node-1","status":"alive","schedulable":false,"version":"1.0","architecture":"amd64","address":"10.0.0.1",
  "firstSeenAt":"2026-03-01T00:00:00Z","lastSeenAt":"2026-03-04T11:59:58Z","resourceGroup":{"id":"g","name":"default"},
  "capacity":{"cpu":"8","mem":"34359738368","mock.shares":"2"},"occupied":{"cpu":"1","mem":"1073741824","mock.shares":"0.5"}`

func TestSessionOutput(t *testing.T) {
	f := newFake(t)
	f.data("Sessions", `{"sessions":{"edges":[{"node":`+sampleSession+`}},null,{"node":null}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.data("Session", `{"node":`+sampleDetail+`"pending":null}}`)
	f.golden(map[string][]string{
		"session-ls":      {"session", "ls"},
		"session-ls-json": {"session", "ls", "-o", "json"},
		"session-ls-yaml": {"session", "ls", "-o", "yaml"},
		"session-show":    {"session", "show", "train"},
		"session-events":  {"session", "events", "train"},
	})
	f.data("Session", `{"node":`+sampleDetail+pendingReport+`}}`)
	f.data("Why", `{"node":{`+pendingReport+`},"cluster":{"led":true}}`)
	golden(t, "session-why", f.berth("session", "why", "train").out)
	golden(t, "session-why-json", f.berth("session", "why", "train", "-o", "json").out)
	f.data("Session", `{"node":`+sampleDetail+`"pending":null}}`)
	f.data("Why", `{"node":{"pending":null},"cluster":{"led":false}}`)
	golden(t, "session-why-leaderless", f.berth("session", "why", "train").out)
}

func TestAgentOutput(t *testing.T) {
	f := newFake(t)
	f.data("Agents", `{"agents":{"edges":[{"node":`+sampleAgent+`}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.data("Agent", `{"node":`+sampleAgent+`,"devices":[{"id":"d","deviceId":"mock-0","plugin":"mock","vendor":"mock","model":"M1","capacity":{"mock.shares":"1"},
	  "occupied":{"mock.shares":"0.5"},"attributes":{},"numaNode":null,"health":"degraded","healthMessage":"hot","allocatable":false,"rejectReasons":["too old"],
	  "holders":[{"slot":"mock.shares","amount":"0.25","since":"2026-03-04T11:59:58Z","session":{"id":"s","name":"train"},"mine":true},
	    {"slot":"mock.shares","amount":"0.25","since":"2026-03-04T11:59:58Z","session":null,"mine":false}]}],
	  "plugins":[{"name":"mock","version":"1","state":"backoff","message":"crashed","restarts":3,"checks":[{"name":"driver","level":"error","text":"mock.ko is not loaded"},{"name":"nodes","level":"ok","text":""}]}],"probes":[{"name":"overlayfs","ok":false,"detail":"not mounted"}],"stats":[]}}`)
	f.data("AgentDevices", `{"node":{"devices":[
	  {"id":"d2","deviceId":"mock:b/1","plugin":"mock","vendor":"mock","model":"M1","capacity":{"mock.device:half":"1"},"occupied":{"mock.device:half":"1"},"attributes":{},
	    "numaNode":0,"health":"healthy","healthMessage":"","allocatable":true,"rejectReasons":[],"pciAddress":"0000:03:00.0","pcieRoot":"pci0000:00","memoryBytes":42949672960,
	    "processingUnits":66,"groups":[],"enforcement":"mig","parent":{"id":"d1","deviceId":"mock:b"},"links":[],"counters":[{"set":"mock:b","name":"slices","amount":3,"total":7}],
	    "metrics":[{"name":"mock_util","deviceId":"mock:b/1","value":41.6,"capacity":100,"unit":"percent","quality":"attributed"},
	      {"name":"mock_power","deviceId":"mock:b/1","value":0,"capacity":0,"unit":"watt","quality":"unavailable"},
	      {"name":"mock_temperature","deviceId":"mock:b/1","value":55,"capacity":90,"unit":"celsius","quality":"measured"}],
	    "holders":[{"slot":"mock.device:half","amount":"1","since":"2026-03-04T11:59:58Z","session":{"id":"s","name":"train"},"mine":true}]},
	  {"id":"d1","deviceId":"mock:b","plugin":"mock","vendor":"mock","model":"M1","capacity":{},"occupied":{},"attributes":{},"numaNode":0,"health":"healthy","healthMessage":"",
	    "allocatable":false,"rejectReasons":["it is cut in two"],"pciAddress":"0000:03:00.0","pcieRoot":"pci0000:00","memoryBytes":85899345920,"processingUnits":132,"groups":["mock:tray"],
	    "enforcement":"","parent":null,"links":[{"peerId":"mock:a","type":"nvlink","distance":1,"gbps":400,"p2p":true}],"counters":[],"metrics":[],"holders":[]},
	  {"id":"d0","deviceId":"mock:a","plugin":"mock","vendor":"mock","model":"M1","capacity":{"mock.shares":"1"},"occupied":{},"attributes":{},"numaNode":1,"health":"unhealthy",
	    "healthMessage":"too\u001b[31m hot","allocatable":false,"rejectReasons":["too\u001b[31m hot"],"pciAddress":"0000:83:00.0","pcieRoot":"","memoryBytes":85899345920,"processingUnits":132,"groups":[],
	    "enforcement":"advisory","parent":null,"links":[],"counters":[],"metrics":[],"holders":[]},
	  {"id":"c","deviceId":"cpu","plugin":"","vendor":"","model":"","capacity":{"cpu":"8"},"occupied":{"cpu":"2"},"attributes":{},"numaNode":null,"health":"healthy","healthMessage":"",
	    "allocatable":true,"rejectReasons":[],"pciAddress":"","pcieRoot":"","memoryBytes":0,"processingUnits":0,"groups":[],"enforcement":"","parent":null,"links":[],"counters":[],"metrics":[],"holders":[]}]}}`)
	f.golden(map[string][]string{
		"agent-ls":           {"agent", "ls"},
		"agent-show":         {"agent", "show", "node-1"},
		"agent-devices":      {"agent", "devices", "node-1"},
		"agent-devices-wide": {"agent", "devices", "node-1", "--wide"},
		"agent-devices-json": {"agent", "devices", "node-1", "-o", "json"},
	})
}

func TestFolderOutput(t *testing.T) {
	f := newFake(t)
	f.data("Vfolders", `{"vfolders":{"edges":[{"node":{"id":"01908a5e-0000-7000-8000-0000000000f1","name":"자료","status":"ready","createdAt":"2026-03-01T12:00:00Z","deletedAt":null,
	  "owner":{"id":"u","email":"mina@example.org"},"project":null,"quotaScope":{"limitBytes":null,"usedBytes":1,"volume":{"id":"v","name":"main"}},"mountedBy":[{"id":"s","name":"train"}]}}],
	  "pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.golden(map[string][]string{
		"folder-ls": {"folder", "ls"},
	})
}

func TestClusterOutput(t *testing.T) {
	f := newFake(t)
	f.data("Cluster", `{"cluster":{"led":true,"leader":{"id":"m","address":"10.0.0.1:8421","since":"2026-03-01T12:00:00Z","epoch":7},"evictionsStopped":[],
	  "managers":[{"id":"m","address":"10.0.0.1:8421","version":"v1.2","leads":true},{"id":"o","address":"10.0.0.2:8421","version":"","leads":false}],
	  "storageProxies":[{"name":"s1","version":"v1.1","publicURL":"","lastSeenAt":"2026-03-01T12:00:00Z"}]}}`)
	f.data("Versions", `{"agents":{"edges":[{"node":{"name":"node-1","status":"alive","version":"v1.2","lastSeenAt":"2026-03-01T12:00:00Z",
	  "plugins":[{"name":"mock","version":"0.1","state":"running"}]}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.golden(map[string][]string{
		"admin-cluster": {"admin", "cluster"},
	})
}

func TestUsageOutput(t *testing.T) {
	f := newFake(t)
	f.data("Usage", `{"usage":[{"slot":"cpu","slotSeconds":"5400"},{"slot":"mem","slotSeconds":"7730941132800"},{"slot":"mock.shares","slotSeconds":"1800.5"}]}`)
	f.golden(map[string][]string{
		"usage":      {"usage"},
		"usage-json": {"usage", "-o", "json"},
	})
}

func TestAPI(t *testing.T) {
	f := newFake(t)
	f.data("Q", `{"x":{"b":1,"a":"<&>"}}`)
	if r := f.berth("api", "query Q($n: Int, $s: String) { x }", "-F", "n=5", "-f", "s=5"); r.code != 0 || r.out != "{\n  \"x\": {\n    \"b\": 1,\n    \"a\": \"<&>\"\n  }\n}\n" {
		t.Errorf("%+v", r)
	}
	file := t.TempDir() + "/q.graphql"
	if err := os.WriteFile(file, []byte("query Q { x }"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := f.berth("api", "@"+file, "-o", "yaml"); r.code != 0 || r.out != "x:\n  b: 1\n  a: <&>\n" {
		t.Errorf("%+v", r)
	}
	f.data("Q", `{"code":"NOT_FOUND","message":"gone"}`)
	if r := f.berth("api", "query Q { x }"); r.code != exitNotFound || r.errors != "berth: gone (request r-1)\n" {
		t.Errorf("%+v", r)
	}
}
