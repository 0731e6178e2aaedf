package cluster

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// member returns a node with a certificate of the CA.
func member(t *testing.T, ca *CA, role, name string) *Node {
	t.Helper()
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	csr, err := newRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNode(NodeConfig{Role: role, Name: name, Dir: t.TempDir(), Managers: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	der, err := ca.Issue(csr, role, name, "", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	id, err := n.accept(key, der, ca.cert)
	if err != nil {
		t.Fatal(err)
	}
	n.id.Store(id)
	return n
}

// TestNodesOfARoleOnly is a row of docs/security.md.
func TestNodesOfARoleOnly(t *testing.T) {
	t.Parallel()
	ca, err := newCA()
	if err != nil {
		t.Fatal(err)
	}
	other, err := newCA()
	if err != nil {
		t.Fatal(err)
	}
	server := member(t, ca, RoleAgent, "node-1")
	peer := member(t, ca, RoleAgent, "node-2").DialNode("node-1")
	without := peer.Clone()
	without.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
	unnamed := peer.Clone()
	unnamed.NextProtos = nil
	for name, tc := range map[string]struct {
		config *tls.Config
		works  bool
	}{
		"an agent":                         {peer, true},
		"a storage proxy":                  {trusting(member(t, ca, RoleStorage, "proxy-1")), false},
		"an agent of another cluster":      {trusting(member(t, other, RoleAgent, "node-2")), false},
		"no certificate":                   {without, false},
		"no protocol":                      {unnamed, false},
		"an agent that expects another":    {member(t, ca, RoleAgent, "node-2").DialNode("node-3"), false},
		"an agent that trusts another CA":  {member(t, other, RoleAgent, "node-2").DialNode("node-1"), false},
		"a storage proxy that expects one": {member(t, ca, RoleStorage, "node-2").DialNode("node-1"), false},
	} {
		caller, err := meet(t, server.ServeNodes(), tc.config)
		if (err == nil) != tc.works {
			t.Errorf("%s: %v", name, err)
		}
		if tc.works && caller != "node-2" {
			t.Errorf("%s: the caller is %q", name, caller)
		}
	}
}

// trusting returns a client of a node that accepts any server, so that only the server decides.
func trusting(n *Node) *tls.Config {
	c := n.DialNode("node-1")
	c.VerifyConnection = nil
	return c
}

// meet connects a client to a server, sends a byte both ways, and returns the name of the client.
func meet(t *testing.T, server, client *tls.Config) (string, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	name, failed := "", make(chan error, 1)
	go func() {
		raw, err := l.Accept()
		if err != nil {
			failed <- err
			return
		}
		conn := tls.Server(raw, server)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(timeout))
		if err = conn.Handshake(); err == nil {
			name = OtherNode(conn.ConnectionState())
			_, err = io.CopyN(conn, conn, 1)
		}
		failed <- err
	}()
	conn, err := tls.Dial("tcp", l.Addr().String(), client)
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(timeout))
		if _, err = conn.Write([]byte("x")); err == nil {
			_, err = io.ReadFull(conn, make([]byte, 1))
		}
	} else {
		l.Close()
	}
	return name, errors.Join(err, <-failed)
}
