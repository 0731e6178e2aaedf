package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/testvm"
	"github.com/berthhq/berth/internal/testvm/vmtest"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

func TestMain(m *testing.M) { vmtest.Main(m) }

// site is a Samba server and the kernel's client of it.
type site struct {
	vmtest.Environment
	disk  string // on the server
	mount string
}

// each runs f on a new VM that is server and client.
func each(t *testing.T, server, options string, f func(*testing.T, site)) {
	t.Helper()
	m := vmtest.Machine{
		Machine:  testvm.Machine{Disks: []testvm.Disk{testvm.XFS("server")}, Modules: testvm.SMBModules, Tools: testvm.SMBTools},
		Kinds:    []testvm.Kind{testvm.UML}, // the host's kernel has no client
		Programs: map[string]string{"smb": "."},
	}
	vmtest.Each(t, m, func(t *testing.T, p vmtest.Environment) {
		if err := testvm.ServeSMB(p.Mount("server"), server); err != nil {
			t.Fatal(err)
		}
		at, err := testvm.MountSMB("volume", options)
		if err != nil {
			t.Fatal(err)
		}
		f(t, site{p, p.Mount("server"), at})
	})
}

// open starts the plugin on the mount.
func (s site) open(t *testing.T, accept ...string) (*volume.Client, *pb.OpenVolumeResponse, error) {
	t.Helper()
	return volumetest.Open(t, s.Program("smb"), s.mount, settings(t, accept))
}

func settings(t *testing.T, accept []string) string {
	raw, err := json.Marshal(map[string]any{"usage_max_age_s": 0, "accept": append([]string{}, accept...)})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestVMSuite runs the suite on a share with default settings; TestVMSuiteKeeps runs it on one that
// stores attributes of files.
func TestVMSuite(t *testing.T) {
	each(t, "", "vers=3.1.1,hard,iocharset=utf8", func(t *testing.T, s site) {
		volumetest.Test(t, volumetest.Plugin{Path: s.Program("smb"), Mount: s.mount, Options: settings(t, []string{noCase}), Environment: volumetest.Environment{Lengths: true}})
	})
}

func TestVMSuiteKeeps(t *testing.T) {
	each(t, testvm.SMBKeeps, testvm.SMBKept, func(t *testing.T, s site) {
		volumetest.Test(t, volumetest.Plugin{Path: s.Program("smb"), Mount: s.mount, Options: settings(t, nil), Environment: volumetest.Environment{Lengths: true}})
	})
}

// TestVMProbe checks the tested abilities of each share.
func TestVMProbe(t *testing.T) {
	for name, c := range map[string]struct{ server, options, lacks string }{
		"plain":          {"", "vers=3.1.1,hard", "case modes owners symlinks text"},
		"case sensitive": {"case sensitive = yes", "vers=3.0,hard,iocharset=utf8,mfsymlinks", "modes owners"},
		"all":            {testvm.SMBKeeps, testvm.SMBKept, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			each(t, c.server, c.options, func(t *testing.T, s site) {
				client, _, err := s.open(t, strings.Fields(c.lacks)...)
				if err != nil {
					t.Fatal(err)
				}
				h, err := client.Health(t.Context(), &pb.VolumeRef{Volume: "v"})
				if err != nil || h.Metadata["lacks"] != c.lacks || h.State != pb.HealthReport_HEALTHY {
					t.Errorf("health %v, %v", h, err)
				}
				left, err := os.ReadDir(filepath.Join(s.disk, ".berth"))
				if err != nil || len(left) != 0 {
					t.Errorf("left behind: %v, %v", left, err)
				}
			})
		})
	}
}

const scopeA = "0123456789abcdef0123456789abcdef"

// TestVMRefused checks that a mount on which one file can replace another is refused unless the
// operator accepted it.
func TestVMRefused(t *testing.T) {
	each(t, "", "vers=3.1.1", func(t *testing.T, s site) {
		c, _, err := s.open(t)
		if err != nil {
			t.Fatal(err) // there is no existing file to test it with
		}
		create := func() error {
			_, err := c.CreateScope(t.Context(), &pb.ScopeRequest{Volume: "v", Scope: scopeA})
			return err
		}
		if err := create(); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "option accept") {
			t.Errorf("a scope: %v", err)
		}
		h, err := c.Health(t.Context(), &pb.VolumeRef{Volume: "v"})
		if err != nil || h.State != pb.HealthReport_DEGRADED {
			t.Fatalf("health %v, %v", h, err)
		}
		for _, reason := range []string{"soft", `accept "case"`, `accept "modes"`, `accept "owners"`, `accept "symlinks"`, `accept "text"`} {
			if !strings.Contains(h.Reason, reason) {
				t.Errorf("health has no %s: %v", reason, h)
			}
		}
		if _, _, err := s.open(t, noModes); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "option accept") {
			t.Errorf("opened where it can be known: %v", err)
		}
		c, _, err = s.open(t, noCase)
		if err != nil {
			t.Fatal(err)
		}
		if err := create(); err != nil {
			t.Errorf("a scope, accepted: %v", err)
		}
	})
}
