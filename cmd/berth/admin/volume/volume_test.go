package volume

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestAdminVolume(t *testing.T) {
	f := newServer(t)
	said := clitest.Record(f, map[string]string{
		"Volumes": `{"volumes":{"edges":[{"node":{"id":"v-1","name":"fast"}}],"pageInfo":{}}}`,
		"VolumeDetails": `{"volumes":{"edges":[{"node":{"id":"v-1","name":"fast","backend":"xfs","proxy":"s1","health":"DEGRADED","healthMessage":"slow disk","usedBytes":1024,"totalBytes":2048,
			"usedInodes":7,"totalInodes":70,"enforcement":"HARD","capabilities":["scope","quota-inodes"],"myPermissions":["create_folder"],
			"performance":{"at":"2026-03-04T11:59:00Z","windowSeconds":10,"readOpsPerSecond":12.4,"readBytesPerSecond":1048576,"writeLatencyMicros":1500},
			"grants":[{"id":"g-1","everybody":true,"permissions":["mount"]}]}}],"pageInfo":{}}}`,
		"VolumeOrphans": `{"node":{"orphans":{"complete":true,"scopes":[{"scope":"s-1","usedBytes":4096}],
			"folders":[{"state":"PRESENT","scope":"s-1","folder":"f-1","path":"s1/f1"},{"state":"UNKNOWN","scope":"","folder":"","path":"lost+found"}],
			"missing":[{"id":"f-9","name":"gone"}]}}}`,
		"QuotaScopes":   `{"quotaScopes":{"edges":[],"pageInfo":{}}}`,
		"Users":         `{"users":{"edges":[{"node":{"id":"u-1","email":"ada@example.org"}}],"pageInfo":{}}}`,
		"SetQuotaScope": `{"payload":{"quotaScope":{"id":"s-1","kind":"USER","limitInodes":10,"enforcement":"HARD","volume":{"id":"v-1","name":"fast"}}}}`,
	})
	var removed []string
	f.Answer["DeleteOrphan"] = func(vars json.RawMessage) string {
		removed = append(removed, string(vars))
		return `{"payload":{"task":{"id":"t-1","title":"remove","status":"DONE"}}}`
	}
	for _, c := range []struct {
		args string
		code int
		out  []string
	}{
		{"admin volume ls", 0, []string{"fast", "degraded", "1 KiB", "2 KiB", "hard", "12/s, 1 MiB/s", "slow disk"}},
		{"admin volume show fast", 0, []string{"degraded: slow disk", "7 of 70", "scope, quota-inodes", "create-folder", "over 10 s", "1.50 ms", "everybody", "mount"}},
		{"admin volume show slow", cli.ExitNotFound, nil},
		{"admin volume orphans fast", 0, []string{"s1/f1", "unknown", "lost+found", "quota scope", "folder gone", "missing"}},
		{"admin volume orphans fast --remove", cli.ExitUsage, nil},
		{"admin volume orphans fast --remove --yes", 0, []string{"remove", "done"}},
		{"admin quota set fast --user ada@example.org --files 10", 0, []string{"10", "hard"}},
	} {
		r := f.Run(strings.Fields(c.args)...)
		if r.Code != c.code {
			t.Errorf("%s: %+v", c.args, r)
		}
		for _, want := range c.out {
			if !strings.Contains(r.Out, want) {
				t.Errorf("%s: no %q in\n%s", c.args, want, r.Out)
			}
		}
	}
	if len(removed) != 2 || !strings.Contains(removed[0], `"folder":"f-1"`) || strings.Contains(removed[1], "folder") {
		t.Errorf("removed %v", removed)
	}
	if !strings.Contains(said["SetQuotaScope"], `"limitInodes":10`) || strings.Contains(said["SetQuotaScope"], `"limitBytes"`) {
		t.Errorf("said %s", said["SetQuotaScope"])
	}
}
