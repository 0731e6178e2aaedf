package main

import (
	"encoding/json"
	"testing"
)

func TestRestartPlugin(t *testing.T) {
	f := newFake(t)
	f.data("Agents", `{"agents":{"edges":[{"node":{"id":"a","name":"node-1"}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	asked := ""
	f.answer["RestartPlugin"] = func(vars json.RawMessage) string {
		asked = string(vars)
		return `{"payload":{"agent":{"id":"a","name":"node-1"}}}`
	}
	if r := f.berth("agent", "restart-plugin", "node-1", "cuda"); r.code != 0 || asked != `{"input":{"id":"a","plugin":"cuda"}}` {
		t.Errorf("%+v, asked for %s", r, asked)
	}
}
