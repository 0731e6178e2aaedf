package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/internal/simulator/efs"
	"github.com/berthhq/berth/internal/simulator/simulatortest"
	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

func TestMain(m *testing.M) { simulatortest.Main(m, main) }

// TestConformance runs the suite on the simulator on btrfs.
func TestConformance(t *testing.T) { simulatortest.Conform(t, efs.New, simulator.Options{}) }

func TestLive(t *testing.T) { simulatortest.Live(t, "EFS") }

// changing matches the parts of responses that differ between runs: times and stored values.
var changing = regexp.MustCompile(`"(Timestamp|CreationTime|Value|ValueInStandard)":\d+`)

// TestRequests compares the requests to AWS with golden files.
func TestRequests(t *testing.T) {
	b, opened := simulatortest.NewHarness(t, efs.New, simulator.Options{PageSize: 2}, nil)
	if opened.Enforcement != pb.Enforcement_COOPERATIVE {
		t.Errorf("opened as %v", opened)
	}
	step := b.Steps(changing)
	step("open", nil)
	_, err := b.Capacity(t.Context(), &pb.VolumeRef{Volume: "v"})
	step("capacity", err)
	if h := b.State(); h.State != pb.HealthReport_HEALTHY || h.Metadata["mount_targets"] != "eu-test-1a eu-test-1b eu-test-1c" || h.Metadata["throughput_mode"] != "provisioned" {
		t.Errorf("health %v", h)
	}
	step("health", nil)
}

// TestCapacityLags checks that the usage is the value that EFS has metered, with its time.
func TestCapacityLags(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, efs.New, simulator.Options{}, nil)
	ask := func() *pb.CapacityReport {
		c, err := b.Capacity(t.Context(), &pb.VolumeRef{Volume: "v"})
		b.Must(err)
		return c
	}
	before := ask()
	b.Must(b.Write("data", 64<<20))
	if now := ask(); now.UsedBytes != before.UsedBytes || now.AsOfUnixMs != before.AsOfUnixMs {
		t.Errorf("not metered, and reported as %v after %v", now, before)
	}
	b.Simulator.Set("metered", "again")
	if now := ask(); now.UsedBytes < before.UsedBytes+60<<20 || !now.Elastic || now.TotalInodes != nil {
		t.Errorf("metered as %v after %v", now, before)
	}
}

// TestCredentials checks that credentials from each source are renewed after they have expired.
func TestCredentials(t *testing.T) {
	for name, from := range map[string]func(*simulator.Server) map[string]any{"instance": efs.Instance, "container": efs.Container} {
		t.Run(name, func(t *testing.T) {
			b, _ := simulatortest.NewHarness(t, efs.New, simulator.Options{}, nil)
			b.Open(from(b.Simulator))
			defer b.Simulator.Inject(simulator.Fault{Path: "/2015-02-01/file-systems", Expire: true, Times: 1})()
			if h := b.State(); h.State != pb.HealthReport_HEALTHY {
				t.Errorf("health after the credentials have ended: %v", h)
			}
			if n := len(b.Asked("/container")) + len(b.Asked("/latest/meta-data/iam/security-credentials/berth-proxy")); n != 2 {
				t.Errorf("credentials were requested %d times, want 2", n)
			}
		})
	}
	t.Run("file", func(t *testing.T) {
		b, _ := simulatortest.NewHarness(t, efs.New, simulator.Options{}, nil)
		b.Must(efs.Rotate(b.Simulator))
		if h := b.State(); h.State != pb.HealthReport_HEALTHY {
			t.Errorf("health after the file was replaced: %v", h)
		}
	})
}

// TestRefused checks that errors contain the reason but no credentials.
func TestRefused(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, efs.New, simulator.Options{}, nil)
	secret := simulator.Random()
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "credentials")
		b.Must(os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	own, err := os.ReadFile(b.Simulator.Product().Options()["credentials_file"].(string))
	b.Must(err)
	id := regexp.MustCompile(`AKIA\w+`).FindString(string(own))
	for name, c := range map[string]struct {
		more     map[string]any
		want     codes.Code
		wantText string
	}{
		"unknown key":        {map[string]any{"credentials_file": write("[default]\naws_access_key_id=AKIANOBODY\naws_secret_access_key=" + secret)}, codes.Unauthenticated, "UnrecognizedClient"},
		"wrong secret":       {map[string]any{"credentials_file": write("[default]\naws_access_key_id=" + id + "\naws_secret_access_key=" + secret)}, codes.Unauthenticated, "InvalidSignature"},
		"no section":         {map[string]any{"profile": "third"}, codes.Unauthenticated, "section third"},
		"no keys":            {map[string]any{"profile": "other"}, codes.Unauthenticated, "section other"},
		"region":             {map[string]any{"region": "us-east-1"}, codes.Unauthenticated, "InvalidSignature"},
		"file system":        {map[string]any{"file_system_id": "fs-00000000"}, codes.FailedPrecondition, "FileSystemNotFound"},
		"no file":            {map[string]any{"credentials_file": ""}, codes.InvalidArgument, "credentials_file"},
		"no container":       {map[string]any{"credentials": "container"}, codes.InvalidArgument, "container_credentials_url"},
		"without encryption": {map[string]any{"credentials": "container", "container_credentials_url": "http://example.com/x"}, codes.InvalidArgument, "without TLS"},
		"metadata":           {map[string]any{"credentials": "instance", "metadata_url": "http://192.0.2.1"}, codes.InvalidArgument, "metadata_url"},
		"no instance":        {map[string]any{"credentials": "instance", "metadata_url": "http://127.0.0.1:1"}, codes.Unauthenticated, "credentials:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.OpenAs("w", c.more)
			if status.Code(err) != c.want || !strings.Contains(err.Error(), c.wantText) || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "Canonical") {
				t.Errorf("open: %v", err)
			}
		})
	}
	b.Simulator.Set("policy", "denied")
	if _, err := b.OpenAs("w", nil); status.Code(err) != codes.PermissionDenied {
		t.Errorf("without the permission: %v", err)
	}
	if h := b.State(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "AccessDenied") {
		t.Errorf("health without the permission: %v", h)
	}
}

