package accelerator_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

func description() *pb.DescribeResponse {
	return &pb.DescribeResponse{Key: "x", PluginVersion: "1", Vendor: "X", Slots: []*pb.SlotType{
		slot("x.device", pb.SlotType_COUNT), slot("x.shares", pb.SlotType_SHARES),
		slot("x.mem", pb.SlotType_BYTES), slot("x.device:*-part", pb.SlotType_UNIQUE),
	}}
}

func slot(name string, k pb.SlotType_Kind) *pb.SlotType {
	return &pb.SlotType{Name: name, Kind: k, DisplayName: "X", Unit: "X"}
}

func good() *pb.DeviceSnapshot {
	node := int32(0)
	return &pb.DeviceSnapshot{
		Revision: 1,
		Slots: []*pb.SlotType{slot("x.device", pb.SlotType_COUNT), slot("x.shares", pb.SlotType_SHARES),
			slot("x.mem", pb.SlotType_BYTES), slot("x.device:1g-part", pb.SlotType_UNIQUE)},
		Devices: []*pb.Device{
			{Id: "a", Model: "X1", NumaNode: &node, MemoryBytes: 100, Allocatable: true, Health: pb.Health_HEALTH_HEALTHY,
				Capacity: map[string]string{"x.device": "1", "x.shares": "1.5", "x.mem": "100"}},
			{Id: "b", Model: "X0", RejectReasons: []string{"too old"}},
			{Id: "a/1", ParentId: "a", Model: "X1 1g", Allocatable: true, Capacity: map[string]string{"x.device:1g-part": "1"},
				Consumes: []*pb.CounterUse{{Set: "a", Amounts: map[string]string{"slices": "3"}}}},
		},
		Counters: []*pb.CounterSet{{Name: "a", Counters: map[string]string{"slices": "7"}}},
		Links:    []*pb.Link{{A: "a", B: "b", Gbps: 100}},
	}
}

