package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/array"
	"github.com/berthhq/berth/internal/array/arraytest"
	"github.com/berthhq/berth/internal/array/netapp"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == program { // the suite starts it without the cookie too
		main()
		return
	}
	os.Exit(m.Run())
}

const (
	// program is what the plugin is called: the test binary under another name.
	program = "berth-netapp"

	scopeA = "0123456789abcdef0123456789abcdef"
	scopeB = "fedcba9876543210fedcba9876543210"
)

func self(t *testing.T) string {
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

// TestConformance is the lane "simulator on btrfs", with jobs and without.
func TestConformance(t *testing.T) {
	for name, o := range map[string]array.Options{
		"jobs": {PageSize: 2},
		"sync": {Settings: map[string]string{"answers": "sync"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := arraytest.Start(t, netapp.New, o)
			volumetest.Test(t, volumetest.Plugin{Path: self(t), Mount: a.Mount(), Options: a.PluginOptions()})
		})
	}
}

// TestLive runs the suite against an array: BERTH_NETAPP_LIVE is a file with the
// options, BERTH_NETAPP_MOUNT where its volume is mounted.
func TestLive(t *testing.T) {
	file, mount := os.Getenv("BERTH_NETAPP_LIVE"), os.Getenv("BERTH_NETAPP_MOUNT")
	if file == "" || mount == "" {
		t.Skip("no array: BERTH_NETAPP_LIVE is to be a file with options, BERTH_NETAPP_MOUNT where the volume is mounted")
	}
	options, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	volumetest.Test(t, volumetest.Plugin{Path: self(t), Mount: mount, Options: string(options)})
}

// bed is the plugin on an array.
type bed struct {
	*testing.T
	*volume.Client
	array *array.Array
}

func start(t *testing.T, o array.Options, more map[string]any) (*bed, *pb.OpenVolumeResponse) {
	t.Helper()
	b := &bed{T: t, array: arraytest.Start(t, netapp.New, o)}
	c, err := volume.Launch(t.Context(), volume.Options{Path: self(t), SocketDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b.Client = c
	return b, b.open(more)
}

func (b *bed) open(more map[string]any) *pb.OpenVolumeResponse {
	b.Helper()
	r, err := b.OpenVolume(b.Context(), &pb.OpenVolumeRequest{Volume: "v", MountPath: b.array.Mount(), OptionsJson: b.array.PluginOptions(more)})
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func of(bytes int64) *pb.Limit { return &pb.Limit{Bytes: &bytes} }

func (b *bed) create(scope string, l *pb.Limit) error {
	_, err := b.CreateScope(b.Context(), &pb.ScopeRequest{Volume: "v", Scope: scope, Limit: l})
	return err
}

func (b *bed) limit(scope string, l *pb.Limit) error {
	_, err := b.SetScopeLimit(b.Context(), &pb.ScopeRequest{Volume: "v", Scope: scope, Limit: l})
	return err
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) write(name string, bytes int) error {
	return os.WriteFile(filepath.Join(b.array.Mount(), name), make([]byte, bytes), 0o644)
}

func (b *bed) health() *pb.HealthReport {
	b.Helper()
	h, err := b.Health(b.Context(), &pb.VolumeRef{Volume: "v"})
	b.must(err)
	return h
}

// TestRequests holds what is asked of an array against golden files.
func TestRequests(t *testing.T) {
	b, _ := start(t, array.Options{JobTime: -1}, map[string]any{"file_limits": true})
	step := func(name string, err error) {
		t.Helper()
		b.must(err)
		arraytest.Golden(t, b.array, name, regexp.MustCompile(`"(size|used|available)":\d+`))
		b.array.Forget()
	}
	step("open", nil)
	step("create", b.create(scopeA, of(32<<20)))
	files := int64(1000)
	step("limit", b.limit(scopeA, &pb.Limit{Inodes: &files}))
	_, err := b.GetScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scopeA})
	step("get", err)
	_, err = b.DeleteScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scopeA})
	step("delete", err)
	_, err = b.Capacity(t.Context(), &pb.VolumeRef{Volume: "v"})
	step("capacity", err)
}

