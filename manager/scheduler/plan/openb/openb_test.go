package openb_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/manager/scheduler/plan"
	"github.com/berthhq/berth/manager/scheduler/plan/openb"
)

// small returns a cluster and a list in the format of the trace.
func small() ([]openb.Node, []openb.Task) {
	nodes := openb.Times([]openb.Node{
		{CPU: 96000, Mem: 393216, GPUs: 8, Model: "G2"},
		{CPU: 64000, Mem: 262144, GPUs: 2, Model: "P100"},
		{CPU: 32000, Mem: 131072, GPUs: 1, Model: "T4"},
	}, 8)
	return nodes, []openb.Task{
		{CPU: 12000, Mem: 16384, GPUs: 1, Milli: 1000},
		{CPU: 6000, Mem: 12288, GPUs: 1, Milli: 460},
		{CPU: 4000, Mem: 8192, GPUs: 1, Milli: 270},
		{CPU: 8000, Mem: 16384, GPUs: 1, Milli: 540, Spec: "P100|T4"},
		{CPU: 16000, Mem: 65536, GPUs: 2, Milli: 1000},
		{CPU: 8000, Mem: 30517},
	}
}

func TestArrivalsAskFor130Percent(t *testing.T) {
	nodes, list := small()
	for seed := range uint64(5) {
		sum, last := int64(0), int64(0)
		for _, task := range openb.Arrivals(nodes, list, seed) {
			last = task.GPU()
			sum += last
		}
		if target := int64(8 * 11 * 1300); sum < target || sum-last >= target {
			t.Errorf("%d thousandths arrive, want %d", sum, target)
		}
	}
}

// TestPackLeavesLess compares the averages over a few seeds.
func TestPackLeavesLess(t *testing.T) {
	nodes, list := small()
	mean := func(p openb.Policy) float64 { return sample(nodes, list, p, 5).mean }
	pack, best, fgd, random := mean(pack(true)), mean(openb.BestFit), mean(openb.FGD), mean(openb.Random)
	t.Logf("unallocated: pack %.2f %%, FGD %.2f %%, BestFit %.2f %%, Random %.2f %%", pack, fgd, best, random)
	if pack < 0 || pack >= random || fgd >= random {
		t.Error("a policy that looks is no better than chance")
	}
}

func TestNamesDoNotMatter(t *testing.T) {
	nodes, list := small()
	arrivals := openb.Arrivals(nodes, list, 1)
	for _, s := range []plan.Strategy{plan.StrategyPack, plan.StrategyConcentrated, plan.StrategyDispersed} {
		given := openb.Product(s, openb.GivenDemand, false)(nodes, list, arrivals, 0).Unallocated
		for seed := range uint64(5) {
			if got := openb.Product(s, openb.GivenDemand, true)(nodes, list, arrivals, seed).Unallocated; got != given {
				t.Errorf("%s: %v %% unallocated with other names, %v %% without", s, got, given)
			}
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"openb_node_list_gpu_node.csv": "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n",
		"openb_pod_list_x.csv":         "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np0,6000,12288,1,460,P100|T4\np1,6000,12288,4,0,\np2,1,2,0,0,\n",
		"published.csv":                "workload,policy,metric,arrived_pct,mean_of_10_seeds,min,max\nopenb_pod_list_x,06-FGD,gpu_allocation_pct_of_capacity,130,95.5,95,96\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := openb.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Nodes) != 1 || d.Nodes[0] != (openb.Node{CPU: 64000, Mem: 262144, GPUs: 2, Model: "P100"}) {
		t.Errorf("nodes %+v", d.Nodes)
	}
	if l := d.Lists["x"]; len(l) != 3 || l[0].GPU() != 460 || l[0].Spec != "P100|T4" || l[1].GPU() != 4000 || l[2].GPU() != 0 {
		t.Errorf("tasks %+v", l)
	}
	if got := d.Published["x"]["FGD"]; got != 4.5 {
		t.Errorf("published %v, want 4.5", got)
	}
	if _, err := openb.Load(t.TempDir()); err == nil {
		t.Error("an empty folder was taken")
	}
}
