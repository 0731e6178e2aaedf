package simulatortest

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

// program is the name of a plugin in its own test: a link to the test binary.
const program = "berth-volume-under-test"

// Main must be called from the TestMain of a plugin's package. The test binary is also the plugin.
func Main(m *testing.M, plugin func()) {
	if filepath.Base(os.Args[0]) == program { // without go-plugin's cookie, because the suite starts the program without one
		plugin()
		return
	}
	os.Exit(m.Run())
}

// Program returns the path of the plugin.
func Program(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), program)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// QuickExit is for the environment of plugins. Without it, the race detector delays the end of each
// process by a second.
const QuickExit = "GORACE=atexit_sleep_ms=0"

// Conform runs the suite on a simulator.
func Conform(t *testing.T, make simulator.Factory, o simulator.Options) {
	a := Start(t, make, o)
	volumetest.Test(t, volumetest.Plugin{
		Path: Program(t), Env: []string{QuickExit}, Mount: a.Mount(), Options: a.PluginOptions(), Environment: volumetest.Environment{NoInodes: true},
	})
}

// Live runs the suite against a vendor's real product: BERTH_NAME_LIVE is a file with the options,
// and BERTH_NAME_MOUNT the mount point of its volume.
func Live(t *testing.T, name string) {
	file, mount := os.Getenv("BERTH_"+name+"_LIVE"), os.Getenv("BERTH_"+name+"_MOUNT")
	if file == "" || mount == "" {
		t.Skipf("no array: BERTH_%s_LIVE is to be a file with options, BERTH_%s_MOUNT where the volume is mounted", name, name)
	}
	options, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	volumetest.Test(t, volumetest.Plugin{Path: Program(t), Mount: mount, Options: string(options)})
}

// Harness is a plugin with one volume, "v", on a simulator.
type Harness struct {
	*testing.T
	*volume.Client
	Simulator *simulator.Server
	log       string // the file with the plugin's log
}

// NewHarness starts both until the end of the test and opens the volume; more replaces or adds
// options.
func NewHarness(t *testing.T, make simulator.Factory, o simulator.Options, more map[string]any) (*Harness, *pb.OpenVolumeResponse) {
	t.Helper()
	h := &Harness{T: t, Simulator: Start(t, make, o), log: filepath.Join(t.TempDir(), "log")}
	lines, err := os.Create(h.log)
	h.Must(err)
	t.Cleanup(func() { lines.Close() }) // after the plugin
	h.Client = launch(t, slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug})))
	return h, h.Open(more)
}

// Launch starts the plugin until the end of the test.
func Launch(t *testing.T) *volume.Client {
	t.Helper()
	return launch(t, nil)
}

