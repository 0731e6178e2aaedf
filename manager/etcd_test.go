package manager

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/berthhq/berth/internal/testenv"
)

// Two clusters share an etcd: neither sees a key of the other.
func TestEtcdPrefix(t *testing.T) {
	t.Parallel()
	endpoint := testenv.Etcd(t)
	open := func(prefix string) *clientv3.Client {
		c, err := Etcd{Endpoints: []string{endpoint}, Prefix: prefix}.open(nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	one, two, all := open("lab/one"), open("/lab/two/"), open("")
	lease, err := one.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Put(t.Context(), "/berth/leader", "m1", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		client *clientv3.Client
		key    string
		found  int
	}{
		"own":   {one, "/berth/leader", 1},
		"other": {two, "/berth/leader", 0},
		"whole": {all, "/lab/one//berth/leader", 1},
	} {
		got, err := c.client.Get(t.Context(), c.key)
		if err != nil || len(got.Kvs) != c.found {
			t.Errorf("%s: %d keys (%v), want %d", name, len(got.Kvs), err, c.found)
		}
	}
}

// An etcd with TLS and users accepts only managers that trust its certificate and have the
// password.
func TestEtcdWithTLSAndUsers(t *testing.T) {
	t.Parallel()
	endpoint, ca := secureEtcd(t)
	root, err := Etcd{Endpoints: []string{endpoint}, CA: ca}.open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, err := range []error{
		func() error { _, err := root.UserAdd(t.Context(), "root", "right"); return err }(),
		func() error { _, err := root.UserGrantRole(t.Context(), "root", "root"); return err }(),
		func() error { _, err := root.AuthEnable(t.Context()); return err }(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		etcd  Etcd
		fails string
	}{
		"right":             {Etcd{CA: ca, User: "root", Password: "right"}, ""},
		"wrong password":    {Etcd{CA: ca, User: "root", Password: "wrong"}, "authentication failed"},
		"no password":       {Etcd{CA: ca, User: "root"}, "a user needs a password"},
		"no user":           {Etcd{CA: ca}, "user name is empty"},
		"another CA":        {Etcd{User: "root", Password: "right"}, "context deadline exceeded"}, // etcd's client retries
		"no certificate":    {Etcd{CA: "/dev/null"}, "has no certificate"},
		"key alone":         {Etcd{Key: ca}, "a client certificate needs its key"},
		"TLS without https": {Etcd{CA: ca, Endpoints: []string{"127.0.0.1:1"}}, "no endpoint begins with https://"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.etcd.Endpoints == nil {
				c.etcd.Endpoints = []string{endpoint}
			}
			client, err := c.etcd.open(nil)
			if err == nil {
				defer client.Close()
				_, err = client.Get(t.Context(), "x")
			}
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("error %v, want one with %q", err, c.fails)
			}
		})
	}
}

// secureEtcd starts an etcd with a certificate of its own and returns that, too.
func secureEtcd(t *testing.T) (endpoint, ca string) {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.UnsafeNoFsync = t.TempDir(), "error", true
	cfg.ClientAutoTLS, cfg.SelfSignedCertValidity = true, 1
	local := url.URL{Scheme: "https", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{local}, []url.URL{local}
	cfg.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return "https://" + e.Clients[0].Addr().String(), filepath.Join(cfg.Dir, "fixtures", "client", "cert.pem")
}
