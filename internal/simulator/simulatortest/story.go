package simulatortest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Steps returns a function that compares the requests of each step of a test with the golden file
// of the step's name.
func (h *Harness) Steps(also ...*regexp.Regexp) func(name string, err error) {
	return func(name string, err error) {
		h.Helper()
		h.Must(err)
		Golden(h, h.Simulator, name, also...)
		h.Simulator.Forget()
	}
}

// Enforces checks the way from a call to a failing write: a scope with a limit, with a larger one,
// and without. It returns the scope at the end.
func (h *Harness) Enforces(scope string) *pb.Scope {
	h.Helper()
	h.Must(h.Create(scope, Bytes(16<<20)))
	h.Refused(scope+"/data", 32<<20)
	h.Must(h.Limit(scope, Bytes(64<<20)))
	h.Must(h.Write(scope+"/data", 32<<20))
	h.Must(h.Limit(scope, nil))
	h.Must(h.Write(scope+"/data", 80<<20))
	s, err := h.Get(scope)
	if err != nil || s.Limit.Bytes != nil || s.GetUsedBytes() < 80<<20 || s.GetUsedBytes() > 81<<20 {
		h.Errorf("scope %v, %v", s, err)
	}
	if err := h.Limit(scope, Bytes(0)); status.Code(err) != codes.InvalidArgument {
		h.Errorf("limit of zero: %v", err)
	}
	return s
}

// Limitless checks that the health of a volume that was opened without quotas contains the reason.
func (h *Harness) Limitless(opened *pb.OpenVolumeResponse, reason string) {
	h.Helper()
	if opened.Enforcement != pb.Enforcement_NONE || slices.Contains(opened.Capabilities, pb.Capability_QUOTA_BYTES) {
		h.Errorf("opened as %v", opened)
	}
	if r := h.State(); r.State != pb.HealthReport_DEGRADED || !strings.Contains(r.Reason, reason) {
		h.Errorf("health %v", r)
	}
	scope := simulator.Random()
	h.Must(h.Create(scope, nil))
	if err := h.Limit(scope, Bytes(1<<20)); status.Code(err) != codes.Unimplemented {
		h.Errorf("limit: %v", err)
	}
	h.Must(h.Delete(scope))
}

// Without runs Limitless for each setting NAME=VALUE with its reason.
func (h *Harness) Without(reasons map[string]string) {
	for setting, reason := range reasons {
		h.Run(setting, func(*testing.T) {
			name, value, _ := strings.Cut(setting, "=")
			h.Simulator.Set(name, value)
			defer h.Simulator.Set(name, "")
			h.Limitless(h.Open(nil), reason)
		})
	}
}

// Lists creates more scopes than a page of the product has, and lists them, with their limits if
// the list contains those. It returns the list.
func (h *Harness) Lists(n int, limits bool) map[string]*pb.Scope {
	h.Helper()
	made := map[string]int64{}
	for i := range n {
		scope := simulator.Random()
		made[scope] = int64(i+1) << 20
		h.Must(h.Create(scope, Bytes(made[scope])))
	}
	all := h.List()
	for scope, bytes := range made {
		if all[scope] == nil || limits && all[scope].GetLimit().GetBytes() != bytes {
			h.Errorf("%s is listed as %v, want a limit of %d", scope, all[scope], bytes)
		}
	}
	if len(all) != len(made) {
		h.Errorf("%d scopes are listed, want %d", len(all), len(made))
	}
	return all
}

// Wrong has options that a plugin must refuse.
type Wrong struct {
	Options map[string]any // replace those of the simulator
	Code    codes.Code
	Text    string // in the error
}

// Refuses checks that opening a volume with wrong options fails.
func (h *Harness) Refuses(rows map[string]Wrong) {
	for name, row := range rows {
		h.Run(name, func(t *testing.T) {
			_, err := h.OpenAs("w", row.Options)
			if status.Code(err) != row.Code || !strings.Contains(err.Error(), row.Text) || strings.Contains(err.Error(), "secret\"") {
				t.Errorf("%v, want %v with %s", err, row.Code, row.Text)
			}
		})
	}
}
