package queue

import (
	"encoding/json"
	"testing"

	"github.com/berthhq/berth/cmd/berth/clitest"
)

const queueEntries = `[
  {"position":1,"mine":false,"priority":50,"waitingSince":"2026-03-04T11:50:00Z","stage":"ROOM","why":"It waits for free capacity.","holds":2,"session":null,"order":null,"estimatedStart":"2026-03-04T13:00:00Z"},
  {"position":2,"mine":true,"priority":10,"waitingSince":"2026-03-04T11:56:48Z","stage":"ORDER","why":"No machine can run the session: all 3 are reserved for an earlier session.","holds":0,
    "session":{"id":"s1","name":"train","slots":{"cpu":"1"},"owner":{"id":"u","email":"mina@example.org"}},
    "order":{"order":"DRF","levels":[{"scope":"USER","usage":0.25,"weight":1,"factor":0.84}]},"estimatedStart":null}]`

func TestQueue(t *testing.T) {
	f := newServer(t)
	f.Data("ResourceGroups", `{"resourceGroups":{"edges":[{"node":{"id":"g","name":"default"}},{"node":{"id":"g2","name":"spare"}}],"pageInfo":{"hasNextPage":false}}}`)
	f.Answer["Queue"] = func(raw json.RawMessage) string {
		var vars struct{ ID string }
		if err := json.Unmarshal(raw, &vars); err != nil {
			t.Error(err)
		}
		if vars.ID == "g2" {
			return `{"node":{"name":"spare","queue":{"totalCount":0,"entries":[],"endCursor":null}}}`
		}
		return `{"node":{"name":"default","queue":{"totalCount":3,"entries":` + queueEntries + `,"endCursor":"x"}}}`
	}
	r := f.Run("queue", "-n", "2")
	if r.Code != 0 || r.Errors != "" {
		t.Fatalf("%+v", r)
	}
	clitest.Golden(t, "queue", r.Out)
	clitest.Golden(t, "queue-json", f.Run("queue", "-n", "2", "-o", "json").Out)
}
