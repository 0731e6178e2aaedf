package stats

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func newServer(t *testing.T) *clitest.Server {
	s := clitest.New(t, func(a *cli.App) []*cobra.Command {
		return []*cobra.Command{Command(a, "session", nil, func(_ context.Context, _ *client.Client, ref string) (string, map[string]string, error) {
			return "s-" + ref, map[string]string{"k1": "=main"}, nil
		})}
	})
	s.Data("TimeSeries", `{"timeSeries":[
		{"subject":"k1","name":"mem_used","deviceId":"","unit":"bytes","capacity":0,"quality":"MEASURED","step":60,
		 "at":["2026-03-29T00:00:00Z","2026-03-29T00:01:00Z"],"mean":[1024,3072],"minimum":[1,2],"maximum":[2048,4096]},
		{"subject":"k1","name":"net_rx","deviceId":"","unit":"bytes","capacity":0,"quality":"ESTIMATED","step":60,
		 "at":["2026-03-29T00:00:00Z","2026-03-29T00:01:00Z","2026-03-29T00:02:00Z"],"mean":[0,0,0],"minimum":[0,0,0],"maximum":[0,6000,60]}]}`)
	return s
}

func TestTable(t *testing.T) {
	r := newServer(t).Run("stats", "train", "--since", "6h", "--metric", "mem_used")
	lines := strings.Split(strings.TrimSpace(r.Out), "\n")
	if r.Code != 0 || len(lines) != 3 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []string{"METRIC DEVICE OF LAST MEAN HIGHEST QUALITY", "mem_used - =main 3 KiB 2 KiB 4 KiB measured", "net_rx - =main 0 B/s 50 B/s 100 B/s estimated"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("line %d: %q, want %q", i, got, want)
		}
	}
}

func TestCSV(t *testing.T) {
	r := newServer(t).Run("stats", "train", "--csv")
	want := "at,id,of,metric,device,unit,mean,minimum,maximum\n2026-03-29T00:00:00Z,k1,'=main,mem_used,,bytes,1024,1,2048\n"
	if r.Code != 0 || !strings.HasPrefix(r.Out, want) || strings.Count(r.Out, "\n") != 6 {
		t.Errorf("%+v", r)
	}
}
