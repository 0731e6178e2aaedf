package agent

import (
	"testing"
)

const sampleAgent = `{"id":"a","name":"node-1","status":"ALIVE","schedulable":false,"version":"1.0","architecture":"amd64","address":"10.0.0.1",
  "firstSeenAt":"2026-03-01T00:00:00Z","lastSeenAt":"2026-03-04T11:59:58Z","resourceGroup":{"id":"g","name":"default"},
  "capacity":{"cpu":"8","mem":"34359738368","mock.shares":"2"},"occupied":{"cpu":"1","mem":"1073741824","mock.shares":"0.5"}`

func TestAgentOutput(t *testing.T) {
	f := newServer(t)
	f.Data("Agents", `{"agents":{"edges":[{"node":`+sampleAgent+`}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.Data("Agent", `{"node":`+sampleAgent+`,"devices":[{"id":"d","deviceId":"mock-0","plugin":"mock","vendor":"mock","model":"M1","capacity":{"mock.shares":"1"},
	  "occupied":{"mock.shares":"0.5"},"attributes":{},"numaNode":null,"health":"DEGRADED","healthMessage":"hot","allocatable":false,"rejectReasons":["too old"],
	  "holders":[{"slot":"mock.shares","amount":"0.25","since":"2026-03-04T11:59:58Z","session":{"id":"s","name":"train"},"mine":true},
	    {"slot":"mock.shares","amount":"0.25","since":"2026-03-04T11:59:58Z","session":null,"mine":false}]}],
	  "plugins":[{"name":"mock","version":"1","state":"BACKOFF","message":"crashed","restarts":3,"checks":[{"name":"driver","level":"ERROR","text":"mock.ko is not loaded"},{"name":"nodes","level":"OK","text":""}]}],"probes":[{"name":"overlayfs","ok":false,"detail":"not mounted"}],"stats":[]}}`)
	f.Data("AgentDevices", `{"node":{"devices":[
	  {"id":"d2","deviceId":"mock:b/1","plugin":"mock","vendor":"mock","model":"M1","capacity":{"mock.device:half":"1"},"occupied":{"mock.device:half":"1"},"attributes":{},
	    "numaNode":0,"health":"HEALTHY","healthMessage":"","allocatable":true,"rejectReasons":[],"pciAddress":"0000:03:00.0","pcieRoot":"pci0000:00","memoryBytes":42949672960,
	    "processingUnits":66,"groups":[],"enforcement":"MIG","parent":{"id":"d1","deviceId":"mock:b"},"links":[],"counters":[{"set":"mock:b","name":"slices","amount":3,"total":7}],
	    "metrics":[{"name":"mock_util","deviceId":"mock:b/1","value":41.6,"capacity":100,"unit":"percent","quality":"ATTRIBUTED"},
	      {"name":"mock_power","deviceId":"mock:b/1","value":0,"capacity":0,"unit":"watt","quality":"UNAVAILABLE"},
	      {"name":"mock_temperature","deviceId":"mock:b/1","value":55,"capacity":90,"unit":"celsius","quality":"MEASURED"}],
	    "holders":[{"slot":"mock.device:half","amount":"1","since":"2026-03-04T11:59:58Z","session":{"id":"s","name":"train"},"mine":true}]},
	  {"id":"d1","deviceId":"mock:b","plugin":"mock","vendor":"mock","model":"M1","capacity":{},"occupied":{},"attributes":{},"numaNode":0,"health":"HEALTHY","healthMessage":"",
	    "allocatable":false,"rejectReasons":["it is cut in two"],"pciAddress":"0000:03:00.0","pcieRoot":"pci0000:00","memoryBytes":85899345920,"processingUnits":132,"groups":["mock:tray"],
	    "enforcement":null,"parent":null,"links":[{"peerId":"mock:a","type":"NVLINK","distance":1,"gbps":400,"p2p":true}],"counters":[],"metrics":[],"holders":[]},
	  {"id":"d0","deviceId":"mock:a","plugin":"mock","vendor":"mock","model":"M1","capacity":{"mock.shares":"1"},"occupied":{},"attributes":{},"numaNode":1,"health":"UNHEALTHY",
	    "healthMessage":"too\u001b[31m hot","allocatable":false,"rejectReasons":["too\u001b[31m hot"],"pciAddress":"0000:83:00.0","pcieRoot":"","memoryBytes":85899345920,"processingUnits":132,"groups":[],
	    "enforcement":"ADVISORY","parent":null,"links":[],"counters":[],"metrics":[],"holders":[]},
	  {"id":"c","deviceId":"cpu","plugin":"","vendor":"","model":"","capacity":{"cpu":"8"},"occupied":{"cpu":"2"},"attributes":{},"numaNode":null,"health":"HEALTHY","healthMessage":"",
	    "allocatable":true,"rejectReasons":[],"pciAddress":"","pcieRoot":"","memoryBytes":0,"processingUnits":0,"groups":[],"enforcement":null,"parent":null,"links":[],"counters":[],"metrics":[],"holders":[]}]}}`)
	f.Golden(map[string][]string{
		"agent-ls":           {"agent", "ls"},
		"agent-show":         {"agent", "show", "node-1"},
		"agent-devices":      {"agent", "devices", "node-1"},
		"agent-devices-wide": {"agent", "devices", "node-1", "--wide"},
		"agent-devices-json": {"agent", "devices", "node-1", "-o", "json"},
	})
}
