package session

import (
	"testing"

	"github.com/berthhq/berth/cmd/berth/clitest"
)

const sampleSession = `{"id":"01908a5e-0000-7000-8000-000000000001","version":7,"name":"train","type":"BATCH","status":"RUNNING",
  "result":"UNDEFINED","exitCode":null,"priority":10,"slots":{"cpu":"1","mem":"1073741824","mock.shares":"0.5"},
  "command":["python3","train.py","--name=a b"],"terminationReason":null,"statusMessage":"",
  "createdAt":"2026-03-04T11:56:48Z","startedAt":"2026-03-04T11:57:00Z","terminatedAt":null,
  "owner":{"id":"u","email":"mina@example.org"},"project":{"id":"p","name":"vision"},
  "resourceGroup":{"id":"g","name":"default"},"image":{"id":"i","reference":"registry:5000/python:3.11","name":"python:3.11"}`

const pendingReport = `"pending":{"stage":"ROOM","position":2,"decidedAt":"2026-03-04T11:59:50Z","summary":"no agent has 0.50 mock.shares free on one device",
  "agents":3,"dropped":[{"check":"cordoned","slot":"","count":1},{"check":"slot_contiguity","slot":"mock.shares","count":2}],
  "limits":[{"scope":"USER","holder":"kim","policy":"students","what":"mock.shares","used":"1","requested":"0.5","limit":"1"}],
  "nearest":{"agent":"node-2","slot":"mock.shares","requested":"0.5","free":"0.25"},
  "ahead":[{"position":1,"mine":false,"priority":50,"waitingSince":"2026-03-04T11:50:00Z","stage":"ROOM","why":"It waits for free capacity.","holds":2,"session":null}],
  "suggestions":[{"kind":"SLOTS","text":"With 0.25 mock.shares instead of 0.5 mock.shares it would start now.","field":"slots.mock.shares","from":"0.5","to":"0.25","slots":{"cpu":"1","mock.shares":"0.25"}},
    {"kind":"RESOURCE_GROUP","text":"In the resource group spare it would start now.","field":"resourceGroup","from":"g","to":"g2","resourceGroup":"g2"},
    {"kind":"END_SESSION","text":"Once your session old has ended, it would start.","field":"","from":"","to":"s9","session":"s9"}]}`

const sampleDetail = sampleSession + `,"environment":{"A":"1"},"scheduledAt":null,"deadlineAt":null,"domain":{"id":"d","name":"lab"},
  "kernels":[{"id":"k","role":"MAIN","index":0,"hostname":"main","status":"RUNNING","statusMessage":"","exitCode":null,
    "slots":{"cpu":"1"},"createdAt":"2026-03-04T11:56:48Z","startedAt":null,"terminatedAt":null,"agent":{"id":"a","name":"node-1"},
    "allocations":[{"id":"x","slot":"mock.shares","amount":"0.5","createdAt":"2026-03-04T11:56:48Z","freedAt":null,"device":{"id":"d","deviceId":"mock-0","model":"M","health":"LOST","healthMessage":"no longer reported by its plugin"}},
      {"id":"y","slot":"cpu","amount":"1","createdAt":"2026-03-04T11:56:48Z","freedAt":null,"device":{"id":"c","deviceId":"cpu","model":""}}],
    "stats":{"at":null,"metrics":[{"name":"mem","deviceId":"","value":104857600,"capacity":0,"unit":"bytes","quality":"MEASURED"}]}}],
  "mounts":[{"id":"m","vfolder":{"id":"f","name":"data"},"target":"/home/work/data","subpath":"","readOnly":true},
    {"id":"m2","vfolder":null,"target":"/home/work/theirs","subpath":"in","readOnly":false,"revokedAt":"2026-03-04T11:58:00Z"}],
  "history":[{"id":"h","at":"2026-03-04T11:56:48.25Z","phase":"schedule","fromStatus":"PENDING","toStatus":"SCHEDULED","result":"SUCCESS","attempt":1,"code":"","message":"","steps":[]},
    {"id":"h2","at":"2026-03-04T11:56:49Z","phase":"prepare","fromStatus":null,"toStatus":null,"result":"RETRY","attempt":1,"code":"pull_failed","message":"registry\u001b[31m is away","steps":[]},
    {"id":"h3","at":"2026-03-04T11:58:00Z","phase":"run","fromStatus":null,"toStatus":null,"result":"INFO","attempt":1,"code":"folder_revoked","message":"folder theirs is in the trash: /home/work/theirs is empty","steps":[]}],
  "usage":[{"slot":"cpu","slotSeconds":"180"},{"slot":"mem","slotSeconds":"193273528320"}],`

func TestSessionOutput(t *testing.T) {
	f := newServer(t)
	f.Data("SessionArrays", `{"sessionArrays":{"edges":[],"pageInfo":{"hasNextPage":false}}}`)
	f.Data("Sessions", `{"sessions":{"edges":[{"node":`+sampleSession+`}},null,{"node":null}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.Data("Session", `{"node":`+sampleDetail+`"pending":null}}`)
	f.Golden(map[string][]string{
		"session-ls":      {"session", "ls"},
		"session-ls-json": {"session", "ls", "-o", "json"},
		"session-ls-yaml": {"session", "ls", "-o", "yaml"},
		"session-show":    {"session", "show", "train"},
		"session-events":  {"session", "events", "train"},
	})
	f.Data("Session", `{"node":`+sampleDetail+pendingReport+`}}`)
	f.Data("Why", `{"node":{`+pendingReport+`},"cluster":{"led":true}}`)
	clitest.Golden(t, "session-why", f.Run("session", "why", "train").Out)
	clitest.Golden(t, "session-why-json", f.Run("session", "why", "train", "-o", "json").Out)
	f.Data("Session", `{"node":`+sampleDetail+`"pending":null}}`)
	f.Data("Why", `{"node":{"pending":null},"cluster":{"led":false}}`)
	clitest.Golden(t, "session-why-leaderless", f.Run("session", "why", "train").Out)
}
