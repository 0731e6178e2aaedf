package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/cluster/clusterpb"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// open reports whether the hub keeps a connection open for that long.
func open(t *testing.T, addr string, cfg *tls.Config, long time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	conn := tls.Client(raw, cfg)
	if conn.HandshakeContext(ctx) != nil {
		return false
	}
	// A refusal arrives with the first read; a tunnel begins with silence.
	_ = conn.SetReadDeadline(time.Now().Add(long))
	_, err = conn.Read(make([]byte, 1))
	nerr, ok := err.(net.Error)
	return err == nil || ok && nerr.Timeout()
}

// certificate issues one for a new key.
func certificate(t *testing.T, ca *CA, role, name string, life time.Duration) *identity {
	t.Helper()
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	csr, err := newRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := ca.Issue(csr, role, name, "", life)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &identity{key: key, cert: cert, ca: ca.cert}
}

func TestOnlyOurCertificatesOpenATunnel(t *testing.T) {
	s := newSite(t)
	m := s.manager(t, "127.0.0.1:0")
	ours := certificate(t, s.ca, RoleAgent, "n1", time.Hour)
	theirs := certificate(t, newSite(t).ca, RoleAgent, "n1", time.Hour)
	old := certificate(t, s.ca, RoleAgent, "n1", -time.Minute)
	server, err := s.ca.server("x")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		protos []string
		certs  []tls.Certificate
		want   bool
	}{
		"ours":              {[]string{protoTunnel}, ours.clientTLS("").Certificates, true},
		"no certificate":    {[]string{protoTunnel}, nil, false},
		"another cluster's": {[]string{protoTunnel}, theirs.clientTLS("").Certificates, false},
		"expired":           {[]string{protoTunnel}, old.clientTLS("").Certificates, false},
		"a manager's":       {[]string{protoTunnel}, []tls.Certificate{*server}, false},
		"unknown protocol":  {[]string{"h2"}, ours.clientTLS("").Certificates, false},
		"no protocol":       {nil, ours.clientTLS("").Certificates, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := &tls.Config{
				NextProtos: c.protos, ServerName: serverName, RootCAs: s.ca.pool(),
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					if len(c.certs) == 0 {
						return &tls.Certificate{}, nil
					}
					return &c.certs[0], nil // even if the hub did not request it
				},
			}
			long := timeout // until a refusal must have arrived
			if c.want {
				long = time.Second
			}
			if got := open(t, m.addr, cfg, long); got != c.want {
				t.Errorf("open: %v, want %v", got, c.want)
			}
		})
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	s := newSite(t)
	m := s.manager(t, "127.0.0.1:0")
	if open(t, m.addr, &tls.Config{
		NextProtos: []string{protoJoin}, InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12,
	}, timeout) {
		t.Error("TLS 1.2 was accepted")
	}
}

// TestStrangerReachesOnlyJoin tries the calls that a container or a user could try.
func TestStrangerReachesOnlyJoin(t *testing.T) {
	s := newSite(t)
	m := s.manager(t, "127.0.0.1:0")
	conn, err := dialTLS(t.Context(), m.addr, strangerTLS(s.ca.Fingerprint()))
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientOver("manager", once(conn))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	cluster := clusterpb.NewClusterClient(client)
	_, join := cluster.Join(ctx, &clusterpb.JoinRequest{Token: "guess", Role: RoleAgent, Name: "n1"})
	_, renew := cluster.Renew(ctx, &clusterpb.RenewRequest{})
	_, other := healthpb.NewHealthClient(client).Check(ctx, &healthpb.HealthCheckRequest{})
	for what, c := range map[string]struct {
		err  error
		want codes.Code
	}{
		"join without a request":    {join, codes.InvalidArgument},
		"renew without certificate": {renew, codes.Unauthenticated},
		"another service":           {other, codes.Unimplemented},
	} {
		if status.Code(c.err) != c.want {
			t.Errorf("%s: %v, want %v", what, c.err, c.want)
		}
	}
}

// TestNodeCannotPoseAsManager listens with an agent's certificate.
func TestNodeCannotPoseAsManager(t *testing.T) {
	s := newSite(t)
	agent := certificate(t, s.ca, RoleAgent, serverName, time.Hour)
	chain := tls.Certificate{Certificate: [][]byte{agent.cert.Raw, s.ca.cert.Raw}, PrivateKey: agent.key}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{chain}, NextProtos: []string{protoJoin, protoTunnel},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	victim := certificate(t, s.ca, RoleAgent, "n1", time.Hour)
	for what, cfg := range map[string]*tls.Config{
		"join":   strangerTLS(s.ca.Fingerprint()),
		"tunnel": victim.clientTLS(protoTunnel),
	} {
		if conn, err := dialTLS(t.Context(), l.Addr().String(), cfg); err == nil {
			conn.Close()
			t.Errorf("%s: a node was taken for a manager", what)
		}
	}
}

func TestCertificateIsRenewed(t *testing.T) {
	s := newSite(t)
	m := s.manager(t, "127.0.0.1:0")
	cfg := NodeConfig{Role: RoleStorage, Name: "s1", Dir: t.TempDir(), Managers: []string{m.addr}}
	n, err := NewNode(cfg)
	if err != nil {
		t.Fatal(err)
	}
	// An hour of skew lies before the issue, so a minute is less than a third.
	old := certificate(t, s.ca, RoleStorage, "s1", time.Minute)
	if err := n.become(old); err != nil {
		t.Fatal(err)
	}
	n, _ = serve(t, cfg)
	wait.Until(t, "the certificate is renewed", func() bool { return n.id.Load().cert.SerialNumber.Cmp(old.cert.SerialNumber) != 0 })
	kept, err := loadIdentity(n.path(identityFile))
	if err != nil {
		t.Fatal(err)
	}
	if !kept.is(RoleStorage, "s1") || kept.left(time.Now()) < 0.99 || kept.key.Equal(old.key) {
		t.Errorf("kept certificate for %s lasts until %v", kept.cert.Subject, kept.cert.NotAfter)
	}
	m.next(t).Close()
	m.next(t)
}
