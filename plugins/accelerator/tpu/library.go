package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/berthhq/berth/plugins/accelerator/tpu/libtpu"
)

// Names of libtpu's metrics.
const (
	memoryTotal = "tpu.runtime.hbm.memory.total.bytes"
	memoryUsed  = "tpu.runtime.hbm.memory.usage.bytes"
	dutyCycle   = "tpu.runtime.tensorcore.dutycycle.percent"
)

// asking limits the wait for all responses of one library.
const asking = time.Second

var errNotReported = errors.New("no program on it reports it")

// figures are the metrics from libraries, by the number of a chip in its program.
type figures struct {
	used, total map[int]float64
	busy        map[int]float64
}

// ask queries the library at an address. The library belongs to the container, so its responses are
// not trusted.
func ask(ctx context.Context, address string, dial func(context.Context, string) (net.Conn, error), cores int) (figures, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<10)))
	if err != nil {
		return figures{}, err
	}
	defer conn.Close()
	client := libtpu.NewRuntimeMetricServiceClient(conn)
	f := figures{map[int]float64{}, map[int]float64{}, map[int]float64{}}
	for _, q := range []struct {
		name string
		into map[int]float64
		per  int // number of this metric's devices in a chip
	}{{memoryUsed, f.used, cores}, {memoryTotal, f.total, cores}, {dutyCycle, f.busy, 1}} {
		r, err := client.GetRuntimeMetric(ctx, &libtpu.MetricRequest{MetricName: q.name})
		if err != nil {
			return figures{}, fmt.Errorf("libtpu at %s: %w", address, err)
		}
		for _, metric := range r.GetMetric().GetMetrics() {
			n := metric.GetAttribute().GetValue().GetIntAttr()
			v := metric.GetGauge().GetAsDouble()
			if _, whole := metric.GetGauge().GetValue().(*libtpu.Gauge_AsInt); whole {
				v = float64(metric.GetGauge().GetAsInt())
			}
			if chip := n / int64(max(q.per, 1)); n >= 0 && chip < maxChips && v >= 0 {
				q.into[int(chip)] += v
			}
		}
	}
	return f, nil
}

// direct dials from the plugin's own network namespace.
func direct(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// container queries the libraries of a container's processes: either one process uses all chips and
// listens on the first port, or each chip has a process with its own port.
func (m *machine) container(ctx context.Context, pid int32, chips, cores int) (figures, error) {
	ns := m.host.Proc(strconv.Itoa(int(pid)), "ns/net")
	all := figures{map[int]float64{}, map[int]float64{}, map[int]float64{}}
	var first error
	for i := range chips {
		f, err := ask(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(m.Port+i)), within(ns), cores)
		if err != nil {
			first = errors.Join(first, err)
			if i == 0 && chips > 1 && ctx.Err() == nil {
				continue
			}
			break
		}
		for chip := range f.used {
			all.used[chip], all.total[chip], all.busy[chip] = f.used[chip], f.total[chip], f.busy[chip]
		}
		if len(all.used) >= chips {
			break
		}
	}
	if len(all.used) == 0 {
		return all, errors.Join(errNotReported, first)
	}
	return all, nil
}
