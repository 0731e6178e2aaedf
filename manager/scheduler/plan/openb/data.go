// Package openb measures how well and how fast the planner packs, on the public trace of a cluster
// with shared GPUs (Alibaba 2023) and by the protocol of "Beware of Fragmentation" (USENIX ATC'23),
// compared with policies of the literature. It is a benchmark; nothing imports it.
package openb

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Node is a machine of the trace.
type Node struct {
	CPU, Mem int64 // thousandths of a core, MiB
	GPUs     int
	Model    string
}

// Task is one task of a list.
type Task struct {
	CPU, Mem int64
	GPUs     int
	Milli    int64  // of each GPU
	Spec     string // allowed models, separated by |; empty: any
}

// GPU is the requested amount of each GPU, in thousandths of a GPU.
func (t *Task) GPU() int64 { return int64(t.GPUs) * t.Milli }

// Data is the trace, and the published results on it.
type Data struct {
	Nodes     []Node
	Lists     map[string][]Task
	Published map[string]map[string]float64 // mean unallocated % at 130 %, by list and policy
}

// Load reads the folder. Lists are found by their names.
func Load(dir string) (*Data, error) {
	d := &Data{Lists: map[string][]Task{}, Published: map[string]map[string]float64{}}
	err := read(filepath.Join(dir, "openb_node_list_gpu_node.csv"), func(r row) {
		d.Nodes = append(d.Nodes, Node{CPU: r.number("cpu_milli"), Mem: r.number("memory_mib"), GPUs: int(r.number("gpu")), Model: r["model"]})
	})
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "openb_pod_list_*.csv"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := filepath.Base(f)
		name = name[len("openb_pod_list_") : len(name)-len(".csv")]
		err := read(f, func(r row) {
			t := Task{CPU: r.number("cpu_milli"), Mem: r.number("memory_mib"), GPUs: int(r.number("num_gpu")), Milli: r.number("gpu_milli"), Spec: r["gpu_spec"]}
			switch {
			case t.GPUs == 0:
				t.Milli, t.Spec = 0, ""
			case t.GPUs > 1:
				t.Milli = 1000
			}
			d.Lists[name] = append(d.Lists[name], t)
		})
		if err != nil {
			return nil, err
		}
	}
	return d, read(filepath.Join(dir, "published.csv"), func(r row) {
		if r["metric"] != "gpu_allocation_pct_of_capacity" || r["arrived_pct"] != "130" {
			return
		}
		list := r["workload"][len("openb_pod_list_"):]
		if d.Published[list] == nil {
			d.Published[list] = map[string]float64{}
		}
		mean, _ := strconv.ParseFloat(r["mean_of_10_seeds"], 64)
		d.Published[list][r["policy"][len("01-"):]] = 100 - mean
	})
}

type row map[string]string

func (r row) number(column string) int64 {
	n, _ := strconv.ParseInt(r[column], 10, 64)
	return n
}

func read(file string, each func(row)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	for _, l := range lines[min(1, len(lines)):] {
		r := row{}
		for i, column := range lines[0] {
			r[column] = l[i]
		}
		each(r)
	}
	return nil
}