// TestLimitRefusesBytes is the way from a REST call to a write that fails.
func TestLimitRefusesBytes(t *testing.T) {
	b, opened := start(t, array.Options{Settings: map[string]string{"lag": "300ms"}}, map[string]any{"file_limits": true})
	if opened.Enforcement != pb.Enforcement_HARD {
		t.Errorf("opened as %v", opened)
	}
	b.must(b.create(scopeA, of(16<<20)))
	if err := b.write(scopeA+"/data", 32<<20); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("write past the limit: %v, want EDQUOT", err)
	}
	b.must(b.limit(scopeA, of(64<<20)))
	b.must(b.write(scopeA+"/data", 32<<20))
	b.must(b.limit(scopeA, nil))
	b.must(b.write(scopeA+"/data", 80<<20))
	for _, l := range []*pb.Limit{of(0), {Inodes: new(int64)}} {
		if err := b.limit(scopeA, l); status.Code(err) != codes.InvalidArgument {
			t.Errorf("limit %v: %v", l, err)
		}
		if err := b.create(scopeB, l); status.Code(err) != codes.InvalidArgument || b.array.Tree.IsDir(scopeB) {
			t.Errorf("create with %v: %v", l, err)
		}
	}
}

// TestInactiveRules is an array that keeps a limit and does not enforce it.
func TestInactiveRules(t *testing.T) {
	b, _ := start(t, array.Options{Settings: map[string]string{"activation": "restart"}}, nil)
	b.must(b.create(scopeA, of(16<<20)))
	if err := b.write(scopeA+"/data", 32<<20); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("write past a limit that was not active: %v, want EDQUOT", err)
	}
	b.must(b.limit(scopeA, of(64<<20)))
	b.must(b.write(scopeA+"/data", 32<<20))

	b.open(map[string]any{"manage_quotas": false})
	if err := b.limit(scopeA, of(80<<20)); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "manage_quotas") {
		t.Errorf("a limit that stays inactive: %v", err)
	}
}

func TestQuotasRefused(t *testing.T) {
	b, opened := start(t, array.Options{Settings: map[string]string{"quota": "refused"}}, nil)
	if opened.Enforcement != pb.Enforcement_NONE || slices.Contains(opened.Capabilities, pb.Capability_QUOTA_BYTES) {
		t.Errorf("opened as %v", opened)
	}
	if h := b.health(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "not read-write") {
		t.Errorf("health %v", h)
	}
	b.must(b.create(scopeA, nil))
	if err := b.limit(scopeA, of(1<<20)); status.Code(err) != codes.Unimplemented {
		t.Errorf("limit: %v", err)
	}
	b.array.Set("quota", "")
	if again := b.open(nil); again.Enforcement != pb.Enforcement_HARD {
		t.Errorf("opened again as %v", again)
	}
}

