package session

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A server that restarts ends the stream normally, and then refuses connections for a moment: a
// follower waits for it.
func TestFollowerSurvivesARestart(t *testing.T) {
	f := newServer(t)
	f.Data("Sessions", `{"sessions":{"edges":[{"node":`+sampleSession+`}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.Stream["SessionChanged"] = func(_ context.Context, _ json.RawMessage, send func(string)) bool {
		send(`{"sessionChanged":{"id":"s","version":1,"name":"train","status":"RUNNING","startedAt":"2026-03-04T11:58:00Z","kernels":[{"id":"k","role":"MAIN"}]}}`)
		return true
	}
	f.Stream["KernelLogs"] = func(_ context.Context, vars json.RawMessage, send func(string)) bool {
		if strings.Contains(string(vars), `"offset":0`) {
			send(`{"kernelLogs":{"text":"one\n","offset":0,"nextOffset":4}}`)
		} else {
			send(`{"kernelLogs":{"text":"two\n","offset":4,"nextOffset":8}}`)
		}
		return true
	}
	asked := 0
	f.Answer["Session"] = func(json.RawMessage) string {
		asked++
		switch asked {
		case 1, 2:
			panic(http.ErrAbortHandler) // the server is away
		case 3:
			return `{"node":` + sampleDetail + `"pending":null}}`
		}
		return `{"node":` + strings.ReplaceAll(sampleDetail, `"terminatedAt":null`, `"terminatedAt":"2026-03-04T11:59:00Z"`) + `"pending":null}}`
	}
	r := f.Run("session", "logs", "-f", "train")
	if r.Code != 0 || r.Out != "one\ntwo\n" {
		t.Errorf("%+v, want both lines and exit code 0", r)
	}
	if asked != 4 {
		t.Errorf("the session was asked for %d times, want 4", asked)
	}
}

// If a server ends every stream at once although the process runs, the follower pauses for longer
// and longer times between its requests.
func TestFollowerPausesBetweenStreams(t *testing.T) {
	f := newServer(t)
	f.Data("Sessions", `{"sessions":{"edges":[{"node":`+sampleSession+`}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.Stream["SessionChanged"] = func(_ context.Context, _ json.RawMessage, send func(string)) bool {
		send(`{"sessionChanged":{"id":"s","version":1,"name":"train","status":"RUNNING","startedAt":"2026-03-04T11:58:00Z","kernels":[{"id":"k","role":"MAIN"}]}}`)
		return true
	}
	var at []time.Time
	f.Stream["KernelLogs"] = func(_ context.Context, _ json.RawMessage, send func(string)) bool {
		if at = append(at, time.Now()); len(at) == 3 {
			send(`{"kernelLogs":{"text":"one\n","offset":0,"nextOffset":4}}`)
		}
		return true
	}
	f.Answer["Session"] = func(json.RawMessage) string {
		if len(at) < 4 {
			return `{"node":` + sampleDetail + `"pending":null}}`
		}
		return `{"node":` + strings.ReplaceAll(sampleDetail, `"terminatedAt":null`, `"terminatedAt":"2026-03-04T11:59:00Z"`) + `"pending":null}}`
	}
	if r := f.Run("session", "logs", "-f", "train"); r.Code != 0 || r.Out != "one\n" {
		t.Errorf("%+v", r)
	}
	// The third stream had data, so the pause after it is as short as the first one.
	for i, least := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 200 * time.Millisecond} {
		if len(at) < i+2 {
			t.Fatalf("%d streams", len(at))
		}
		if pause := at[i+1].Sub(at[i]); pause < least {
			t.Errorf("stream %d began %s after the one before, want %s at least", i+2, pause, least)
		}
	}
}
