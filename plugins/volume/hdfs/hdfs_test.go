package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/internal/simulator/hdfs"
	"github.com/berthhq/berth/internal/simulator/simulatortest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

func TestMain(m *testing.M) { simulatortest.Main(m, main) }

const scopeA = "0123456789abcdef0123456789abcdef"

// TestConformance runs the suite on the simulator on btrfs.
func TestConformance(t *testing.T) { simulatortest.Conform(t, hdfs.New, simulator.Options{}) }

func TestLive(t *testing.T) { simulatortest.Live(t, "HDFS") }

// TestRequests compares the requests to a name node with golden files.
func TestRequests(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hdfs.New, simulator.Options{}, nil)
	step := b.Steps()
	step("open", nil)
	step("create", b.Create(scopeA, simulatortest.Bytes(32<<20)))
	n := int64(0)
	step("limit", b.Limit(scopeA, &pb.Limit{Inodes: &n}))
	_, err := b.Get(scopeA)
	step("get", err)
	b.State()
	step("health", nil)
	step("delete", b.Delete(scopeA))
}

// TestReplicasCount checks that limits apply to the size of files, regardless of their replicas.
func TestReplicasCount(t *testing.T) {
	for _, replication := range []string{"1", "3"} {
		t.Run(replication, func(t *testing.T) {
			b, opened := simulatortest.NewHarness(t, hdfs.New, simulator.Options{Settings: map[string]string{"replication": replication}}, nil)
			if opened.Enforcement != pb.Enforcement_HARD {
				t.Errorf("opened as %v", opened)
			}
			b.Must(b.Create(scopeA, simulatortest.Bytes(16<<20)))
			b.Must(b.Write(scopeA+"/data", 12<<20))
			s, err := b.Get(scopeA)
			if err != nil || s.Limit.GetBytes() != 16<<20 || s.GetUsedBytes() < 12<<20 || s.GetUsedBytes() > 13<<20 || s.GetUsedInodes() != 1 {
				t.Errorf("scope %v, %v", s, err)
			}
			b.Refused(scopeA+"/more", 8<<20)
			b.Must(b.Limit(scopeA, nil))
			b.Must(b.Write(scopeA+"/more", 8<<20))
		})
	}
}

// TestReplicationGiven checks clusters that do not report the replication, and trees whose files
// have another one.
func TestReplicationGiven(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hdfs.New, simulator.Options{}, map[string]any{"replication": 6})
	b.Must(b.Create(scopeA, simulatortest.Bytes(16<<20)))
	b.Must(b.Write(scopeA+"/data", 24<<20)) // three replicas are half of six
	if err := b.Limit(scopeA, simulatortest.Bytes(1<<62)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a limit whose replicas cannot be counted: %v", err)
	}
}

// TestNoQuotas checks clusters without limits, and the reasons.
func TestNoQuotas(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hdfs.New, simulator.Options{}, nil)
	b.Without(map[string]string{"quota=refused": "superuser", "quota=missing": "3.3"})
	if again := b.Open(nil); again.Enforcement != pb.Enforcement_HARD {
		t.Errorf("opened again as %v", again)
	}
}

// TestStandby checks that the active one of two name nodes is used.
func TestStandby(t *testing.T) {
	idle := simulatortest.Start(t, hdfs.New, simulator.Options{Settings: map[string]string{"state": "standby"}})
	ca, err := os.ReadFile(idle.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := simulatortest.NewHarness(t, hdfs.New, simulator.Options{}, nil)
	own, err := os.ReadFile(b.Simulator.CAFile)
	b.Must(err)
	both := t.TempDir() + "/ca.pem"
	b.Must(os.WriteFile(both, slices.Concat(ca, own), 0o600))
	b.Open(map[string]any{"url": idle.URL, "more_urls": []string{b.Simulator.URL}, "ca_file": both, "password_file": shared(t, b.Simulator, idle)})
	b.Must(b.Create(scopeA, simulatortest.Bytes(1<<20)))
}

func TestSecrets(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hdfs.New, simulator.Options{}, nil)
	b.Secrets()
}

// shared makes the second server accept the first one's password.
func shared(t *testing.T, a, other *simulator.Server) string {
	t.Helper()
	other.Password = a.Password
	return a.PasswordFile
}

func TestTrouble(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, hdfs.New, simulator.Options{}, nil)
	b.Trouble()
	b.Simulator.Set("state", "safemode")
	if h := b.State(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "safe mode") {
		t.Errorf("health: %v", h)
	}
	began := time.Now()
	if err := b.Create(scopeA, simulatortest.Bytes(1<<20)); status.Code(err) != codes.Unavailable {
		t.Errorf("create in safe mode: %v after %v", err, time.Since(began))
	}
	b.Simulator.Set("state", "")
	if _, err := b.OpenAs("w", map[string]any{"path": "/other"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("another path: %v", err)
	}
}