// TestTrouble is what goes wrong between plugin and array.
func TestTrouble(t *testing.T) {
	b, _ := start(t, array.Options{}, nil)
	for name, f := range map[string]array.Fault{
		"busy":        {Status: 503, Times: 1, RetryAfter: time.Second},
		"throttled":   {Status: 429, Times: 1, RetryAfter: time.Second},
		"slow":        {Delay: 200 * time.Millisecond, Times: 3},
		"lost":        {Method: "POST", Lost: true, Times: 1},
		"cut":         {Drop: true, Skip: 1, Times: 1},
		"lost change": {Method: "PATCH", Lost: true, Times: 1},
	} {
		t.Run(name, func(t *testing.T) {
			scope := array.Random()
			remove := b.array.Inject(f)
			defer remove()
			b.must(b.create(scope, of(16<<20)))
			b.must(b.limit(scope, of(8<<20)))
			s, err := b.GetScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scope})
			if err != nil || s.GetLimit().GetBytes() != 8<<20 {
				t.Errorf("scope %v, %v", s, err)
			}
			_, err = b.DeleteScope(t.Context(), &pb.ScopeRef{Volume: "v", Scope: scope})
			b.must(err)
		})
	}
	t.Run("unauthorized", func(t *testing.T) {
		defer b.array.Inject(array.Fault{Status: 401})()
		err := b.create(scopeA, nil)
		if status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), b.array.Password) {
			t.Errorf("create: %v", err)
		}
	})
	t.Run("down", func(t *testing.T) {
		defer b.array.Inject(array.Fault{Status: 503, RetryAfter: time.Hour})()
		err := b.create(scopeA, nil)
		if status.Code(err) != codes.Unavailable || !retryable(err) {
			t.Errorf("create: %v", err)
		}
		if h := b.health(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, "management does not answer") {
			t.Errorf("health: %v", h)
		}
	})
	t.Run("job fails", func(t *testing.T) {
		b.array.Jobs.FailNext(errors.New("aggregate is offline"))
		err := b.create(scopeA, nil)
		if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "aggregate is offline") {
			t.Errorf("create: %v", err)
		}
		if b.array.Tree.IsDir(scopeA) {
			t.Error("half a scope is left")
		}
	})
	t.Run("offline", func(t *testing.T) {
		b.array.Set("state", "offline")
		defer b.array.Set("state", "")
		if h := b.health(); h.State != pb.HealthReport_UNAVAILABLE || !strings.Contains(h.Reason, "offline") {
			t.Errorf("health: %v", h)
		}
	})
	if h := b.health(); h.State != pb.HealthReport_HEALTHY || h.Metadata["svm"] != "svm1" {
		t.Errorf("health at last: %v", h)
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

func TestWrongOptions(t *testing.T) {
	b, _ := start(t, array.Options{}, nil)
	for name, tc := range map[string]struct {
		more map[string]any
		want codes.Code
		text string
	}{
		"volume":   {map[string]any{"volume": "other"}, codes.FailedPrecondition, `"other"`},
		"svm":      {map[string]any{"svm": "other"}, codes.FailedPrecondition, `"other"`},
		"user":     {map[string]any{"username": "nobody"}, codes.Unauthenticated, "User is not authorized"},
		"http":     {map[string]any{"url": "http://127.0.0.1"}, codes.InvalidArgument, "url"},
		"password": {map[string]any{"password": "secret"}, codes.InvalidArgument, "password"},
		"ca":       {map[string]any{"ca_file": "/dev/null"}, codes.InvalidArgument, "holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			q := &pb.OpenVolumeRequest{Volume: "w", MountPath: b.array.Mount(), OptionsJson: b.array.PluginOptions(tc.more)}
			_, err := b.OpenVolume(t.Context(), q)
			if status.Code(err) != tc.want || !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "secret\"") {
				t.Errorf("%v, want %v with %s", err, tc.want, tc.text)
			}
		})
	}
}

// TestPages has more scopes than a page of the array.
func TestPages(t *testing.T) {
	b, _ := start(t, array.Options{PageSize: 2}, nil)
	want := map[string]bool{}
	for range 5 {
		scope := array.Random()
		b.must(b.create(scope, nil))
		want[scope] = true
	}
	list, err := b.ListScopes(t.Context(), &pb.VolumeRef{Volume: "v"})
	b.must(err)
	for {
		s, err := list.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		b.must(err)
		if !want[s.Scope] {
			t.Errorf("listed twice, or never made: %s", s.Scope)
		}
		delete(want, s.Scope)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

// TestPerformance writes and sees the rates rise.
func TestPerformance(t *testing.T) {
	b, _ := start(t, array.Options{}, nil)
	for end := time.Now().Add(time.Minute); ; {
		f, err := os.Create(filepath.Join(b.array.Mount(), "data"))
		b.must(err)
		_, err = f.Write(make([]byte, 4<<20))
		b.must(errors.Join(err, f.Sync(), f.Close()))
		p, err := b.Performance(t.Context(), &pb.VolumeRef{Volume: "v"})
		b.must(err)
		if p.GetWriteBytesPerSecond() > 1<<18 && p.GetWriteOpsPerSecond() > 0 && p.WindowMs == 15000 && p.Subject == pb.PerformanceSample_THIS_VOLUME {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("performance %v", p)
		}
	}
}
