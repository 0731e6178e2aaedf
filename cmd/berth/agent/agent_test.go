package agent

import (
	"encoding/json"
	"testing"
)

func TestRestartPlugin(t *testing.T) {
	f := newServer(t)
	f.Data("Agents", `{"agents":{"edges":[{"node":{"id":"a","name":"node-1"}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	asked := ""
	f.Answer["RestartPlugin"] = func(vars json.RawMessage) string {
		asked = string(vars)
		return `{"payload":{"agent":{"id":"a","name":"node-1"}}}`
	}
	if r := f.Run("agent", "restart-plugin", "node-1", "cuda"); r.Code != 0 || asked != `{"input":{"id":"a","plugin":"cuda"}}` {
		t.Errorf("%+v, asked for %s", r, asked)
	}
}
