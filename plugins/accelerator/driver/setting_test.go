package driver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

func TestSettingsNameTheField(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want string // "" = accepted
	}{
		"a path":          {driver.PathSetting("runtime", "/opt/acme"), ""},
		"longest path":    {driver.PathSetting("runtime", "/"+strings.Repeat("x", 255)), ""},
		"path too long":   {driver.PathSetting("runtime", "/"+strings.Repeat("x", 256)), "runtime: "},
		"relative":        {driver.PathSetting("runtime", "opt"), `runtime: "opt"`},
		"no path":         {driver.PathSetting("runtime", ""), `runtime: ""`},
		"elsewhere":       {driver.PathSetting("runtime", "/opt/../etc"), `"/opt/../etc"`},
		"everything":      {driver.PathSetting("runtime", "/"), `runtime: "/"`},
		"device ids":      {driver.DeviceIDsSetting("ids", []string{"505c", "0001"}), ""},
		"none":            {driver.DeviceIDsSetting("ids", nil), ""},
		"upper case":      {driver.DeviceIDsSetting("ids", []string{"505c", "505C"}), "ids[1]: \"505C\""},
		"five digits":     {driver.DeviceIDsSetting("ids", []string{"505c0"}), "ids[0]"},
		"too many of ids": {driver.DeviceIDsSetting("ids", make([]string, 65)), "ids: 65, want at most 64"},
	} {
		if got := row.err; (got == nil) != (row.want == "") || got != nil && !strings.Contains(got.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, got, row.want)
		}
	}
}

func TestDirIsTheAllocationsOwn(t *testing.T) {
	work := filepath.Join(t.TempDir(), "work")
	r := &driver.Request{PrepareRequest: &pb.PrepareRequest{WorkDir: work}}
	for range 2 { // a request can be repeated
		dir, err := r.Dir("logs")
		if err != nil || dir != filepath.Join(work, "logs") {
			t.Fatalf("%q, %v", dir, err)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Errorf("%v, %v", info, err)
		}
	}
	r.WorkDir = "work"
	if _, err := r.Dir(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "work_dir") {
		t.Errorf("relative: %v", err)
	}
}
