package main

import "testing"

// A session that runs on a device which is gone says so, anyone who asks what is wrong.
func TestTroubleOfDevicesIsTold(t *testing.T) {
	f := newFake(t)
	f.data("Sessions", `{"sessions":{"edges":[{"node":`+sampleSession+`}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.data("Session", `{"node":`+sampleDetail+`"pending":null}}`)
	f.data("Why", `{"node":{"pending":null},"cluster":{"led":true}}`)
	want := "train does not wait: it is running\nTrouble:     its device mock-0 is lost: no longer reported by its plugin\n"
	if r := f.berth("session", "why", "train"); r.out != want {
		t.Errorf("%q, want %q", r.out, want)
	}
}
