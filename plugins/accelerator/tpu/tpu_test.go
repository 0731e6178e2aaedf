package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/internal/fixture/fixturetest"
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver/drivertest"
	"github.com/berthhq/berth/plugins/accelerator/tpu/libtpu"
)

var bench = drivertest.Bench[*machine]{Driver: vendor{}}

// start creates the simulated machine and opens it. "own" selects the settings in the machine's
// file.
func start(t *testing.T, config string) (*fixture.Tree, *machine) {
	t.Helper()
	tree := fixturetest.Start(t, "v5e-4")
	if config == "own" {
		config = string(tree.Config())
	}
	return tree, bench.Open(t, tree.Roots(), config)
}

func edit(t *testing.T, m *machine, chips ...int) *pb.PrepareResponse {
	t.Helper()
	s := bench.Scan(t, m)
	r := drivertest.Request(t, s, drivertest.Whole(pick(s, chips...)...)...)
	r.WorkDir = filepath.Join(t.TempDir(), "work")
	return drivertest.Edit(t, m, r)
}

// pick returns the devices with these numbers in a snapshot.
func pick(s *pb.DeviceSnapshot, chips ...int) []*pb.Device {
	var out []*pb.Device
	for _, i := range chips {
		out = append(out, s.GetDevices()[i])
	}
	return out
}

const chip0 = "sys/devices/pci0000:00/0000:00:04.0/"

func TestGenerations(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  string // reason, "" = allocatable
	}{
		"v5e":          {nil, ""},
		"v4":           {map[string]string{"device": "0x005e\n"}, ""},
		"v2":           {map[string]string{"device": "0x0027\n", "subsystem_device": "0x004e\n"}, "TPU v2 is older than v4"},
		"v3":           {map[string]string{"device": "0x0027\n", "subsystem_device": "0x004f\n"}, "TPU v3 is older than v4"},
		"unknown":      {map[string]string{"device": "0x1234\n"}, "1234 is not a known TPU"},
		"no number":    {map[string]string{"device": "\xff\n"}, "cannot be read"},
		"lost a lane":  {map[string]string{"current_link_width": "1\n"}, ""},
		"bus errors":   {map[string]string{"aer_dev_fatal": "TOTAL_ERR_FATAL 3\n"}, "3 fatal errors"},
		"odd counters": {map[string]string{"aer_dev_fatal": "TOTAL_ERR_FATAL x\n", "max_link_width": "255\n"}, ""},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			tree, m := start(t, "")
			for file, text := range c.files {
				if err := tree.Write(chip0+file, text); err != nil {
					t.Fatal(err)
				}
			}
			s := bench.Scan(t, m)
			drivertest.Judged(t, s.GetDevices()[0], c.want)
			if len(s.GetDevices()) != 4 || !s.GetDevices()[1].GetAllocatable() {
				t.Errorf("the others: %v", s.GetDevices())
			}
		})
	}
}

func TestSharedGroupAndForeignDriver(t *testing.T) {
	tree, m := start(t, "")
	relink := func(file, to string) {
		t.Helper()
		p := filepath.Join(tree.Dir, file)
		if err := errors.Join(os.Remove(p), os.Symlink(to, p)); err != nil {
			t.Fatal(err)
		}
	}
	relink(chip0+"iommu_group", "../../../kernel/iommu_groups/1")
	s := bench.Scan(t, m)
	if d := s.GetDevices(); d[0].GetAllocatable() || d[1].GetAllocatable() || !d[2].GetAllocatable() {
		t.Errorf("two chips of one group: %v", d)
	}
	relink(chip0+"driver", "../../../bus/pci/drivers/uio")
	if d := bench.Scan(t, m).GetDevices(); !strings.Contains(d[0].GetRejectReasons()[0], "but uio") || !d[1].GetAllocatable() {
		t.Errorf("another driver: %v", d)
	}
}

