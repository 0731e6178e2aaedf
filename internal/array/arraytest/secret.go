package arraytest

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

	"github.com/berthhq/berth/internal/array"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Secrets lets the array repeat in every refusal what it was sent to prove who asks, and
// looks for that in all that the plugin says and in what anyone sees of any process.
func (b *Bed) Secrets() {
	for _, code := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict, http.StatusServiceUnavailable} {
		b.Echo(array.Fault{Status: code, RetryAfter: time.Hour}, nil)
	}
}

// EchoJob is the same for a job that fails, at products that tell why.
func (b *Bed) EchoJob() {
	b.Array.Jobs.FailNext(errors.New("asked by " + strings.Join(b.Array.Secrets(), " ")))
	text := said(b.Create(array.Random(), Bytes(1<<20)))
	b.keeps(b.T, map[string]string{"create": text})
	if !strings.Contains(text, "asked by ***") {
		b.Errorf("what the job says is not told: %s", text)
	}
}

// Echo is Secrets for one refusal; more are options over the array's.
func (b *Bed) Echo(f array.Fault, more map[string]any) {
	b.Run(f.Path+" "+http.StatusText(f.Status), func(t *testing.T) {
		f.Echo = true
		defer b.Array.Inject(f)()
		b.keeps(t, b.everything(more))
	})
}

// everything is what the plugin answers to all calls.
func (b *Bed) everything(more map[string]any) map[string]string {
	scope, ref := array.Random(), &pb.VolumeRef{Volume: "v"}
	_, opened := b.OpenAs("w", more)
	_, got := b.Get(scope)
	_, capacity := b.Capacity(b.Context(), ref)
	_, performance := b.Performance(b.Context(), ref)
	_, plan := b.MountPlan(b.Context(), &pb.ScopeRef{Volume: "v", Scope: scope})
	list, listed := b.ListScopes(b.Context(), ref)
	for listed == nil {
		_, listed = list.Recv()
	}
	if errors.Is(listed, io.EOF) {
		listed = nil
	}
	out := map[string]string{"health": b.State().String()}
	for call, err := range map[string]error{
		"open": opened, "create": b.Create(scope, Bytes(1<<20)), "limit": b.Limit(scope, Bytes(2<<20)), "get": got, "delete": b.Delete(scope),
		"capacity": capacity, "performance": performance, "plan": plan, "list": listed,
	} {
		out[call] = said(err)
	}
	return out
}

// said is an error with its details.
func said(err error) string { return status.Convert(err).Proto().String() }

// keeps checks that none of the array's secrets is in what was said, in the plugin's
// log, or in the arguments and the environment of any process.
func (b *Bed) keeps(t *testing.T, places map[string]string) {
	t.Helper()
	lines, err := os.ReadFile(b.log)
	b.Must(err)
	places["log"] = string(lines)
	for _, kind := range []string{"cmdline", "environ"} {
		files, err := filepath.Glob("/proc/[0-9]*/" + kind)
		if err != nil || len(files) == 0 {
			t.Fatalf("no processes: %v", err)
		}
		for _, f := range files {
			raw, _ := os.ReadFile(f) // it may have ended
			places[f] = string(raw)
		}
	}
	for _, secret := range b.Array.Secrets() {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(b.Array.User + ":" + secret))} {
			for place, text := range places {
				if strings.Contains(text, form) {
					t.Errorf("a secret is in %s: %s", place, text)
				}
			}
		}
	}
}
