package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// tile is the location of a tile.
type tile struct{ xrdu, rdu, tile int }

// row is the output of sntilestat for a tile: its utilization and the process that uses it.
type row struct {
	busy float64
	pid  int32 // 0 = unused
}

var rowForm = regexp.MustCompile(`^/XRDU_([0-9]{1,3})/RDU_([0-9]{1,3})/TILE_([0-9]{1,3})\s+([0-9.]+)((?:\s+[0-9.]+){5})(?:\s+([0-9]{1,9})\s+\S+.*)?$`)

// tilestat runs sntilestat once for all tiles. A tile that processes share has several rows.
func (m *machine) tilestat(ctx context.Context) (map[tile][]row, error) {
	out, err := m.Ask(ctx, "sntilestat", "-i", "1", "--count", "1")
	if err != nil {
		return nil, err
	}
	all := map[tile][]row{}
	for line := range strings.Lines(string(out)) {
		found := rowForm.FindStringSubmatch(strings.TrimSpace(line))
		if found == nil {
			continue // headings, and lines that continue a command's arguments
		}
		number := func(i int) int { n, _ := strconv.Atoi(found[i]); return n }
		idle, err := strconv.ParseFloat(found[4], 64)
		if err != nil || idle > 100 {
			continue
		}
		at := tile{number(1), number(2), number(3)}
		all[at] = append(all[at], row{100 - idle, int32(number(6))})
	}
	if len(all) == 0 {
		return nil, errors.New("sntilestat lists no tiles")
	}
	return all, nil
}

// covers reports whether a tile is a device or belongs to it.
func covers(d *pb.Device, at tile) bool {
	if _, one := d.GetAttributes()["tile"]; one && driver.Number(d, "tile") != at.tile {
		return false
	}
	return driver.Number(d, "xrdu") == at.xrdu && driver.Number(d, "rdu") == at.rdu
}

// util returns the mean utilization of a device's tiles, for the processes that counts selects.
func util(d *pb.Device, rows map[tile][]row, err error, counts func(pid int32) bool) *pb.Metric {
	sum := 0.0
	tiles := 0
	for at, list := range rows {
		if !covers(d, at) {
			continue
		}
		tiles++
		busy := 0.0
		for _, r := range list {
			if r.busy > 100 && err == nil {
				err = fmt.Errorf("sntilestat reports %v %% for a tile", r.busy)
			}
			if counts(r.pid) {
				busy += r.busy
			}
		}
		sum += min(busy, 100) // the values of processes that share a tile are not measured simultaneously
	}
	if err == nil && tiles == 0 {
		err = errors.New("sntilestat does not list it")
	}
	return driver.Gauge(key+"_util", d.GetId(), "percent", sum/float64(max(tiles, 1)), 100, err)
}

func anybody(int32) bool { return true }

// Sample implements driver.Sampler.
func (m *machine) Sample(ctx context.Context, s *pb.DeviceSnapshot) []*pb.Metric {
	if len(s.GetDevices()) == 0 {
		return nil
	}
	rows, err := m.tilestat(ctx)
	var out []*pb.Metric
	for _, d := range s.GetDevices() {
		out = append(out, util(d, rows, err, anybody))
	}
	return out
}

// SampleWorkloads implements driver.WorkloadSampler. sntilestat reports the process that uses a
// tile. While a workload's processes are unknown, its devices' metrics are attributed to it.
func (m *machine) SampleWorkloads(ctx context.Context, s *pb.DeviceSnapshot, set *pb.WorkloadSet) []*pb.WorkloadMetrics {
	rows, err := m.tilestat(ctx)
	out := driver.Whole(s, set, func(d *pb.Device) []*pb.Metric { return []*pb.Metric{util(d, rows, err, anybody)} })
	devices := driver.ByID(s)
	for i, w := range set.GetWorkloads() {
		if len(w.GetHostPids()) == 0 || err != nil {
			continue
		}
		own := map[int32]bool{}
		for _, pid := range w.GetHostPids() {
			own[pid] = true
		}
		for n, metric := range out[i].GetMetrics() {
			out[i].Metrics[n] = util(devices[metric.GetDeviceId()], rows, nil, func(pid int32) bool { return own[pid] })
		}
		if set.GetPerProcess() {
			out[i].Processes = processes(w.GetHostPids(), out[i].GetMetrics(), devices, rows)
		}
	}
	return out
}

// processes returns the workload's processes that use tiles.
func processes(pids []int32, metrics []*pb.Metric, devices map[string]*pb.Device, rows map[tile][]row) []*pb.ProcessMetrics {
	var out []*pb.ProcessMetrics
	for _, pid := range pids {
		p := &pb.ProcessMetrics{HostPid: pid}
		for _, metric := range metrics {
			one := util(devices[metric.GetDeviceId()], rows, nil, func(other int32) bool { return other == pid })
			if one.GetValue() > 0 {
				p.Metrics = append(p.Metrics, one)
			}
		}
		if len(p.Metrics) > 0 {
			out = append(out, p)
		}
	}
	return out
}
