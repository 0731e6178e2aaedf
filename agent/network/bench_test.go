package network

import (
	"io"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/berthhq/berth/agent/agentpb"
)

// BenchmarkTransfer sends 256 MiB over one TCP connection between kernels, alternating between
// three paths: over the bridge of one agent; between two agents on one host, where packets are not
// encapsulated; and between two machines, which are network namespaces connected by a bridge.
func BenchmarkTransfer(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("network namespaces need root")
	}
	x := wiredMachines(b, 2)
	plain := make([]Attachment, 2)
	must(b, within(b, x[0].path, func() error {
		for i, key := range []string{"p", "q"} {
			a, err := x[0].Reserve(key, "plain")
			if err != nil {
				return err
			}
			plain[i] = a
			b.Cleanup(func() { _ = within(b, x[0].path, func() error { return x[0].Remove(a) }) })
			if _, err := x[0].Create(a); err != nil {
				return err
			}
			if err := x[0].Connect(b.Context(), a); err != nil {
				return err
			}
		}
		return nil
	}))
	beside := &machine{path: x[0].path, dir: b.TempDir()} // another agent of the first machine
	beside.start(b, Config{Dir: beside.dir, Claims: x[0].cfg.Claims, Endpoint: netip.AddrPortFrom(x[0].cfg.Endpoint.Addr(), DefaultPort+1)})
	wide := spread{agentpb.MinVNI, netip.MustParsePrefix("10.214.0.0/29"), x}
	near := spread{agentpb.MinVNI + 1, netip.MustParsePrefix("10.214.0.8/29"), []*machine{x[0], beside}}
	far, here := wide.join(b, "far"), near.join(b, "here")
	data := make([]byte, 1<<20)
	const times = 256
	var bridge, host, machines []float64
	rate := func(from *machine, a Attachment, to *machine, z Attachment) float64 {
		took := pour(b, from.Path(a), to.Path(z), z.Address, data, times, io.Discard)
		return times * float64(len(data)) / took.Seconds() / 1e6
	}
	for b.Loop() {
		bridge = append(bridge, rate(x[0], plain[0], x[0], plain[1]))
		host = append(host, rate(x[0], here[0], beside, here[1]))
		machines = append(machines, rate(x[0], far[0], x[1], far[1]))
	}
	median := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	b.ReportMetric(median(bridge), "bridge-MB/s")
	b.ReportMetric(median(host), "host-MB/s")
	b.ReportMetric(median(machines), "machines-MB/s")
	b.ReportMetric(median(host)/median(bridge), "host/bridge")
	b.ReportMetric(median(machines)/median(bridge), "machines/bridge")
	b.ReportMetric(0, "ns/op") // the sum of the three measurements has no meaning
}

// BenchmarkAttach creates and removes the network of a session of one kernel.
func BenchmarkAttach(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("network namespaces need root")
	}
	m := open(b, Config{Dir: b.TempDir(), Claims: b.TempDir()})
	first, err := m.Reserve("first", "first") // excludes the one-time setup of an agent
	must(b, err)
	_, err = m.Create(first)
	must(b, err)
	must(b, m.Connect(b.Context(), first))
	for b.Loop() {
		a, err := m.Reserve("k", "s")
		must(b, err)
		_, err = m.Create(a)
		must(b, err)
		must(b, m.Connect(b.Context(), a))
		must(b, m.Remove(a))
	}
	must(b, m.Remove(first))
	must(b, m.Close())
}
