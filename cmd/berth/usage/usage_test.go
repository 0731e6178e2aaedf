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
		{"slot":"cpu","slotSeconds":"5400.25","cost":"12.345678","unpricedSlotSeconds":"0.25","keys":[{"dimension":"USER","value":"u1","label":"=kim@example.org"},{"dimension":"MONTH","value":"2026-01-31T15:00:00Z","label":"2026-02"}]},
		{"slot":"mem","slotSeconds":"7730941132800","cost":null,"unpricedSlotSeconds":"7730941132800","keys":[{"dimension":"USER","value":"u2","label":""},{"dimension":"MONTH","value":"2026-01-31T15:00:00Z","label":"2026-02"}]}]}`)
	f.Golden(map[string][]string{
		"report":     {"usage", "--by", "user,month", "--from", "2026-01-01", "--time-zone", "Asia/Seoul"},
		"report-csv": {"usage", "--by", "user,month", "--csv"},
	})
	if r := f.Run("usage", "--by", "colour"); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, "colour") {
		t.Errorf("%+v", r)
	}
}

func TestBudget(t *testing.T) {
	f := newServer(t)
	f.Data("Budgets", `{"server":{"currency":"EUR"},"budgets":[
		{"id":"b1","period":"MONTH","startsAt":"2026-01-01T00:00:00Z","endsAt":null,"timeZone":"UTC","soft":"400","hard":"500","atHard":"KEEP","project":{"id":"p1","name":"vision"},
			"status":{"from":"2026-01-01T00:00:00Z","to":"2026-02-01T00:00:00Z","spent":"123.456789","promised":"0.005","perDay":"10","softReachedAt":"2026-01-28T12:00:00Z","hardReachedAt":null}},
		{"id":"b2","period":"TOTAL","startsAt":"2026-01-01T12:00:00Z","endsAt":"2026-07-01T12:00:00Z","timeZone":"UTC","soft":null,"hard":"5","atHard":"TERMINATE","user":{"id":"u1","email":"kim@example.org"},
			"status":{"from":"2026-01-01T12:00:00Z","to":"2026-07-01T12:00:00Z","spent":"5","promised":"0","perDay":"1","softReachedAt":null,"hardReachedAt":"2026-01-15T12:00:00Z"}}]}`)
	f.Golden(map[string][]string{"budget": {"budget"}})
}
