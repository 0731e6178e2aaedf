package arraytest

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

	"github.com/berthhq/berth/internal/array"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

// program is what a plugin is called in its own test: the test binary under another name.
const program = "berth-volume-under-test"

// Main is the TestMain of a plugin whose test binary is the plugin too.
func Main(m *testing.M, plugin func()) {
	if filepath.Base(os.Args[0]) == program { // the suite starts it without the cookie too
		plugin()
		return
	}
	os.Exit(m.Run())
}

// Program is the path of the plugin.
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

// QuickExit is for the environment of plugins: without it the race detector lets each
// process wait for a second at its end.
const QuickExit = "GORACE=atexit_sleep_ms=0"

// Conform is the suite on an array.
func Conform(t *testing.T, make array.Maker, o array.Options) {
	a := Start(t, make, o)
	volumetest.Test(t, volumetest.Plugin{
		Path: Program(t), Env: []string{QuickExit}, Mount: a.Mount(), Options: a.PluginOptions(), Lane: volumetest.Lane{NoInodes: true},
	})
}

// Live runs the suite against a vendor's own array: BERTH_NAME_LIVE is a file with
// the options, BERTH_NAME_MOUNT where its volume is mounted.
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

// Bed is a plugin with one volume, "v", on an array.
type Bed struct {
	*testing.T
	*volume.Client
	Array *array.Array
	log   string // the file with the plugin's
}

// NewBed starts both until the end of the test and opens the volume; more are
// options over the array's.
func NewBed(t *testing.T, make array.Maker, o array.Options, more map[string]any) (*Bed, *pb.OpenVolumeResponse) {
	t.Helper()
	b := &Bed{T: t, Array: Start(t, make, o), log: filepath.Join(t.TempDir(), "log")}
	lines, err := os.Create(b.log)
	b.Must(err)
	t.Cleanup(func() { lines.Close() }) // after the plugin
	b.Client = launch(t, slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug})))
	return b, b.Open(more)
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
func (b *Bed) Open(more map[string]any) *pb.OpenVolumeResponse {
	b.Helper()
	r, err := b.OpenAs("v", more)
	b.Must(err)
	return r
}

// OpenAs opens a volume under a name.
func (b *Bed) OpenAs(name string, more map[string]any) (*pb.OpenVolumeResponse, error) {
	return b.OpenVolume(b.Context(), &pb.OpenVolumeRequest{Volume: name, MountPath: b.Array.Mount(), OptionsJson: b.Array.PluginOptions(more)})
}

// Must ends the test with an error.
func (b *Bed) Must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// Bytes is a limit.
func Bytes(n int64) *pb.Limit { return &pb.Limit{Bytes: &n} }

// Create makes a scope.
func (b *Bed) Create(scope string, l *pb.Limit) error {
	_, err := b.CreateScope(b.Context(), &pb.ScopeRequest{Volume: "v", Scope: scope, Limit: l})
	return err
}

// Limit sets a scope's.
func (b *Bed) Limit(scope string, l *pb.Limit) error {
	_, err := b.SetScopeLimit(b.Context(), &pb.ScopeRequest{Volume: "v", Scope: scope, Limit: l})
	return err
}

// Get asks for a scope.
func (b *Bed) Get(scope string) (*pb.Scope, error) {
	return b.GetScope(b.Context(), &pb.ScopeRef{Volume: "v", Scope: scope})
}

// Delete removes one.
func (b *Bed) Delete(scope string) error {
	_, err := b.DeleteScope(b.Context(), &pb.ScopeRef{Volume: "v", Scope: scope})
	return err
}

// State asks for the volume's health.
func (b *Bed) State() *pb.HealthReport {
	b.Helper()
	h, err := b.Health(b.Context(), &pb.VolumeRef{Volume: "v"})
	b.Must(err)
	return h
}

// Asked are the addresses of all requests so far that hold a text.
func (b *Bed) Asked(part string) (targets []string) {
	for _, e := range b.Array.Exchanges() {
		if strings.Contains(e.Target, part) {
			targets = append(targets, e.Target)
		}
	}
	return targets
}

// SessionsEnd makes and deletes a scope until the plugin has logged in again, at an
// address that holds a text.
func (b *Bed) SessionsEnd(login string) {
	b.Helper()
	for end := time.Now().Add(time.Minute); len(b.Asked(login)) < 2; {
		scope := array.Random()
		b.Must(b.Create(scope, Bytes(8<<20)))
		b.Must(b.Delete(scope))
		if time.Now().After(end) {
			b.Fatalf("logged in by %v", b.Asked(login))
		}
	}
}

// Refreshes ends the access token alone, by a refusal: the refresh token is used, and not
// the password. login is in the addresses of both.
func (b *Bed) Refreshes(refusal array.Fault, login, refresh string) {
	b.Helper()
	b.Array.Forget()
	refusal.Times = 1
	defer b.Array.Inject(refusal)()
	b.Must(b.Create(array.Random(), nil))
	if got := b.Asked(login); !slices.Equal(got, []string{refresh}) {
		b.Errorf("logged in by %v", got)
	}
}

