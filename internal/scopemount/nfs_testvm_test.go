package scopemount_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/scopemount"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/testvm"
	"github.com/berthhq/berth/internal/testvm/vmtest"
)

func TestMain(m *testing.M) { vmtest.Main(m) }

// Scopes on an NFS server are mounted, distinguished, found after a restart, and unmounted when
// they are unused or no longer exist on the server.
func TestVMOfNFSScopes(t *testing.T) {
	m := vmtest.Machine{
		Machine: testvm.Machine{Disks: []testvm.Disk{testvm.Ext4("server")}, Modules: testvm.NFSModules},
		Kinds:   []testvm.Kind{testvm.UML}, // this machine keeps its exports
	}
	vmtest.Each(t, m, func(t *testing.T, p vmtest.Environment) {
		server := p.Mount("server")
		for _, name := range []string{first, second} {
			if err := os.Mkdir(filepath.Join(server, "berth-"+name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := testvm.ServeNFS(server); err != nil {
			t.Fatal(err)
		}
		// Without mount.nfs(8), the test gives the kernel the options that it would determine.
		rule, err := scopemount.ParseRule("nfs4,127.0.0.1:/berth-{scope},vers=4.2,proto=tcp,sec=sys,addr=127.0.0.1,clientaddr=127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		mounts := scopemount.New(scopemount.Config{Dir: dir, Rule: rule, Plan: func(_ context.Context, scope string) (scopemount.Spec, error) {
			return scopemount.Spec{Type: "nfs4", Source: "127.0.0.1:/berth-" + scope, Options: []string{"vers=4.2"}}, nil
		}})
		open := func(m *scopemount.Mounts, name string) *os.File {
			t.Helper()
			f, err := m.Open(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		f := open(mounts, first)
		write(t, f, "kept")
		if _, err := os.Stat(filepath.Join(server, "berth-"+first, "kept")); err != nil {
			t.Errorf("on the server: %v", err)
		}
		at := mounted(t, dir)
		if len(at) != 1 || at[0].FSType != "nfs4" || at[0].Source != "127.0.0.1:/berth-"+first || !strings.Contains(at[0].Options, "nosuid,nodev") {
			t.Fatalf("mounted: %+v", at)
		}
		g := open(mounts, second)
		if got := names(t, g); len(got) != 0 {
			t.Errorf("the other scope has %v", got)
		}
		g.Close()

		again := scopemount.New(scopemount.Config{Dir: dir, Rule: rule, Idle: time.Millisecond})
		g = open(again, first)
		if got := names(t, g); !slices.Equal(got, []string{"kept"}) || len(mounted(t, dir)) != 2 {
			t.Errorf("found again: %v, %d mounts", got, len(mounted(t, dir)))
		}
		g.Close()
		if err := again.Unmount(first); !errors.Is(err, unix.EBUSY) {
			t.Errorf("unmount of an open scope: %v", err)
		}
		f.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { again.Run(ctx); close(done) }()
		wait.Until(t, "unused mounts are unmounted", func() bool { return len(mounted(t, dir)) == 0 })
		cancel()
		<-done

		// The scope of another, at its place.
		point := filepath.Join(dir, first)
		if err := os.MkdirAll(point, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mount", "-t", "nfs4", "-o", strings.Join(rule.Options, ","), "127.0.0.1:/berth-"+second, point).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if _, err := mounts.Open(t.Context(), first); !errdefs.IsFailedPrecondition(err) {
			t.Errorf("the scope of another: %v", err)
		}
		if err := unix.Unmount(point, 0); err != nil {
			t.Fatal(err)
		}

		// The server removes a mounted scope: the scope is unmounted, and the error has the reason.
		fresh := scopemount.New(scopemount.Config{Dir: dir, Rule: rule})
		open(fresh, second).Close()
		if err := os.RemoveAll(filepath.Join(server, "berth-"+second)); err != nil {
			t.Fatal(err)
		}
		var gone error
		wait.Until(t, "a removed scope is unavailable", func() bool {
			var f *os.File
			if f, gone = fresh.Open(t.Context(), second); gone == nil { // the client has not contacted the server yet
				_, _ = f.Readdirnames(-1)
				f.Close()
			}
			return errdefs.IsUnavailable(gone)
		})
		if at := mounted(t, dir); len(at) != 0 {
			t.Errorf("mounted still: %+v", at[0])
		}
	})
}
