package usage

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
)

func TestUsageOutput(t *testing.T) {
	f := newServer(t)
	f.Data("Usage", `{"usage":[{"slot":"cpu","slotSeconds":"5400"},{"slot":"mem","slotSeconds":"7730941132800"},{"slot":"mock.shares","slotSeconds":"1800.5"}]}`)
	f.Golden(map[string][]string{
		"usage":      {"usage"},
		"usage-json": {"usage", "-o", "json"},
	})
}

func TestReport(t *testing.T) {
	f := newServer(t)
	f.Data("UsageReport", `{"usageReport":[
		{"slot":"cpu","slotSeconds":"5400.25","keys":[{"dimension":"USER","value":"u1","label":"=kim@example.org"},{"dimension":"MONTH","value":"2026-01-31T15:00:00Z","label":"2026-02"}]},
		{"slot":"mem","slotSeconds":"7730941132800","keys":[{"dimension":"USER","value":"u2","label":""},{"dimension":"MONTH","value":"2026-01-31T15:00:00Z","label":"2026-02"}]}]}`)
	f.Golden(map[string][]string{
		"report":     {"usage", "--by", "user,month", "--from", "2026-01-01", "--time-zone", "Asia/Seoul"},
		"report-csv": {"usage", "--by", "user,month", "--csv"},
	})
	if r := f.Run("usage", "--by", "colour"); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, "colour") {
		t.Errorf("%+v", r)
	}
}
