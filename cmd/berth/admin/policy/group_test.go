package policy

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGroupOptions(t *testing.T) {
	f := newServer(t)
	f.Data("ResourceGroups", `{"resourceGroups":{"edges":[{"node":{"id":"g1","name":"lab"}}],"pageInfo":{"hasNextPage":false}}}`)
	var asked map[string]map[string]any
	f.Answer["UpdateResourceGroup"] = func(raw json.RawMessage) string {
		asked = nil
		if err := json.Unmarshal(raw, &asked); err != nil {
			t.Error(err)
		}
		return `{"payload":{"resourceGroup":{"id":"g1","name":"lab"}}}`
	}
	for while, seconds := range map[string]float64{"10m": 600, "never": -1, "0s": 0} {
		r := f.Run("admin", "group", "update", "lab", "--strategy", "pack", "--order", "drf", "--hold-after", while)
		want := map[string]any{"id": "g1", "strategy": "PACK", "order": "DRF", "holdAfter": seconds}
		if diff := cmp.Diff(want, asked["input"]); r.Code != 0 || diff != "" {
			t.Errorf("%s: %+v\n%s", while, r, diff)
		}
	}
	for networks, want := range map[string][]any{"10.1.0.0/16,10.1.2.3:443": {"10.1.0.0/16", "10.1.2.3:443"}, "": {}} {
		r := f.Run("admin", "group", "update", "lab", "--allow-networks", networks)
		if diff := cmp.Diff(map[string]any{"id": "g1", "allowedNetworks": want}, asked["input"]); r.Code != 0 || diff != "" {
			t.Errorf("networks %q: %+v\n%s", networks, r, diff)
		}
	}
	if r := f.Run("admin", "group", "update", "lab", "--hold-after", "-5m"); r.Code != 2 {
		t.Errorf("%+v", r)
	}
}