func launch(t *testing.T, log *slog.Logger) *volume.Client {
	t.Helper()
	c, err := volume.Launch(t.Context(), volume.Options{
		Path: Program(t), SocketDir: t.TempDir(), Logger: log,
		Env: []string{QuickExit},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Open opens the volume again.
func (h *Harness) Open(more map[string]any) *pb.OpenVolumeResponse {
	h.Helper()
	r, err := h.OpenAs("v", more)
	h.Must(err)
	return r
}

// OpenAs opens a volume with a name.
func (h *Harness) OpenAs(name string, more map[string]any) (*pb.OpenVolumeResponse, error) {
	return h.OpenVolume(h.Context(), &pb.OpenVolumeRequest{Volume: name, MountPath: h.Simulator.Mount(), OptionsJson: h.Simulator.PluginOptions(more)})
}

// Must ends the test if there is an error.
func (h *Harness) Must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// Bytes returns a limit of n bytes.
func Bytes(n int64) *pb.Limit { return &pb.Limit{Bytes: &n} }

// Create creates a scope.
func (h *Harness) Create(scope string, l *pb.Limit) error {
	_, err := h.CreateScope(h.Context(), &pb.ScopeRequest{Volume: "v", Scope: scope, Limit: l})
	return err
}

// Limit sets the limit of a scope.
func (h *Harness) Limit(scope string, l *pb.Limit) error {
	_, err := h.SetScopeLimit(h.Context(), &pb.ScopeRequest{Volume: "v", Scope: scope, Limit: l})
	return err
}

// Get returns a scope.
func (h *Harness) Get(scope string) (*pb.Scope, error) {
	return h.GetScope(h.Context(), &pb.ScopeRef{Volume: "v", Scope: scope})
}

// Delete deletes a scope.
func (h *Harness) Delete(scope string) error {
	_, err := h.DeleteScope(h.Context(), &pb.ScopeRef{Volume: "v", Scope: scope})
	return err
}

// State returns the volume's health.
func (h *Harness) State() *pb.HealthReport {
	h.Helper()
	report, err := h.Health(h.Context(), &pb.VolumeRef{Volume: "v"})
	h.Must(err)
	return report
}

// Asked returns the targets of all requests so far that contain a text.
func (h *Harness) Asked(part string) (targets []string) {
	for _, e := range h.Simulator.Exchanges() {
		if strings.Contains(e.Target, part) {
			targets = append(targets, e.Target)
		}
	}
	return targets
}

// SessionsEnd creates and deletes a scope until the plugin has logged in again, at an address that
// contains a text.
func (h *Harness) SessionsEnd(login string) {
	h.Helper()
	for end := time.Now().Add(time.Minute); len(h.Asked(login)) < 2; {
		scope := simulator.Random()
		h.Must(h.Create(scope, Bytes(8<<20)))
		h.Must(h.Delete(scope))
		if time.Now().After(end) {
			h.Fatalf("logged in by %v", h.Asked(login))
		}
	}
}

// Refreshes invalidates only the access token: the plugin must use the refresh token, and not the
// password. login is a part of the addresses of both.
func (h *Harness) Refreshes(refusal simulator.Fault, login, refresh string) {
	h.Helper()
	h.Simulator.Forget()
	refusal.Times = 1
	defer h.Simulator.Inject(refusal)()
	h.Must(h.Create(simulator.Random(), nil))
	if got := h.Asked(login); !slices.Equal(got, []string{refresh}) {
		h.Errorf("logged in by %v", got)
	}
}

// Write writes a file below the mount and syncs it, because a quota may refuse data late.
func (h *Harness) Write(name string, bytes int) error {
	f, err := os.Create(filepath.Join(h.Simulator.Mount(), name))
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, bytes))
	return errors.Join(err, f.Sync(), f.Close())
}

// Refused checks that a write exceeds a limit.
func (h *Harness) Refused(name string, bytes int) {
	h.Helper()
	if err := h.Write(name, bytes); !errors.Is(err, unix.EDQUOT) {
		h.Errorf("%d bytes to %s: %v, want EDQUOT", bytes, name, err)
	}
}

// List returns all scopes. The test fails if one is listed twice.
func (h *Harness) List() map[string]*pb.Scope {
	h.Helper()
	all := map[string]*pb.Scope{}
	list, err := h.ListScopes(h.Context(), &pb.VolumeRef{Volume: "v"})
	h.Must(err)
	for {
		s, err := list.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		h.Must(err)
		if all[s.Scope] != nil {
			h.Errorf("%s is listed twice", s.Scope)
		}
		all[s.Scope] = s
	}
}

// Trouble runs the whole life of a scope with each temporary fault between a plugin and its
// product, which must not fail. It also checks the codes of permanent failures.
func (h *Harness) Trouble() {
	for name, f := range map[string]simulator.Fault{
		"busy":        {Status: 503, Times: 1, RetryAfter: time.Second},
		"throttled":   {Status: 429, Times: 1, RetryAfter: time.Second},
		"slow":        {Delay: 200 * time.Millisecond, Times: 3},
		"expired":     {Expire: true, Skip: 1, Times: 1},
		"cut":         {Method: "GET", Drop: true, Times: 1},
		"lost":        {Method: "POST", Lost: true, Times: 1},
		"lost put":    {Method: "PUT", Lost: true, Times: 1},
		"lost change": {Method: "PATCH", Lost: true, Times: 1},
		"lost delete": {Method: "DELETE", Lost: true, Times: 1},
	} {
		h.Run(name, func(t *testing.T) {
			scope := simulator.Random()
			defer h.Simulator.Inject(f)()
			for _, err := range []error{h.Create(scope, Bytes(16<<20)), h.Limit(scope, Bytes(8<<20))} {
				if err != nil {
					t.Fatal(err)
				}
			}
			s, err := h.Get(scope)
			if err != nil || s.GetLimit().GetBytes() != 8<<20 {
				t.Errorf("scope %v, %v", s, err)
			}
			if err := h.Delete(scope); err != nil {
				t.Error(err)
			}
		})
	}
	h.Run("down", func(t *testing.T) {
		defer h.Simulator.Inject(simulator.Fault{Status: 503, RetryAfter: time.Hour})()
		err := h.Create(simulator.Random(), Bytes(1<<20))
		if status.Code(err) != codes.Unavailable || !retryable(err) {
			t.Errorf("create: %v", err)
		}
		if r := h.State(); r.State != pb.HealthReport_DEGRADED || !strings.Contains(r.Reason, "does not answer") {
			t.Errorf("health: %v", r)
		}
	})
	h.Run("password", func(t *testing.T) {
		if _, ok := h.Simulator.Product().Options()["username"]; !ok {
			t.Skip("the product has no user names")
		}
		_, err := h.OpenAs("w", map[string]any{"username": "nobody"})
		if status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), h.Simulator.Password) {
			t.Errorf("open: %v", err)
		}
	})
	if r := h.State(); r.State != pb.HealthReport_HEALTHY {
		h.Errorf("health at last: %v", r)
	}
}