// Write fills a file below the mount, to the disk: a quota may refuse late.
func (b *Bed) Write(name string, bytes int) error {
	f, err := os.Create(filepath.Join(b.Array.Mount(), name))
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, bytes))
	return errors.Join(err, f.Sync(), f.Close())
}

// Refused checks that a write meets a limit.
func (b *Bed) Refused(name string, bytes int) {
	b.Helper()
	if err := b.Write(name, bytes); !errors.Is(err, unix.EDQUOT) {
		b.Errorf("%d bytes to %s: %v, want EDQUOT", bytes, name, err)
	}
}

// List is all scopes; one that comes twice fails the test.
func (b *Bed) List() map[string]*pb.Scope {
	b.Helper()
	all := map[string]*pb.Scope{}
	list, err := b.ListScopes(b.Context(), &pb.VolumeRef{Volume: "v"})
	b.Must(err)
	for {
		s, err := list.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		b.Must(err)
		if all[s.Scope] != nil {
			b.Errorf("%s is listed twice", s.Scope)
		}
		all[s.Scope] = s
	}
}

// Trouble is what goes wrong between any plugin and its array and must not show: the
// whole life of a scope with each fault once. What goes wrong for good has its code.
func (b *Bed) Trouble() {
	for name, f := range map[string]array.Fault{
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
		b.Run(name, func(t *testing.T) {
			scope := array.Random()
			defer b.Array.Inject(f)()
			for _, err := range []error{b.Create(scope, Bytes(16<<20)), b.Limit(scope, Bytes(8<<20))} {
				if err != nil {
					t.Fatal(err)
				}
			}
			s, err := b.Get(scope)
			if err != nil || s.GetLimit().GetBytes() != 8<<20 {
				t.Errorf("scope %v, %v", s, err)
			}
			if err := b.Delete(scope); err != nil {
				t.Error(err)
			}
		})
	}
	b.Run("down", func(t *testing.T) {
		defer b.Array.Inject(array.Fault{Status: 503, RetryAfter: time.Hour})()
		err := b.Create(array.Random(), Bytes(1<<20))
		if status.Code(err) != codes.Unavailable || !retryable(err) {
			t.Errorf("create: %v", err)
		}
		if h := b.State(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "does not answer") {
			t.Errorf("health: %v", h)
		}
	})
	b.Run("password", func(t *testing.T) {
		if _, ok := b.Array.Product().Options()["username"]; !ok {
			t.Skip("nobody logs in by name")
		}
		_, err := b.OpenAs("w", map[string]any{"username": "nobody"})
		if status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), b.Array.Password) {
			t.Errorf("open: %v", err)
		}
	})
	if h := b.State(); h.State != pb.HealthReport_HEALTHY {
		b.Errorf("health at last: %v", h)
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

// Rises writes until the rates that the plugin tells have risen, and returns them. Each
// figure has to be told as the one that it is.
func (b *Bed) Rises(subject pb.PerformanceSample_Subject) *pb.PerformanceSample {
	b.Helper()
	for end := time.Now().Add(time.Minute); ; {
		b.Must(b.Write("data", 4<<20))
		p, err := b.Performance(b.Context(), &pb.VolumeRef{Volume: "v"})
		b.Must(err)
		if p.GetWriteBytesPerSecond() > 1<<16 && p.GetWriteOpsPerSecond() > 0 && p.Subject == subject {
			b.tells()
			return p
		}
		if time.Now().After(end) {
			b.Fatalf("performance %v", p)
		}
	}
}

// tells checks that no figure is told in the place of another.
func (b *Bed) tells() {
	b.Helper()
	want := array.Rates{Reads: 404, Writes: 812, BytesRead: 1604, BytesWritten: 3208, ReadMicros: 500, WriteMicros: 900}
	b.Array.Tree.Pretend(&want)
	defer b.Array.Tree.Pretend(nil)
	p, err := b.Performance(b.Context(), &pb.VolumeRef{Volume: "v"})
	b.Must(err)
	got := array.Rates{
		Reads: p.GetReadOpsPerSecond(), Writes: p.GetWriteOpsPerSecond(), BytesRead: p.GetReadBytesPerSecond(), BytesWritten: p.GetWriteBytesPerSecond(),
		ReadMicros: p.GetReadLatencyUs(), WriteMicros: p.GetWriteLatencyUs(),
	}
	if p.ReadLatencyUs == nil && p.WriteLatencyUs == nil { // whose unit is not known
		want.ReadMicros, want.WriteMicros = 0, 0
	}
	if got != want { // all are whole numbers, and sums of such
		b.Errorf("rates %+v are told as %+v", want, got)
	}
}
