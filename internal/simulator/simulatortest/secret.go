package simulatortest

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/simulator"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Secrets makes the product repeat the request's credentials in every error, and checks that they
// are neither in the plugin's responses and log nor visible in any process.
func (h *Harness) Secrets() {
	for _, code := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict, http.StatusServiceUnavailable} {
		h.Echo(simulator.Fault{Status: code, RetryAfter: time.Hour}, nil)
	}
}

// EchoJob is the same for a failing job, for products that report the reason.
func (h *Harness) EchoJob() {
	h.Simulator.Jobs.FailNext(errors.New("asked by " + strings.Join(h.Simulator.Secrets(), " ")))
	text := textOf(h.Create(simulator.Random(), Bytes(1<<20)))
	h.keeps(h.T, map[string]string{"create": text})
	if !strings.Contains(text, "asked by ***") {
		h.Errorf("the job's message is missing: %s", text)
	}
}

// Echo is Secrets for one error; more replaces or adds options.
func (h *Harness) Echo(f simulator.Fault, more map[string]any) {
	h.Run(f.Path+" "+http.StatusText(f.Status), func(t *testing.T) {
		f.Echo = true
		defer h.Simulator.Inject(f)()
		h.keeps(t, h.everything(more))
	})
}

// everything returns the plugin's responses to all calls.
func (h *Harness) everything(more map[string]any) map[string]string {
	scope, ref := simulator.Random(), &pb.VolumeRef{Volume: "v"}
	_, opened := h.OpenAs("w", more)
	_, got := h.Get(scope)
	_, capacity := h.Capacity(h.Context(), ref)
	_, performance := h.Performance(h.Context(), ref)
	_, plan := h.MountPlan(h.Context(), &pb.ScopeRef{Volume: "v", Scope: scope})
	list, listed := h.ListScopes(h.Context(), ref)
	for listed == nil {
		_, listed = list.Recv()
	}
	if errors.Is(listed, io.EOF) {
		listed = nil
	}
	out := map[string]string{"health": h.State().String()}
	for call, err := range map[string]error{
		"open": opened, "create": h.Create(scope, Bytes(1<<20)), "limit": h.Limit(scope, Bytes(2<<20)), "get": got, "delete": h.Delete(scope),
		"capacity": capacity, "performance": performance, "plan": plan, "list": listed,
	} {
		out[call] = textOf(err)
	}
	return out
}

// textOf returns an error with its details as text.
func textOf(err error) string { return status.Convert(err).Proto().String() }

// keeps checks that none of the product's secrets is in the texts, the plugin's log, or the
// arguments and the environment of any process.
func (h *Harness) keeps(t *testing.T, places map[string]string) {
	t.Helper()
	lines, err := os.ReadFile(h.log)
	h.Must(err)
	places["log"] = string(lines)
	for _, kind := range []string{"cmdline", "environ"} {
		files, err := filepath.Glob("/proc/[0-9]*/" + kind)
		if err != nil || len(files) == 0 {
			t.Fatalf("no processes: %v", err)
		}
		for _, f := range files {
			raw, _ := os.ReadFile(f) // the process may have ended
			places[f] = string(raw)
		}
	}
	for _, secret := range h.Simulator.Secrets() {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(h.Simulator.User + ":" + secret))} {
			for place, text := range places {
				if strings.Contains(text, form) {
					t.Errorf("a secret is in %s: %s", place, text)
				}
			}
		}
	}
}
