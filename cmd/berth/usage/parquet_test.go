package usage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

// TestParquet checks that the Parquet file has the rows of the CSV, with exact sums.
func TestParquet(t *testing.T) {
	f := newServer(t)
	f.Data("UsageReport", `{"usageReport":[
		{"slot":"cpu","slotSeconds":"5400.25","keys":[{"dimension":"USER","value":"u1","label":"=kim@example.org"},{"dimension":"SLOT","value":"cpu","label":""}]},
		{"slot":"mem","slotSeconds":"99999999999999999999.5","keys":[{"dimension":"USER","value":"u2","label":""},{"dimension":"SLOT","value":"mem","label":""}]}]}`)
	path := filepath.Join(t.TempDir(), "usage.parquet")
	if r := f.Run("usage", "--by", "user,slot", "--parquet", path); r.Code != 0 || r.Out != "" {
		t.Fatalf("%+v", r)
	}
	type row struct {
		User    string  `parquet:"user"`
		Name    string  `parquet:"user_name"`
		Slot    string  `parquet:"slot"`
		Exact   string  `parquet:"slot_seconds_exact"`
		Seconds float64 `parquet:"slot_seconds"`
	}
	got, err := parquet.ReadFile[row](path)
	if err != nil {
		t.Fatal(err)
	}
	want := []row{{"u1", "=kim@example.org", "cpu", "5400.25", 5400.25}, {"u2", "", "mem", "99999999999999999999.5", 99999999999999999999.5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if r := f.Run("usage", "--by", "user", "--parquet", filepath.Join(t.TempDir(), "missing", "x")); r.Code == 0 {
		t.Errorf("a folder that does not exist: %+v", r)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}
