package session

import (
	"encoding/json"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
)

func TestChangeOfWhatWaits(t *testing.T) {
	f := newServer(t)
	f.Data("Sessions", `{"sessions":{"edges":[{"node":`+sampleSession+`}}],"pageInfo":{"hasNextPage":false}}}`)
	var asked string
	f.Answer["UpdatePendingSession"] = func(raw json.RawMessage) string {
		asked = string(raw)
		return `{"payload":{"session":` + sampleSession + `}}}`
	}
	r := f.Run("session", "change", "train", "-r", "mock.shares=0.25", "-r", "mem=0", "--any-agent")
	want := `{"input":{"id":"01908a5e-0000-7000-8000-000000000001","slots":{"cpu":"1","mock.shares":"0.25"},"strictAgents":false}}`
	if r.Code != 0 || asked != want {
		t.Errorf("%+v\nasked %s\nwant  %s", r, asked, want)
	}
	if r := f.Run("session", "change", "train"); r.Code != cli.ExitUsage {
		t.Errorf("%+v", r)
	}
}
