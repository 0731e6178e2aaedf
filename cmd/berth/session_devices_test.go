package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// A session that runs on a device which is gone says so, whoever asks what is wrong.
func TestTroubleOfDevicesIsTold(t *testing.T) {
	f := newFake(t)
	f.data("Sessions", `{"sessions":{"edges":[{"node":`+sampleSession+`}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.data("Session", `{"node":`+sampleDetail+`"pending":null}}`)
	want := "train does not wait: it is running\nTrouble:     its device mock-0 is lost: no longer reported by its plugin\n"
	if r := f.berth("session", "why", "train"); r.out != want {
		t.Errorf("%q, want %q", r.out, want)
	}
}

// The server tells a session's history in any order.
func TestHistoryIsInOrder(t *testing.T) {
	f := newFake(t)
	f.data("Sessions", `{"sessions":{"edges":[{"node":`+sampleSession+`}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	var detail map[string]any
	if err := json.Unmarshal([]byte(sampleDetail+`"pending":null}`), &detail); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(detail["history"].([]any))
	mixed, err := json.Marshal(map[string]any{"node": detail})
	if err != nil {
		t.Fatal(err)
	}
	f.data("Session", string(mixed))
	out := f.berth("session", "show", "train").out
	first, second := strings.Index(out, "11:56:48.250"), strings.Index(out, "11:56:49.000")
	if first < 0 || second < first {
		t.Error(out)
	}
}
