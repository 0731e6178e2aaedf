package device

import (
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// TestLines checks that the lines of two plugins are merged in order, and are the same after a
// plugin was killed.
func TestLines(t *testing.T) {
	m, _ := withMock(t, `{"devices": 2, "memory_bytes": 1073741824}`)
	r := Request{ID: "k-1", Kernel: "k", Session: "s", Allocations: append(ask("mock:gpu-0", "mock.shares", "0.5"), ask("mock:gpu-1", "mock.shares", "1")...)}
	first, err := m.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"MOCK_0_DEVICE=gpu-0", "MOCK_0_MEMORY=536870912", "MOCK_0_MODEL=Mock Accelerator", "MOCK_0_UNITS=32",
		"MOCK_1_DEVICE=gpu-1", "MOCK_1_MEMORY=1073741824", "MOCK_1_MODEL=Mock Accelerator", "MOCK_1_UNITS=64",
		"MOCK_SHARES=gpu-0:0.5,gpu-1:1",
	}
	if diff := cmp.Diff(want, first.Lines); diff != "" {
		t.Error(diff)
	}
	kill(t, m)
	again, err := m.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Lines, again.Lines); diff != "" {
		t.Errorf("after a restart of the plugin: %s", diff)
	}

	both := lines{}
	for _, row := range []struct {
		plugin, key, value string
		ok                 bool
	}{{"a-b", "A", "1", true}, {"c", "C", "2", true}, {"d", "A", "1", true}, {"e", "A", "3", false}} {
		err := both.add(row.plugin, &acceleratorpb.PrepareResponse{
			Attached:     []*acceleratorpb.AttachedDevice{{DeviceId: "0"}},
			ResourceData: map[string]string{row.key: row.value},
		})
		if (err == nil) != row.ok || err != nil && (!errdefs.IsFailedPrecondition(err) || !strings.Contains(err.Error(), "A is said by another")) {
			t.Errorf("%s says %s=%s: %v", row.plugin, row.key, row.value, err)
		}
	}
	if diff := cmp.Diff([]string{"A=1", "A_B_0_DEVICE=0", "C=2", "C_0_DEVICE=0", "D_0_DEVICE=0"}, both.list()[:5]); diff != "" {
		t.Error(diff)
	}
	if none, err := m.Prepare(t.Context(), Request{ID: "k-2", Allocations: ask(CPU, "cpu", "1")}); err != nil || len(none.Lines) != 0 {
		t.Errorf("without devices: %v, %v", none.Lines, err)
	}
}
