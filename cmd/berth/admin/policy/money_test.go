package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const oneBudget = `{"payload":{"budget":{"id":"b1","period":"MONTH","startsAt":"2026-01-01T00:00:00Z","timeZone":"UTC","soft":null,"hard":"500","atHard":"KEEP",
	"project":{"id":"p1","name":"vision"},"status":{"from":"2026-01-01T00:00:00Z","to":null,"spent":"0","promised":"0","perDay":"0"}}}}`

func TestPrices(t *testing.T) {
	f := newServer(t)
	f.Data("ResourceGroups", `{"resourceGroups":{"edges":[{"node":{"id":"g1","name":"h100"}}],"pageInfo":{"hasNextPage":false}}}`)
	f.Data("Currency", `{"server":{"currency":"EUR"}}`)
	var asked map[string]map[string]any
	f.Answer["SetPrice"] = func(raw json.RawMessage) string {
		asked = nil
		if err := json.Unmarshal(raw, &asked); err != nil {
			t.Error(err)
		}
		return `{"payload":{"price":{"id":"p1","kind":"SLOT_HOUR","slot":"mem","amount":"0.003","validFrom":"2026-01-01T00:00:00Z"}}}`
	}
	for args, want := range map[string]map[string]any{
		"cpu 0.02":                      {"kind": "SLOT_HOUR", "slot": "cpu", "amount": "0.02"},
		"cuda.shares 1.80 --group h100": {"kind": "SLOT_HOUR", "slot": "cuda.shares", "amount": "1.80", "resourceGroup": "g1"},
		"--tokens cached 0.0001":        {"kind": "CACHED_INPUT_TOKENS", "amount": "0.0001"},
	} {
		r := f.Run(append([]string{"admin", "price", "set"}, strings.Fields(args)...)...)
		if diff := cmp.Diff(want, asked["input"]); r.Code != 0 || diff != "" || !strings.Contains(r.Out, "EUR per GiB and hour") {
			t.Errorf("%s: %+v\n%s", args, r, diff)
		}
	}
	for _, args := range []string{"0.02", "cpu 0.02 --tokens input", "--tokens words 0.02"} {
		if r := f.Run(append([]string{"admin", "price", "set"}, strings.Fields(args)...)...); r.Code != 2 {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

func TestBudgets(t *testing.T) {
	f := newServer(t)
	f.Data("Projects", `{"projects":{"edges":[{"node":{"id":"p1","name":"vision","domain":{"id":"d1","name":"default"}}}],"pageInfo":{"hasNextPage":false}}}`)
	f.Data("Currency", `{"server":{"currency":"EUR"}}`)
	var asked map[string]map[string]any
	f.Answer["SetBudget"] = func(raw json.RawMessage) string {
		asked = nil
		if err := json.Unmarshal(raw, &asked); err != nil {
			t.Error(err)
		}
		return oneBudget
	}
	for args, want := range map[string]map[string]any{
		"--project vision --hard 500 --at-hard terminate": {"project": "p1", "hard": "500", "atHard": "TERMINATE"},
		"b1 --soft none --hard 800":                       {"id": "b1", "soft": "none", "hard": "800"},
	} {
		r := f.Run(append([]string{"admin", "budget", "set"}, strings.Fields(args)...)...)
		if diff := cmp.Diff(want, asked["input"]); r.Code != 0 || diff != "" || !strings.Contains(r.Out, "project vision") {
			t.Errorf("%s: %+v\n%s", args, r, diff)
		}
	}
	for _, args := range []string{"--hard 1", "b1 --project vision --hard 1"} {
		if r := f.Run(append([]string{"admin", "budget", "set"}, strings.Fields(args)...)...); r.Code != 2 {
			t.Errorf("%s: %+v", args, r)
		}
	}
}
