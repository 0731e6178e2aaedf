package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/internal/testvm/ceph"
	"github.com/berthhq/berth/internal/testvm/vmtest"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/storage"
)

// A limit on the number of files is passed to a product that enforces it, a real Ceph, and the
// product reports the usage.
func TestNumbersOfFilesAreLimited(t *testing.T) {
	if testing.Short() {
		t.Skip("a Ceph takes a while")
	}
	real, err := ceph.Make(t.Context())
	if errdefs.IsUnavailable(err) && os.Getenv(vmtest.Required) == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := clustertest.New(t, 0)
	defer real.Close() // when the proxy has stopped
	program := filepath.Join(t.TempDir(), "cephfs")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/berthhq/berth/plugins/volume/cephfs").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	d := clustertest.NewProxyOf(t, c, "s1", storage.VolumeConfig{Name: "main", MountPath: real.Mount, Backend: program})
	defer d.Stop()
	f := filled(t, d, c.Member, managertest.Vars{"name": "data"}, 3)
	admin, vol := c.Manager.As(t, c.A.Admin), c.Client.Volume.Query().OnlyX(c.System(t))
	limit := func(bytes, files any) (limitBytes, limitInodes *int64) {
		t.Helper()
		var got struct {
			SetQuotaScope struct {
				QuotaScope struct{ LimitBytes, LimitInodes *int64 }
			}
		}
		admin.Must(t, `mutation($in: SetQuotaScopeInput!) { setQuotaScope(input: $in) { quotaScope { limitBytes limitInodes } } }`, managertest.Vars{
			"in": managertest.Vars{"volume": vol.ID, "user": c.A.Member.ID, "limitBytes": bytes, "limitInodes": files}}, &got)
		q := got.SetQuotaScope.QuotaScope
		return q.LimitBytes, q.LimitInodes
	}
	path := filepath.Join(real.Mount, f.Path)
	write := func(n int) error {
		return os.WriteFile(filepath.Join(path, fmt.Sprint("more", n)), []byte("x"), 0o644)
	}

	// Zero is a limit, unset is no limit, and both are independent of bytes.
	if bytes, files := limit(nil, 0); bytes != nil || files == nil || *files != 0 {
		t.Errorf("no file at all: %v %v", bytes, files)
	}
	if err := write(0); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("a file where there may be none: %v", err)
	}
	if bytes, files := limit(1<<30, nil); bytes == nil || *bytes != 1<<30 || files != nil {
		t.Errorf("a limit of bytes alone: %v %v", bytes, files)
	}
	managertest.Eventually(t, "a file without a limit on them", func() bool { return write(0) == nil })

	// The usage comes with the next check, which the reconnection of the proxy causes.
	scope := func() *ent.QuotaScope {
		return c.Client.QuotaScope.Query().Where(quotascope.HolderID(c.A.Member.ID)).OnlyX(c.System(t))
	}
	look := func() *ent.QuotaScope {
		before := scope().MeasuredAt
		d.Stop()
		d.StartProxy(t, nil)
		managertest.Eventually(t, "the scope is measured", func() bool {
			at := scope().MeasuredAt
			return at != nil && (before == nil || at.After(*before))
		})
		return scope()
	}
	limit(nil, 1000)
	managertest.Eventually(t, "usage is known", func() bool {
		s := look()
		return s.UsedInodes != nil && *s.UsedInodes >= 5 && s.Enforcement == "delayed"
	})
	used := *scope().UsedInodes
	limit(nil, used+20)
	wrote := 0
	managertest.Eventually(t, "files are refused", func() bool {
		err := write(1 + wrote)
		wrote++
		return errors.Is(err, unix.EDQUOT)
	})
	t.Logf("%d of 20 more files were created", wrote-1)
	if wrote < 10 {
		t.Errorf("refused after %d files", wrote)
	}
	// Another folder does not fit within the limit either.
	managertest.Eventually(t, "the manager has the usage", func() bool {
		look()
		_, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": fmt.Sprint("more", wrote)})
		wrote++
		return errs.Code() == "RESOURCE_EXHAUSTED"
	})
}
