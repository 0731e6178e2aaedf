package arraytest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/array"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Steps holds what is asked of the array in each step of a test against a golden file
// of the step's name.
func (b *Bed) Steps(also ...*regexp.Regexp) func(name string, err error) {
	return func(name string, err error) {
		b.Helper()
		b.Must(err)
		Golden(b, b.Array, name, also...)
		b.Array.Forget()
	}
}

// Enforces is the way from a call to a write that fails: a scope with a limit, with a
// larger one, and without. It returns what is told of it in the end.
func (b *Bed) Enforces(scope string) *pb.Scope {
	b.Helper()
	b.Must(b.Create(scope, Bytes(16<<20)))
	b.Refused(scope+"/data", 32<<20)
	b.Must(b.Limit(scope, Bytes(64<<20)))
	b.Must(b.Write(scope+"/data", 32<<20))
	b.Must(b.Limit(scope, nil))
	b.Must(b.Write(scope+"/data", 80<<20))
	s, err := b.Get(scope)
	if err != nil || s.Limit.Bytes != nil || s.GetUsedBytes() < 80<<20 || s.GetUsedBytes() > 81<<20 {
		b.Errorf("scope %v, %v", s, err)
	}
	if err := b.Limit(scope, Bytes(0)); status.Code(err) != codes.InvalidArgument {
		b.Errorf("limit of zero: %v", err)
	}
	return s
}

// Limitless checks a volume that was opened without quotas: its health has the reason.
func (b *Bed) Limitless(opened *pb.OpenVolumeResponse, reason string) {
	b.Helper()
	if opened.Enforcement != pb.Enforcement_NONE || slices.Contains(opened.Capabilities, pb.Capability_QUOTA_BYTES) {
		b.Errorf("opened as %v", opened)
	}
	if h := b.State(); h.State != pb.HealthReport_DEGRADED || !strings.Contains(h.Reason, reason) {
		b.Errorf("health %v", h)
	}
	scope := array.Random()
	b.Must(b.Create(scope, nil))
	if err := b.Limit(scope, Bytes(1<<20)); status.Code(err) != codes.Unimplemented {
		b.Errorf("limit: %v", err)
	}
	b.Must(b.Delete(scope))
}

// Without is Limitless for each value of a setting, NAME=VALUE, and its reason.
func (b *Bed) Without(reasons map[string]string) {
	for setting, reason := range reasons {
		b.Run(setting, func(*testing.T) {
			name, value, _ := strings.Cut(setting, "=")
			b.Array.Set(name, value)
			defer b.Array.Set(name, "")
			b.Limitless(b.Open(nil), reason)
		})
	}
}

// Lists makes some scopes, more than a page of the array, and lists them, with their
// limits where those come with the list. It returns the list.
func (b *Bed) Lists(n int, limits bool) map[string]*pb.Scope {
	b.Helper()
	made := map[string]int64{}
	for i := range n {
		scope := array.Random()
		made[scope] = int64(i+1) << 20
		b.Must(b.Create(scope, Bytes(made[scope])))
	}
	all := b.List()
	for scope, bytes := range made {
		if all[scope] == nil || limits && all[scope].GetLimit().GetBytes() != bytes {
			b.Errorf("%s is listed as %v, want a limit of %d", scope, all[scope], bytes)
		}
	}
	if len(all) != len(made) {
		b.Errorf("%d scopes are listed, want %d", len(all), len(made))
	}
	return all
}

// Wrong are options that a plugin is not to take.
type Wrong struct {
	Options map[string]any // over the array's
	Code    codes.Code
	Text    string // in the error
}

// Refuses opens a volume with options that are wrong.
func (b *Bed) Refuses(rows map[string]Wrong) {
	for name, row := range rows {
		b.Run(name, func(t *testing.T) {
			_, err := b.OpenAs("w", row.Options)
			if status.Code(err) != row.Code || !strings.Contains(err.Error(), row.Text) || strings.Contains(err.Error(), "secret\"") {
				t.Errorf("%v, want %v with %s", err, row.Code, row.Text)
			}
		})
	}
}
