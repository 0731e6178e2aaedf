package acceleratortest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/internal/fixture/fixturetest"
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// BenchmarkPlugin runs the plugin of every built-in machine, as built by make build, on that
// machine. It measures the time from the start of the process to the first snapshot, a call without
// side effects, Prepare and Unprepare of one device, and the memory of the process.
func BenchmarkPlugin(b *testing.B) {
	for _, name := range fixture.Names() {
		b.Run(name, func(b *testing.B) { measure(b, fixturetest.Start(b, name)) })
	}
}

// BenchmarkSnapshot64 uses a mock plugin with 64 devices that are all linked.
func BenchmarkSnapshot64(b *testing.B) {
	m, err := fixture.Load("mock-4")
	if err != nil {
		b.Skip(err)
	}
	tree, err := m.Render(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer tree.Close()
	c := start(b, tree, []byte(`{"devices":64,"links":"full"}`))
	defer c.Close()
	for b.Loop() {
		first(b, c)
	}
	b.ReportMetric(float64(proto.Size(first(b, c)))/1024, "KiB")
}

func measure(b *testing.B, tree *fixture.Tree) {
	var starts, pings, prepares []time.Duration
	var rss float64
	for b.Loop() {
		begun := time.Now()
		c := start(b, tree, tree.Config())
		s := first(b, c)
		starts = append(starts, time.Since(begun))
		for range 200 {
			begun := time.Now()
			if err := c.Ping(b.Context()); err != nil {
				b.Fatal(err)
			}
			pings = append(pings, time.Since(begun))
		}
		if a := one(s); a != nil {
			for i := range 50 {
				begun := time.Now()
				turn(b, c, strconv.Itoa(i), a)
				prepares = append(prepares, time.Since(begun))
			}
		}
		rss = max(rss, resident(b, c.Pid()))
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op") // the sum of several measurements has no meaning
	b.ReportMetric(ms(starts), "start-ms")
	b.ReportMetric(ms(pings), "call-p50-ms")
	b.ReportMetric(ms(prepares), "prepare-p50-ms")
	b.ReportMetric(rss, "RSS-MiB")
}

func start(b *testing.B, tree *fixture.Tree, config []byte) *accelerator.Client {
	b.Helper()
	path := filepath.Join("../../../bin/plugins/accelerator", tree.Machine.Plugin)
	if _, err := os.Stat(path); err != nil {
		b.Skipf("%v: make build makes it", err)
	}
	sockets, err := os.MkdirTemp("", "acc") // the path of a socket must be short
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(sockets) })
	c, err := accelerator.Launch(b.Context(), accelerator.Options{Path: path, SocketDir: sockets}, &pb.DescribeRequest{})
	if err != nil {
		b.Fatal(err)
	}
	roots := tree.Roots()
	roots.State = b.TempDir()
	if _, err := c.Configure(b.Context(), &pb.ConfigureRequest{ConfigJson: config, Roots: roots}); err != nil {
		b.Fatal(err)
	}
	return c
}

func first(b *testing.B, c *accelerator.Client) *pb.DeviceSnapshot {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	w, err := c.WatchDevices(ctx, &pb.WatchDevicesRequest{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := w.Recv()
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// one returns an allocation of the first allocatable device.
func one(s *pb.DeviceSnapshot) *pb.Allocation {
	for _, d := range s.GetDevices() {
		for _, slot := range s.GetSlots() {
			if amount := d.GetCapacity()[slot.GetName()]; d.GetAllocatable() && amount != "" {
				return &pb.Allocation{Slot: slot.GetName(), DeviceId: d.GetId(), Amount: amount}
			}
		}
	}
	return nil
}

func turn(b *testing.B, c *accelerator.Client, id string, a *pb.Allocation) {
	_, err := c.Prepare(b.Context(), &pb.PrepareRequest{AllocationId: id, KernelId: id, SessionId: id, Allocations: []*pb.Allocation{a}, WorkDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.Unprepare(b.Context(), &pb.UnprepareRequest{AllocationId: id}); err != nil {
		b.Fatal(err)
	}
}

func resident(b *testing.B, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) / 1024
}

func ms(list []time.Duration) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return float64(list[len(list)/2].Microseconds()) / 1000
}