func retryable(err error) bool {
	for _, d := range status.Convert(err).Details() {
		if e, ok := d.(*pb.ErrorDetail); ok && e.Retryable {
			return true
		}
	}
	return false
}

// Rises writes until the rates that the plugin reports have increased, and returns them. It also
// checks that no rate is reported as another.
func (h *Harness) Rises(subject pb.PerformanceSample_Subject) *pb.PerformanceSample {
	h.Helper()
	for end := time.Now().Add(time.Minute); ; {
		h.Must(h.Write("data", 4<<20))
		p, err := h.Performance(h.Context(), &pb.VolumeRef{Volume: "v"})
		h.Must(err)
		if p.GetWriteBytesPerSecond() > 1<<16 && p.GetWriteOpsPerSecond() > 0 && p.Subject == subject {
			h.checkRates()
			return p
		}
		if time.Now().After(end) {
			h.Fatalf("performance %v", p)
		}
	}
}

// checkRates checks that no rate is reported as another.
func (h *Harness) checkRates() {
	h.Helper()
	want := simulator.Rates{Reads: 404, Writes: 812, BytesRead: 1604, BytesWritten: 3208, ReadMicros: 500, WriteMicros: 900}
	h.Simulator.Tree.Pretend(&want)
	defer h.Simulator.Tree.Pretend(nil)
	p, err := h.Performance(h.Context(), &pb.VolumeRef{Volume: "v"})
	h.Must(err)
	got := simulator.Rates{
		Reads: p.GetReadOpsPerSecond(), Writes: p.GetWriteOpsPerSecond(), BytesRead: p.GetReadBytesPerSecond(), BytesWritten: p.GetWriteBytesPerSecond(),
		ReadMicros: p.GetReadLatencyUs(), WriteMicros: p.GetWriteLatencyUs(),
	}
	if p.ReadLatencyUs == nil && p.WriteLatencyUs == nil { // because their unit is unknown
		want.ReadMicros, want.WriteMicros = 0, 0
	}
	if got != want { // whole numbers and their sums compare exactly
		h.Errorf("rates %+v are reported as %+v", want, got)
	}
}