func TestValidate(t *testing.T) {
	if err := accelerator.ValidateDescription(description()); err != nil {
		t.Fatal(err)
	}
	if err := accelerator.Validate(description(), good()); err != nil {
		t.Fatalf("a good snapshot: %v", err)
	}
	if err := accelerator.Validate(description(), &pb.DeviceSnapshot{Revision: 1}); err != nil {
		t.Fatalf("an empty snapshot: %v", err)
	}
	minus := int32(-1)
	for name, tc := range map[string]struct {
		spoil func(*pb.DeviceSnapshot)
		names string // the error must contain this
	}{
		"negative":          {func(s *pb.DeviceSnapshot) { s.Devices[0].Capacity["x.device"] = "-4" }, `"a", x.device`},
		"not a number":      {func(s *pb.DeviceSnapshot) { s.Devices[0].Capacity["x.shares"] = "NaN" }, "NaN"},
		"infinite":          {func(s *pb.DeviceSnapshot) { s.Devices[0].Capacity["x.shares"] = "Inf" }, "Inf"},
		"exponent":          {func(s *pb.DeviceSnapshot) { s.Devices[0].Capacity["x.device"] = "1e9" }, "1e9"},
		"overflow":          {func(s *pb.DeviceSnapshot) { s.Devices[0].Capacity["x.device"] = "18446744073709551617" }, "too large"},
		"zero":              {func(s *pb.DeviceSnapshot) { s.Devices[0].Capacity["x.device"] = "0" }, "capacity is 0"},
		"half a device":     {func(s *pb.DeviceSnapshot) { s.Devices[0].Capacity["x.device"] = "0.5" }, "not whole"},
		"more than memory":  {func(s *pb.DeviceSnapshot) { s.Devices[0].Capacity["x.mem"] = "101" }, "x.mem: 101 allocatable bytes"},
		"twice":             {func(s *pb.DeviceSnapshot) { s.Devices = append(s.Devices, s.Devices[0]) }, "twice"},
		"foreign slot":      {func(s *pb.DeviceSnapshot) { s.Devices[0].Capacity["y.device"] = "1" }, "y.device"},
		"undescribed slot":  {func(s *pb.DeviceSnapshot) { s.Slots[0].Name = "x.other" }, "x.other"},
		"kind":              {func(s *pb.DeviceSnapshot) { s.Slots[1].Kind = pb.SlotType_COUNT }, "x.shares"},
		"unique of two":     {func(s *pb.DeviceSnapshot) { s.Devices[2].Capacity["x.device:1g-part"] = "2" }, "unique"},
		"numa -1":           {func(s *pb.DeviceSnapshot) { s.Devices[0].NumaNode = &minus }, "numa"},
		"silent rejection":  {func(s *pb.DeviceSnapshot) { s.Devices[1].RejectReasons = nil }, "is not allocatable and has no reason"},
		"lost, allocatable": {func(s *pb.DeviceSnapshot) { s.Devices[0].Health = pb.Health_HEALTH_LOST }, "lost"},
		"bad id":            {func(s *pb.DeviceSnapshot) { s.Devices[0].Id = "a b\n" }, "malformed"},
		"no id":             {func(s *pb.DeviceSnapshot) { s.Devices[0].Id = "" }, "malformed"},
		"unknown counter":   {func(s *pb.DeviceSnapshot) { s.Devices[2].Consumes[0].Set = "z" }, `"z"`},
		"over counter":      {func(s *pb.DeviceSnapshot) { s.Devices[2].Consumes[0].Amounts["slices"] = "8" }, "consumes 8"},
		"negative counter":  {func(s *pb.DeviceSnapshot) { s.Counters[0].Counters["slices"] = "-7" }, "-7"},
		"dangling link":     {func(s *pb.DeviceSnapshot) { s.Links[0].B = "z" }, "link"},
		"NaN link":          {func(s *pb.DeviceSnapshot) { s.Links[0].Gbps = math.NaN() }, "NaN"},
		"no revision":       {func(s *pb.DeviceSnapshot) { s.Revision = 0 }, "revision"},
		"long text":         {func(s *pb.DeviceSnapshot) { s.Devices[0].Model = strings.Repeat("x", 5000) }, "longer"},
		"a million devices": {func(s *pb.DeviceSnapshot) { s.Devices = make([]*pb.Device, 1_000_000) }, "1000000 devices"},
		"long attribute": {func(s *pb.DeviceSnapshot) {
			s.Devices[0].Attributes = map[string]string{"x": strings.Repeat("x", 5000)}
		}, "longer"},
		"many attributes":         {func(s *pb.DeviceSnapshot) { s.Devices[0].Attributes = numbered(500) }, "attributes: 500"},
		"nameless attribute":      {func(s *pb.DeviceSnapshot) { s.Devices[0].Attributes = map[string]string{"": "x"} }, "without a name"},
		"long group":              {func(s *pb.DeviceSnapshot) { s.Devices[0].Groups = []string{strings.Repeat("x", 5000)} }, "longer"},
		"many counters":           {func(s *pb.DeviceSnapshot) { s.Counters[0].Counters = numbered(500) }, "counters: 500"},
		"many counter sets":       {func(s *pb.DeviceSnapshot) { s.Counters = make([]*pb.CounterSet, 5000) }, "5000 counter sets"},
		"much driver info":        {func(s *pb.DeviceSnapshot) { s.DriverInfo = numbered(500) }, "driver_info: 500"},
		"an empty list of counts": {func(s *pb.DeviceSnapshot) { s.Slots[0].AllowedCounts = []uint32{0, 1} }, "allowed_counts"},
		"counts of parts": {func(s *pb.DeviceSnapshot) {
			s.Slots[0].Name, s.Slots[0].Kind, s.Slots[0].AllowedCounts = "mock.shares", pb.SlotType_SHARES, []uint32{1}
		}, "allowed_counts"},
		"counts unordered":   {func(s *pb.DeviceSnapshot) { s.Slots[0].AllowedCounts = []uint32{4, 1} }, "allowed_counts"},
		"a nil device":       {func(s *pb.DeviceSnapshot) { s.Devices[0] = nil }, "malformed"},
		"a million problems": {func(s *pb.DeviceSnapshot) { many(s) }, "and 480 more"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			tc.spoil(s)
			err := accelerator.Validate(description(), s)
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tc.names) {
				t.Errorf("error does not name %q: %v", tc.names, err)
			}
		})
	}
}

func numbered(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprint("n", i)] = "1"
	}
	return out
}

func many(s *pb.DeviceSnapshot) {
	for i := range 500 {
		s.Devices = append(s.Devices, &pb.Device{Id: fmt.Sprint(i), RejectReasons: []string{"x"}})
	}
}

