package session

import (
	"testing"
)

// A session on a device that has disappeared shows this in every command about its problems.
func TestTroubleOfDevicesIsTold(t *testing.T) {
	f := newServer(t)
	f.Data("Sessions", `{"sessions":{"edges":[{"node":`+sampleSession+`}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.Data("Session", `{"node":`+sampleDetail+`"pending":null}}`)
	f.Data("Why", `{"node":{"pending":null},"cluster":{"led":true}}`)
	want := "train does not wait: it is running\nTrouble:     its device mock-0 is lost: no longer reported by its plugin\n"
	if r := f.Run("session", "why", "train"); r.Out != want {
		t.Errorf("%q, want %q", r.Out, want)
	}
}
