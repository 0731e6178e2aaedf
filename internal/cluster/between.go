package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/containerd/errdefs"
)

// protoBetween is the application protocol of connections between nodes of a role, as net/http expects it.
const protoBetween = "http/1.1"

// ServeNodes returns the configuration of a listener for other nodes of the same role. Callers without a
// valid certificate of the cluster's authority for that role are refused during the handshake. A node that was
// expelled has such a certificate until it expires: what a caller can do needs a permission of a manager.
func (n *Node) ServeNodes() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{protoBetween},
		ClientAuth:             tls.RequireAnyClientCert,
		SessionTicketsDisabled: true, // a resumed session would outlive its certificate
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return n.certificate()
		},
		VerifyConnection: func(s tls.ConnectionState) error {
			_, err := n.other(s)
			return err
		},
	}
}

// DialNode returns the configuration of a connection to the node with a name, of the same role.
func (n *Node) DialNode(name string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{protoBetween},
		// Certificates of nodes have no DNS name: VerifyConnection checks authority, role and name.
		InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return n.certificate()
		},
		VerifyConnection: func(s tls.ConnectionState) error {
			other, err := n.other(s)
			if err == nil && other != name {
				err = fmt.Errorf("%s %s answers instead of %s: %w", n.cfg.Role, other, name, errdefs.ErrUnauthenticated)
			}
			return err
		},
	}
}

// OtherNode returns the name of the node at the other end of a connection that ServeNodes or DialNode has
// verified.
func OtherNode(s tls.ConnectionState) string { return s.PeerCertificates[0].Subject.CommonName }

func (n *Node) certificate() (*tls.Certificate, error) {
	id := n.id.Load()
	if id == nil {
		return nil, fmt.Errorf("node %s has no certificate yet: %w", n.cfg.Name, errdefs.ErrUnavailable)
	}
	return &tls.Certificate{Certificate: [][]byte{id.cert.Raw}, PrivateKey: id.key, Leaf: id.cert}, nil
}

// other verifies the certificate of the other end and returns its name.
func (n *Node) other(s tls.ConnectionState) (name string, err error) {
	id := n.id.Load()
	if id == nil || len(s.PeerCertificates) == 0 || s.NegotiatedProtocol != protoBetween {
		return "", fmt.Errorf("no certificate or protocol: %w", errdefs.ErrUnauthenticated)
	}
	roots := x509.NewCertPool()
	roots.AddCert(id.ca)
	cert := s.PeerCertificates[0]
	// Nodes have certificates of clients, also where they serve.
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return "", fmt.Errorf("certificate of another node: %w: %w", errdefs.ErrUnauthenticated, err)
	}
	role, name, err := identityOf(cert)
	if err != nil {
		return "", err
	}
	if role != n.cfg.Role {
		return "", fmt.Errorf("certificate of %s %s, not of another %s: %w", role, name, n.cfg.Role, errdefs.ErrUnauthenticated)
	}
	return name, nil
}
