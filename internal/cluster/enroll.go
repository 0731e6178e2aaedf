package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/cluster/clusterpb"
)

const (
	callTimeout = 10 * time.Second
	renewEvery  = time.Hour
	renewLeft   = 1.0 / 3
)

// enroll makes sure that the node has a certificate. It retries until a manager answers.
func (n *Node) enroll(ctx context.Context) error {
	if id := n.id.Load(); id != nil && time.Now().Before(id.cert.NotAfter) {
		return nil
	}
	if n.cfg.JoinToken == "" || n.cfg.CAFingerprint == "" {
		return fmt.Errorf("node %s has no valid certificate, and lacks a join token and a fingerprint to get one: %w",
			n.cfg.Name, errdefs.ErrFailedPrecondition)
	}
	retry := newBackoff()
	for {
		err := n.joinAny(ctx)
		if err == nil || ctx.Err() != nil || final(err) {
			return err
		}
		n.log.Warn("no manager to join", "error", err)
		if clock.Pause(ctx, retry.NextBackOff()) != nil {
			return ctx.Err()
		}
	}
}

// joinAny calls one manager after the other until one gives a final answer.
func (n *Node) joinAny(ctx context.Context) error {
	addrs := n.addrs()
	if len(addrs) == 0 {
		return fmt.Errorf("join: no address of a manager: %w", errdefs.ErrInvalidArgument)
	}
	var errs []error
	for _, addr := range addrs {
		err := n.join(ctx, addr)
		if err == nil || final(err) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// final reports whether an answer would not change with a retry.
func final(err error) bool {
	return errdefs.IsPermissionDenied(err) || errdefs.IsAlreadyExists(err) || errdefs.IsInvalidArgument(err) ||
		errdefs.IsUnauthorized(err)
}

// join exchanges the one-time token for a certificate, and stores it.
func (n *Node) join(ctx context.Context, addr string) error {
	var res *clusterpb.JoinResponse
	print := plainPrint(n.cfg.CAFingerprint)
	next, err := n.certified(ctx, addr, strangerTLS(print), print, func(ctx context.Context, c clusterpb.ClusterClient, csr []byte) ([]byte, error) {
		var err error
		res, err = c.Join(ctx, &clusterpb.JoinRequest{
			Token: n.cfg.JoinToken, Role: n.cfg.Role, Name: n.cfg.Name, Csr: csr,
		})
		return res.GetCertificate(), err
	})
	if err != nil {
		return fmt.Errorf("join through %s: %w", addr, err)
	}
	if err := n.become(next); err != nil {
		return err
	}
	n.log.Info("joined the cluster", "manager", addr, "role", n.cfg.Role, "name", n.cfg.Name)
	n.Learn(res.Managers...)
	return nil
}

// renew exchanges the certificate for a new one with a new key.
func (n *Node) renew(ctx context.Context, addr string) error {
	old := n.id.Load()
	next, err := n.certified(ctx, addr, old.clientTLS(protoJoin), fingerprint(old.ca), func(ctx context.Context, c clusterpb.ClusterClient, csr []byte) ([]byte, error) {
		res, err := c.Renew(ctx, &clusterpb.RenewRequest{Csr: csr})
		return res.GetCertificate(), err
	})
	if err != nil {
		return fmt.Errorf("renew certificate through %s: %w", addr, err)
	}
	return n.become(next)
}

// certified creates a key, has it signed by a manager through call, and checks the
// certificate.
func (n *Node) certified(ctx context.Context, addr string, cfg *tls.Config, print string,
	call func(context.Context, clusterpb.ClusterClient, []byte) ([]byte, error)) (*identity, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	csr, err := newRequest(key)
	if err != nil {
		return nil, err
	}
	conn, err := dialTLS(ctx, addr, cfg)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	client, err := clientOver(addr, once(conn))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	der, err := call(ctx, clusterpb.NewClusterClient(client), csr)
	if err != nil {
		return nil, errgrpc.ToNative(err)
	}
	ca, err := authority(conn.ConnectionState(), print)
	if err != nil {
		return nil, err
	}
	return n.accept(key, der, ca)
}

// accept checks that der is a certificate for key and for this node.
func (n *Node) accept(key *ecdsa.PrivateKey, der []byte, ca *x509.Certificate) (*identity, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate from the manager: %w: %w", errdefs.ErrDataLoss, err)
	}
	id := &identity{key: key, cert: cert, ca: ca}
	if err := id.check(); err != nil {
		return nil, err
	}
	if !id.is(n.cfg.Role, n.cfg.Name) {
		return nil, fmt.Errorf("certificate from the manager is for %q: %w", cert.Subject, errdefs.ErrDataLoss)
	}
	return id, nil
}

// become replaces the node's identity, first on disk.
func (n *Node) become(id *identity) error {
	if err := id.save(n.path(identityFile)); err != nil {
		return fmt.Errorf("keep certificate: %w", err)
	}
	n.id.Store(id)
	return nil
}

// keepFresh renews the certificate in time.
func (n *Node) keepFresh(ctx context.Context) {
	t := time.NewTicker(renewEvery)
	defer t.Stop()
	for {
		if n.id.Load().left(time.Now()) < renewLeft {
			n.renewAny(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (n *Node) renewAny(ctx context.Context) {
	for _, addr := range n.addrs() {
		err := n.renew(ctx, addr)
		if err == nil {
			n.log.Info("certificate renewed", "until", n.id.Load().cert.NotAfter)
			return
		}
		n.log.Warn("certificate not renewed", "error", err)
	}
}

// once returns a dialer for an existing connection, which works once.
func once(conn net.Conn) func(context.Context) (net.Conn, error) {
	c := make(chan net.Conn, 1)
	c <- conn
	return func(context.Context) (net.Conn, error) {
		select {
		case conn := <-c:
			return conn, nil
		default:
			return nil, net.ErrClosed
		}
	}
}
