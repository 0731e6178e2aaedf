package statistics

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func newServer(t *testing.T) *clitest.Server {
	s := clitest.New(t, func(a *cli.App) []*cobra.Command {
		return []*cobra.Command{Command(a), WasteCommand(a)}
	})
	s.Data("WaitReport", `{"waitReport":[{"count":7,"p50":13.2,"p90":5400,"p99":null,"max":null,"keys":[{"dimension":"REASON","value":"ROOM","label":"ROOM"}]}]}`)
	s.Data("CapacityReport", `{"capacityReport":{"since":"2026-03-01T00:00:00Z","rows":[{"slot":"cpu","keys":[],"capacity":"7200","used":"1800","idle":"1800","unmeasured":"0","promised":"0","unallocated":"3600","outOfService":"0","beyond":"0"}]}}`)
	s.Data("Waste", `{"waste":[
		{"session":"s1","sessionName":"=train","user":"u1","userEmail":"kim@example.org","agent":"","agentName":"","slot":"cuda.device","quality":"MEASURED","numbers":[{"name":"asked","value":2,"unit":"slot"},{"name":"utilization","value":0.25,"unit":"percent"}]},
		{"session":"s2","sessionName":"dark","user":"u1","userEmail":"","agent":"","agentName":"","slot":"cuda.device","quality":"UNKNOWN","numbers":[{"name":"asked","value":1,"unit":"slot"},{"name":"utilization","value":null,"unit":"percent"}]}]}`)
	return s
}

// rows are the lines of a table with single spaces.
func rows(out string) (list []string) {
	for line := range strings.Lines(out) {
		list = append(list, strings.Join(strings.Fields(line), " "))
	}
	return list
}

func TestTables(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"waits":    {[]string{"stats", "waits", "--by", "reason"}, []string{"REASON STARTS P50 P90 P99 LONGEST", "room 7 13.2s 1h30m - -"}},
		"starts":   {[]string{"stats", "starts", "--by", "reason", "--since", "24h"}, []string{"STAGE REASON STARTS P50 P90 P99 LONGEST", "queue room 7 13.2s 1h30m - -"}},
		"capacity": {[]string{"stats", "capacity"}, []string{"SLOT CAPACITY UNIT USED IDLE UNMEASURED PROMISED FREE OUT", "cpu 2.0000 cpu-hours 25.0 % 25.0 % 0.0 % 0.0 % 50.0 % 0.0 %"}},
		"waste": {[]string{"waste", "unused-accelerators"}, []string{"SESSION USER MACHINE SLOT ASKED UTILIZATION QUALITY", "=train kim@example.org - cuda.device 2 0.2 % measured",
			"dark u1 - cuda.device 1 - unknown"}},
		"reports": {[]string{"waste"}, []string{"REPORT LISTS", "unused-accelerators running sessions whose accelerators compute nothing"}},
	} {
		r := newServer(t).Run(tt.args...)
		got := rows(r.Out)
		if r.Code != 0 || len(got) < len(tt.want) {
			t.Errorf("%s: %+v", name, r)
			continue
		}
		for i, want := range tt.want {
			if got[i] != want {
				t.Errorf("%s, line %d: %q, want %q", name, i, got[i], want)
			}
		}
	}
	for _, args := range [][]string{{"stats", "waits", "--by", "colour"}, {"stats", "capacity", "--by", "user"}, {"waste", "sins"}} {
		if r := newServer(t).Run(args...); r.Code != cli.ExitUsage {
			t.Errorf("%v: %+v", args, r)
		}
	}
}