func TestValidateDescription(t *testing.T) {
	for name, spoil := range map[string]func(*pb.DescribeResponse){
		"no key":           func(d *pb.DescribeResponse) { d.Key = "" },
		"key in caps":      func(d *pb.DescribeResponse) { d.Key = "X" },
		"key with a slash": func(d *pb.DescribeResponse) { d.Key = "../x" },
		"no version":       func(d *pb.DescribeResponse) { d.PluginVersion = "" },
		"no slots":         func(d *pb.DescribeResponse) { d.Slots = nil },
		"other's slot":     func(d *pb.DescribeResponse) { d.Slots[0].Name = "cuda.device" },
		"slot twice":       func(d *pb.DescribeResponse) { d.Slots[1] = d.Slots[0] },
		"no unit":          func(d *pb.DescribeResponse) { d.Slots[0].Unit = "" },
		"no kind":          func(d *pb.DescribeResponse) { d.Slots[0].Kind = 0 },
		"bad quantum":      func(d *pb.DescribeResponse) { d.Slots[1].Quantum = "0.0001" },
		"pci vendor":       func(d *pb.DescribeResponse) { d.PciVendors = []string{"0x10de"} },
		"long vendor":      func(d *pb.DescribeResponse) { d.Vendor = strings.Repeat("x", 5000) },
		"long unit":        func(d *pb.DescribeResponse) { d.Slots[0].Unit = strings.Repeat("x", 5000) },
		"schema":           func(d *pb.DescribeResponse) { d.ConfigSchema = []byte("{") },
		"large schema":     func(d *pb.DescribeResponse) { d.ConfigSchema = []byte(`"` + strings.Repeat("x", 1<<20) + `"`) },
		"many vendors":     func(d *pb.DescribeResponse) { d.PciVendors = slices.Repeat([]string{"1234"}, 500) },
		"many slots":       func(d *pb.DescribeResponse) { d.Slots = make([]*pb.SlotType, 1000) },
	} {
		d := description()
		spoil(d)
		if accelerator.ValidateDescription(d) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestValidateEdits(t *testing.T) {
	node := func(p string) *pb.ContainerEdits {
		return &pb.ContainerEdits{DeviceNodes: []*pb.DeviceNode{{Path: p}}}
	}
	mount := func(from, to string) *pb.ContainerEdits {
		return &pb.ContainerEdits{Mounts: []*pb.Mount{{Source: from, Target: to}}}
	}
	ok := &pb.ContainerEdits{
		DeviceNodes: []*pb.DeviceNode{{Path: "/dev/x0", Permissions: "rw"}, {Path: "/dev/x1", HostPath: "/dev/x7"}},
		Mounts:      []*pb.Mount{{Source: "/usr/lib/libx.so.1", Target: "/usr/local/x/libx.so.1"}},
		Env:         map[string]string{"X_VISIBLE": "0,1"}, LibraryDirs: []string{"/usr/local/x"},
		Rlimits: []*pb.Rlimit{{Name: "memlock", Soft: 1, Hard: 1}},
	}
	if err := accelerator.ValidateEdits(ok); err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]*pb.ContainerEdits{
		"relative node": node("dev/x"), "climbing node": node("/dev/../etc/x"), "all of dev": node("/dev"),
		"relative source": mount("lib", "/lib/x"), "over root": mount("/x", "/"), "over proc": mount("/x", "/proc/sys"),
		"twice":           {Mounts: []*pb.Mount{{Source: "/a", Target: "/x"}, {Source: "/b", Target: "/x"}}},
		"permissions":     {DeviceNodes: []*pb.DeviceNode{{Path: "/dev/x", Permissions: "rwx"}}},
		"a million nodes": {DeviceNodes: make([]*pb.DeviceNode, 1_000_000)}, "env": {Env: numbered(500)},
		"env name": {Env: map[string]string{"A=B": "x"}}, "env NUL": {Env: map[string]string{"A": "x\x00"}},
		"library dir": {LibraryDirs: []string{"/a:/b"}},
		"rlimit":      {Rlimits: []*pb.Rlimit{{Name: "nofile", Soft: 2, Hard: 1}}},
	} {
		if accelerator.ValidateEdits(e) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestValidatePrepared(t *testing.T) {
	lines := func(key, value string) *pb.PrepareResponse {
		return &pb.PrepareResponse{ResourceData: map[string]string{key: value}}
	}
	for name, r := range map[string]*pb.PrepareResponse{
		"nothing": {}, "a line": lines("X_DEVICES", "0:0.5, 1=é"), "no value": lines("X", ""),
		"longest": lines(strings.Repeat("X", 64), strings.Repeat("x", 4096)),
		"device":  {Attached: []*pb.AttachedDevice{{DeviceId: "0000:03:00.0", Model: "One Two"}}},
	} {
		if err := accelerator.ValidatePrepared(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, row := range map[string]struct {
		r        *pb.PrepareResponse
		wantText string
	}{
		"edits":        {&pb.PrepareResponse{Edits: &pb.ContainerEdits{LibraryDirs: []string{"a"}}}, "edits: library path"},
		"two lines":    {lines("X", "0\nPATH=/evil"), "X is not one line"},
		"not UTF-8":    {lines("X", "\xff"), "X is not one line"},
		"long value":   {lines("X", strings.Repeat("x", 4097)), "4096 bytes"},
		"key with =":   {lines("X=", ""), `"X=" is not a name`},
		"empty key":    {lines("", "x"), `"" is not a name`},
		"long key":     {lines(strings.Repeat("X", 65), ""), "at most 64"},
		"too many":     {&pb.PrepareResponse{ResourceData: numbered(500)}, "resource_data: 500"},
		"model":        {&pb.PrepareResponse{Attached: []*pb.AttachedDevice{{DeviceId: "0", Model: "a\nb"}}}, "model"},
		"device's id":  {&pb.PrepareResponse{Attached: []*pb.AttachedDevice{{DeviceId: "a b"}}}, `"a b"`},
		"many devices": {&pb.PrepareResponse{Attached: make([]*pb.AttachedDevice, 100_000)}, "100000 attached devices are more than 1024"},
	} {
		if err := accelerator.ValidatePrepared(row.r); err == nil || !strings.Contains(err.Error(), row.wantText) {
			t.Errorf("%s: %v, want %s", name, err, row.wantText)
		}
	}
}

func TestValidateMetric(t *testing.T) {
	limit := 100.0
	m := func(f func(*pb.Metric)) *pb.Metric {
		m := &pb.Metric{Name: "x_util", Unit: "percent", Value: 50, Capacity: &limit, Kind: pb.Metric_GAUGE, Quality: pb.Metric_MEASURED}
		f(m)
		return m
	}
	if err := accelerator.ValidateMetric("x", m(func(*pb.Metric) {})); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]*pb.Metric{
		"foreign":  m(func(m *pb.Metric) { m.Name = "cuda_util" }),
		"NaN":      m(func(m *pb.Metric) { m.Value = math.NaN() }),
		"infinite": m(func(m *pb.Metric) { m.Value = math.Inf(1) }),
		"negative": m(func(m *pb.Metric) { m.Value = -1 }),
		"over":     m(func(m *pb.Metric) { m.Value = 101 }),
		"quality":  m(func(m *pb.Metric) { m.Quality = 0 }),
		"long":     m(func(m *pb.Metric) { m.Name = "x_" + strings.Repeat("x", 500) }),
		"of what":  m(func(m *pb.Metric) { m.Kind, m.Capacity = pb.Metric_UTILIZATION, nil }),
		"unit":     m(func(m *pb.Metric) { m.Unit = "" }),
	} {
		if accelerator.ValidateMetric("x", bad) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAmounts(t *testing.T) {
	const c, s = pb.SlotType_COUNT, pb.SlotType_SHARES
	for _, tc := range []struct {
		kind pb.SlotType_Kind
		in   string
		want int64
		out  string
	}{
		{c, "0", 0, "0"}, {c, "8", 8, "8"}, {c, "9223372036854", 9223372036854, "9223372036854"},
		{s, "0.5", 500, "0.5"}, {s, "1", 1000, "1"}, {s, "1.000", 1000, "1"}, {s, "0.001", 1, "0.001"}, {s, "10", 10000, "10"}, {s, "0", 0, "0"},
	} {
		got, err := accelerator.ParseAmount(tc.kind, tc.in)
		if err != nil || got != tc.want {
			t.Errorf("ParseAmount(%v, %q) = %d, %v, want %d", tc.kind, tc.in, got, err, tc.want)
		}
		if out := accelerator.FormatAmount(tc.kind, got); out != tc.out {
			t.Errorf("FormatAmount(%v, %d) = %q, want %q", tc.kind, got, out, tc.out)
		}
	}
	for _, bad := range []string{"", ".", ".5", "1.", "-1", "+1", "01", "1 ", "1e3", "NaN", "0x1", "1,5", "1.0001", "٣", "99999999999999999999999"} {
		if n, err := accelerator.ParseAmount(s, bad); err == nil {
			t.Errorf("ParseAmount(%q) = %d, want an error", bad, n)
		}
	}
}