// TestSecrets checks that parts of a request or token that AWS or a container's service repeats are
// not shown.
func TestSecrets(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, efs.New, simulator.Options{}, nil)
	b.Echo(simulator.Fault{Path: "/2015-02-01/", Status: http.StatusBadRequest}, nil)
	b.Open(efs.Instance(b.Simulator)) // whose requests contain a session's token
	b.Echo(simulator.Fault{Path: "/2015-02-01/", Status: http.StatusForbidden}, nil)
	b.Echo(simulator.Fault{Path: "/container", Status: http.StatusUnauthorized}, efs.Container(b.Simulator))
}

// TestTrouble checks temporary and permanent failures.
func TestTrouble(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, efs.New, simulator.Options{}, nil)
	for name, f := range map[string]simulator.Fault{
		"throttled": {Status: 429, Times: 2},
		"busy":      {Status: 503, Times: 1, RetryAfter: time.Second},
		"broken":    {Status: 500, Times: 1},
		"cut":       {Drop: true, Times: 1},
		"lost":      {Lost: true, Times: 1},
		"slow":      {Delay: 200 * time.Millisecond, Times: 2},
	} {
		t.Run(name, func(t *testing.T) {
			defer b.Simulator.Inject(f)()
			if h := b.State(); h.State != pb.HealthReport_HEALTHY {
				t.Errorf("health %v", h)
			}
		})
	}
	t.Run("down", func(t *testing.T) {
		defer b.Simulator.Inject(simulator.Fault{Status: 429})()
		_, err := b.Capacity(t.Context(), &pb.VolumeRef{Volume: "v"})
		if status.Code(err) != codes.Unavailable || len(status.Convert(err).Details()) != 1 || !status.Convert(err).Details()[0].(*pb.ErrorDetail).Retryable {
			t.Errorf("capacity: %v", err)
		}
		if h := b.State(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "does not answer") || !strings.Contains(h.Reason, "Throttling") {
			t.Errorf("health: %v", h)
		}
		scope := simulator.Random() // which needs no AWS
		b.Must(b.Create(scope, simulatortest.Bytes(1<<20)))
		b.Must(b.Delete(scope))
	})
}

func TestStates(t *testing.T) {
	b, _ := simulatortest.NewHarness(t, efs.New, simulator.Options{}, nil)
	for _, c := range []struct {
		setting, value string
		want           pb.HealthReport_State
		wantText       string
	}{
		{"state", "updating", pb.HealthReport_HEALTHY, ""},
		{"state", "error", pb.HealthReport_DEGRADED, "is error"},
		{"state", "deleting", pb.HealthReport_UNAVAILABLE, "is deleting"},
		{"targets", "available creating", pb.HealthReport_DEGRADED, "eu-test-1b is creating"},
		{"targets", "none", pb.HealthReport_DEGRADED, "no mount target"},
	} {
		b.Simulator.Set(c.setting, c.value)
		if h := b.State(); h.State != c.want || !strings.Contains(h.Reason, c.wantText) {
			t.Errorf("%s %s: health %v", c.setting, c.value, h)
		}
		b.Simulator.Set(c.setting, "")
	}
}

func TestAnother(t *testing.T) {
	for source, want := range map[string]bool{
		efs.ID + ".efs.eu-test-1.amazonaws.com:/": false, "fs-00000000.efs.eu-test-1.amazonaws.com:/": true,
		efs.ID + "0.efs.eu-test-1.amazonaws.com:/": true, "10.0.0.10:/": false, "127.0.0.1:/": false,
	} {
		if host, yes := another(source, efs.ID); yes != want {
			t.Errorf("%s, of %s, is another: %v", source, host, yes)
		}
	}
}

func TestShared(t *testing.T) {
	for i, c := range []struct{ text, want string }{
		{"[default]\naws_access_key_id = a\naws_secret_access_key = b=c/\n", "a b=c/ "},
		{"[x]\naws_access_key_id=z\n[default]\r\nAWS_ACCESS_KEY_ID=a\r\n# aws_access_key_id=no\naws_secret_access_key=b\naws_session_token=t==\n[y]\naws_session_token=u", "a b t=="},
		{"aws_access_key_id=a\naws_secret_access_key=b", ""},
		{"[default]\naws_access_key_id=a", ""},
		{"[default", ""},
	} {
		file := filepath.Join(t.TempDir(), "credentials")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := shared(driver.Secret(file), "default")
		if text := fmt.Sprint(got.AccessKeyID, " ", got.SecretAccessKey, " ", got.SessionToken); (err != nil) != (c.want == "") || err == nil && text != c.want {
			t.Errorf("%d: %q, %v", i, text, err)
		}
	}
}
