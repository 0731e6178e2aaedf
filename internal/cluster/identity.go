package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/containerd/errdefs"
)

// identity is a node's key, certificate and CA. It is immutable; a renewal creates a new one.
type identity struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	ca   *x509.Certificate
}

func loadIdentity(path string) (*identity, error) {
	key, certs, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	if len(certs) != 2 {
		return nil, fmt.Errorf("%s has %d certificates, not 2: %w", path, len(certs), errdefs.ErrDataLoss)
	}
	id := &identity{key: key, cert: certs[0], ca: certs[1]}
	return id, id.check()
}

func (id *identity) save(path string) error {
	return replaceFile(path, encodePEM(id.key, id.cert, id.ca))
}

// check returns an error if the three parts do not match.
func (id *identity) check() error {
	if !id.key.PublicKey.Equal(id.cert.PublicKey) {
		return fmt.Errorf("certificate is for another key: %w", errdefs.ErrDataLoss)
	}
	if err := id.cert.CheckSignatureFrom(id.ca); err != nil {
		return fmt.Errorf("certificate was issued by another authority: %w: %w", errdefs.ErrDataLoss, err)
	}
	return nil
}

func (id *identity) is(role, name string) bool {
	r, n, err := identityOf(id.cert)
	return err == nil && r == role && n == name
}

// left returns the remaining fraction of the certificate's validity.
func (id *identity) left(now time.Time) float64 {
	return float64(id.cert.NotAfter.Sub(now)) / float64(id.cert.NotAfter.Sub(id.cert.NotBefore))
}

// clientTLS returns the configuration of a connection to a manager.
func (id *identity) clientTLS(proto string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(id.ca)
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{proto},
		ServerName:   serverName,
		RootCAs:      roots,
		Certificates: []tls.Certificate{{Certificate: [][]byte{id.cert.Raw}, PrivateKey: id.key, Leaf: id.cert}},
	}
}

// strangerTLS returns the configuration of a node that has only the fingerprint of the CA.
func strangerTLS(print string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{protoJoin},
		ServerName: serverName,
		// The CA arrives with the handshake and is verified by its hash.
		InsecureSkipVerify: true,
		VerifyConnection:   func(s tls.ConnectionState) error { return verifyByPrint(s, print) },
	}
}

func verifyByPrint(s tls.ConnectionState, print string) error {
	ca, err := authority(s, print)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err = s.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: roots, DNSName: serverName, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("manager's certificate: %w: %w", errdefs.ErrUnauthenticated, err)
	}
	return nil
}

// authority returns the certificate with the fingerprint from those that the manager sent.
func authority(s tls.ConnectionState, print string) (*x509.Certificate, error) {
	for _, c := range s.PeerCertificates {
		if fingerprint(c) == print {
			return c, nil
		}
	}
	return nil, fmt.Errorf("manager does not belong to the cluster with fingerprint %s: %w", print, errdefs.ErrUnauthenticated)
}

// plainPrint normalizes a fingerprint: AB:CD… is accepted.
func plainPrint(s string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), ":", ""))
}

// dialTLS connects to a manager.
func dialTLS(ctx context.Context, addr string, cfg *tls.Config) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errdefs.ErrUnavailable, err)
	}
	conn := tls.Client(&gathered{Conn: raw}, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("handshake with %s: %w", addr, err)
	}
	if conn.ConnectionState().NegotiatedProtocol == "" {
		_ = conn.Close()
		return nil, fmt.Errorf("%s does not speak %s: %w", addr, cfg.NextProtos[0], errdefs.ErrUnavailable)
	}
	return conn, nil
}