func TestWholeHostUnlessToldOtherwise(t *testing.T) {
	_, m := start(t, "")
	s := bench.Scan(t, m)
	if counts := s.GetSlots()[0].GetAllowedCounts(); !slices.Equal(counts, []uint32{4}) {
		t.Errorf("counts %v", counts)
	}
	if _, err := accelerator.Grants(s, drivertest.Whole(pick(s, 0, 1)...)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("half a host: %v", err)
	}
	r := edit(t, m, 3, 1, 0, 2)
	nodes := drivertest.Nodes(r)
	if want := []string{"/dev/vfio/0", "/dev/vfio/vfio", "/dev/vfio/1", "/dev/vfio/2", "/dev/vfio/3"}; !slices.Equal(nodes, want) {
		t.Errorf("nodes %v", nodes)
	}
	for name, want := range map[string]string{
		"TPU_VISIBLE_CHIPS": "0,1,2,3", "TPU_SKIP_MDS_QUERY": "true", "TPU_RUNTIME_METRICS_PORTS": "8431,8432,8433,8434",
		"TPU_TOPOLOGY": "2x2", "TPU_ACCELERATOR_TYPE": "v5litepod-4", "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1",
	} {
		if got := r.GetEdits().GetEnv()[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if l := r.GetEdits().GetRlimits(); len(l) != 1 || l[0].GetName() != "memlock" {
		t.Errorf("limits %v", l)
	}
	logs := r.GetEdits().GetMounts()[0]
	if info, err := os.Stat(logs.GetSource()); err != nil || !logs.GetWritable() || info.Mode().Perm() != 0o777 {
		t.Errorf("%v, %v", logs, err)
	}
}

func TestOwnDriverOfV4(t *testing.T) {
	tree, m := start(t, `{"allowed_counts": [1, 2], "visible_chips": "TPU_VISIBLE_DEVICES"}`)
	for i := range 4 {
		at := "sys/devices/pci0000:00/0000:00:0" + strconv.Itoa(4+i) + ".0/"
		name := "accel" + strconv.Itoa(3-i)
		p := filepath.Join(tree.Dir, "sys/class/accel", name)
		node := filepath.Join(tree.Dir, "dev", name)
		err := errors.Join(tree.Write(at+"device", "0x005e\n"), tree.Remove(at+"driver"), tree.Remove(at+"iommu_group"),
			os.MkdirAll(p, 0o755), os.Symlink(filepath.Join(tree.Dir, at), filepath.Join(p, "device")),
			os.Link(filepath.Join(tree.Dir, "dev/vfio/0"), node))
		if err != nil {
			t.Fatal(err)
		}
	}
	e := edit(t, m, 0, 2).GetEdits()
	if e.GetDeviceNodes()[0].GetPath() != "/dev/accel1" || e.GetDeviceNodes()[1].GetPath() != "/dev/accel3" || len(e.GetRlimits()) > 0 {
		t.Errorf("%v", e)
	}
	if e.GetEnv()["TPU_VISIBLE_DEVICES"] != "1,3" || e.GetEnv()["TPU_TOPOLOGY"] != "1x2x1" || e.GetEnv()["TPU_ACCELERATOR_TYPE"] != "v4-4" ||
		e.GetEnv()["TPU_CHIPS_PER_HOST_BOUNDS"] != "1,2,1" {
		t.Errorf("%v", e.GetEnv())
	}
}

// memory returns the memory usage of a workload with these chips, as reported by the plugin.
func memory(t *testing.T, m *machine, pids []int32, chips ...int) []*pb.Metric {
	t.Helper()
	s := bench.Scan(t, m)
	w := &pb.Workload{AllocationId: "a", HostPids: pids, Allocations: drivertest.Whole(pick(s, chips...)...)}
	all := m.SampleWorkloads(t.Context(), s, &pb.WorkloadSet{Workloads: []*pb.Workload{w}})[0].GetMetrics()
	return slices.DeleteFunc(all, func(m *pb.Metric) bool { return m.GetName() != "tpu_mem" })
}

func TestOneAddressOfAllChips(t *testing.T) {
	tree, m := start(t, "own")
	got := memory(t, m, nil, 2, 3)
	if len(got) != 2 || got[1].GetValue() != 9663676416 || got[1].GetCapacity() != 17179869184 || got[1].GetQuality() != pb.Metric_MEASURED {
		t.Errorf("%v", got)
	}
	all := m.Sample(t.Context(), bench.Scan(t, m))
	if last := all[len(all)-1]; last.GetName() != "tpu_util" || last.GetValue() != 75 {
		t.Errorf("%v", last)
	}
	for name, spoil := range map[string]func() error{
		"fails": func() error { return tree.Fail("libtpu", 1, "") }, "hangs": func() error { return tree.Hang("libtpu") },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if got := memory(t, m, nil, 2); got[0].GetQuality() != pb.Metric_UNAVAILABLE {
			t.Errorf("the library %s: %v", name, got)
		}
	}
}

// Old metrics are not reported.
func TestOldFiguresAreNotShown(t *testing.T) {
	_, m := start(t, "")
	s := bench.Scan(t, m)
	id := s.GetDevices()[0].GetId()
	for age, want := range map[time.Duration]pb.Metric_Quality{0: pb.Metric_MEASURED, time.Hour: pb.Metric_UNAVAILABLE} {
		m.seen[id] = seen{used: 1, total: 2, busy: 3, at: time.Now().Add(-age)}
		for _, x := range m.Sample(t.Context(), s) {
			if x.GetDeviceId() == id && x.GetQuality() != want {
				t.Errorf("%s old: %v", age, x)
			}
		}
	}
}

// liar is a container's own library, which can return any response.
type liar struct {
	libtpu.UnimplementedRuntimeMetricServiceServer
}

func (liar) GetRuntimeMetric(context.Context, *libtpu.MetricRequest) (*libtpu.MetricResponse, error) {
	r := &libtpu.MetricResponse{Metric: &libtpu.TPUMetric{}}
	for n, v := range map[int64]float64{-1: 1, maxChips: 2, 1 << 62: 3, 0: -4, 1: 5} {
		r.Metric.Metrics = append(r.Metric.Metrics, &libtpu.Metric{
			Attribute: &libtpu.Attribute{Value: &libtpu.AttrValue{IntAttr: n}},
			Gauge:     &libtpu.Gauge{Value: &libtpu.Gauge_AsDouble{AsDouble: v}},
		})
	}
	return r, nil
}

func TestLiesOfAContainer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	libtpu.RegisterRuntimeMetricServiceServer(server, liar{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	defer func() {
		server.Stop()
		<-done
	}()
	f, err := ask(t.Context(), l.Addr().String(), direct, 1)
	if err != nil || len(f.used) != 1 || f.used[1] != 5 || len(f.busy) != 1 {
		t.Errorf("%v, %v", f, err)
	}
}

// TestInsideTheContainersNetwork checks a program that listens in its own network namespace,
// unreachable from others.
func TestInsideTheContainersNetwork(t *testing.T) {
	tree, m := start(t, `{"allowed_counts": [1, 2, 4]}`)
	var own settings
	if err := json.Unmarshal(tree.Config(), &own); err != nil {
		t.Fatal(err)
	}
	ns, l, err := listenApart(m.Port)
	if errors.Is(err, unix.EPERM) {
		t.Skip("network namespaces need root")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go forward(l, own.Address)
	if err := os.MkdirAll(filepath.Join(tree.Dir, "proc/4242/ns"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(ns, filepath.Join(tree.Dir, "proc/4242/ns/net")); err != nil {
		t.Fatal(err)
	}
	// The program numbers its chips from 0: its second is the machine's fourth.
	got := memory(t, m, []int32{4242}, 1, 3)
	if len(got) != 2 || got[0].GetValue() != 0 || got[1].GetValue() != 3221225472 || got[1].GetQuality() != pb.Metric_MEASURED {
		t.Errorf("%v", got)
	}
	for _, metric := range m.Sample(t.Context(), bench.Scan(t, m)) {
		known := metric.GetDeviceId() == "0000:00:05.0" || metric.GetDeviceId() == "0000:00:07.0"
		if known == (metric.GetQuality() == pb.Metric_UNAVAILABLE) {
			t.Errorf("of the node: %v", metric)
		}
	}
	if got := memory(t, m, []int32{4343}, 0); got[0].GetQuality() != pb.Metric_UNAVAILABLE {
		t.Errorf("an ended process: %v", got)
	}
}

// listenApart listens on loopback in a new network namespace, which exists as long as the
// listener's thread: until the test ends.
func listenApart(port int) (namespace string, l net.Listener, err error) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		namespace, l, err = unshare(port)
		close(done)
		if err == nil {
			select {} // the thread keeps the namespace's file alive
		}
	}()
	<-done
	return namespace, l, err
}

func unshare(port int) (string, net.Listener, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return "", nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return "", nil, err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return "", nil, err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return "/proc/" + strconv.Itoa(os.Getpid()) + "/task/" + strconv.Itoa(unix.Gettid()) + "/ns/net", l, err
}

// forward connects connections to a server outside.
func forward(l net.Listener, address string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", address)
		if err != nil {
			in.Close()
			continue
		}
		go func() { defer out.Close(); _, _ = io.Copy(out, in) }()
		go func() { defer in.Close(); _, _ = io.Copy(in, out) }()
	}
}

func TestSettings(t *testing.T) {
	bench.Refuses(t, map[string]string{
		`{"allowed_counts": [2, 1]}`:         "allowed_counts[1]",
		`{"allowed_counts": [17]}`:           "1 to 16",
		`{"allowed_counts": [0]}`:            "allowed_counts[0]",
		`{"visible_chips": "PATH"}`:          "visible_chips",
		`{"metrics_port": 65530}`:            "metrics_port",
		`{"metrics_address": "libtpu"}`:      "metrics_address",
		`{"metrics_address": "libtpu:http"}`: "metrics_address",
		`{"zone": "us"}`:                     "zone",
	})
}
