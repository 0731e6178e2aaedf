package integration

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent/jointoken"
	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
	"github.com/berthhq/berth/storage"
)

const joinToken = `mutation { createJoinToken(input: {role: STORAGE}) { token } }`

// A proxy joins with a join token of a superadmin, which is valid once and for an hour. It
// reconnects without a token. After its removal, it is disconnected and refused until it joins
// again.
func TestAProxyJoinsAndIsRemoved(t *testing.T) {
	c := clustertest.New(t, 0)
	root := c.Manager.As(t, c.Superadmin)
	token := func() string {
		var got struct{ CreateJoinToken struct{ Token string } }
		root.Must(t, joinToken, nil, &got)
		return got.CreateJoinToken.Token
	}
	d := clustertest.NewProxyOf(t, c, "far", storage.VolumeConfig{Name: "main", MountPath: t.TempDir()})
	n := 0
	reached := func() bool {
		n++
		errs := c.Member.Ask(t, clustertest.CreateFolderMutation, managertest.Vars{"in": managertest.Vars{"name": fmt.Sprint("data", n)}}, nil)
		if len(errs) > 0 && errs.Code() != "UNAVAILABLE" {
			t.Fatal(errs)
		}
		return len(errs) == 0
	}
	served := func(t *testing.T, want bool) {
		t.Helper()
		managertest.Eventually(t, "the volume is served as it should be", func() bool { return reached() == want })
	}
	served(t, true)
	run := func(token string) error {
		cfg := d.Config
		cfg.Name, cfg.Dir, cfg.JoinToken, cfg.Volumes = "second", t.TempDir(), token, nil
		p, err := storage.New(cfg)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), managertest.Timeout)
		defer cancel()
		return p.Run(ctx)
	}
	if err := run(d.Config.JoinToken); !errdefs.IsPermissionDenied(err) {
		t.Errorf("a token for the second time: %v", err)
	}
	hash := sha256.Sum256([]byte("late"))
	c.Client.JoinToken.Create().SetHash(hash[:]).SetRole(jointoken.RoleStorage).SetExpiresAt(time.Now().Add(-time.Second)).ExecX(c.System(t))
	if err := run("late"); !errdefs.IsPermissionDenied(err) {
		t.Errorf("a token after its hour: %v", err)
	}

	d.Stop()
	said := clustertest.NewJournal()
	d.Config.JoinToken, d.Config.Logger = "", said.Logger
	d.StartProxy(t, nil)
	served(t, true)

	const remove = `mutation($n: String!) { deleteStorageProxy(input: {name: $n}) { name } }`
	if errs := c.Member.Ask(t, remove, managertest.Vars{"n": "far"}, nil); errs.Code() != "PERMISSION_DENIED" {
		t.Errorf("a member removes a proxy: %s", errs)
	}
	if errs := root.Ask(t, remove, managertest.Vars{"n": "none"}, nil); errs.Code() != "NOT_FOUND" {
		t.Errorf("one that never was: %s", errs)
	}
	for range 2 { // the second time changes nothing
		root.Must(t, remove, managertest.Vars{"n": "far"}, nil)
	}
	served(t, false)
	// It cannot come back by itself or after a restart: its attempts are refused.
	managertest.Eventually(t, "the removed proxy is refused", func() bool { return len(said.Lines("refused: ask for a new join token")) > 0 })
	d.Stop()
	again := clustertest.NewJournal()
	d.Config.Logger = again.Logger
	d.RunProxy(t, nil)
	managertest.Eventually(t, "the removed proxy is refused after it was started again", func() bool {
		if reached() {
			t.Fatal("a proxy that was removed serves its volume")
		}
		return len(again.Lines("refused: ask for a new join token")) > 0
	})
	d.Stop()

	// After a while, its volume is shown as unavailable.
	ago := time.Now().Add(-time.Minute)
	managertest.Eventually(t, "its volume is unavailable", func() bool {
		// Repeated, because its last report may still be written.
		c.Client.StorageProxy.Update().Where(storageproxy.Name("far"), storageproxy.LastSeenAtGT(ago)).SetLastSeenAt(ago).ExecX(c.System(t))
		v := c.Client.Volume.Query().Where(volume.Name("main")).OnlyX(c.System(t))
		return v.Health == "unavailable" && strings.Contains(v.HealthMessage, "its storage proxy far has not sent a heartbeat since")
	})

	d.Config.JoinToken, d.Config.Dir = token(), t.TempDir()
	d.StartProxy(t, nil)
	served(t, true)
}
