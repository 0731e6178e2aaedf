package manager

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Etcd is the address of etcd and the credentials for it.
type Etcd struct {
	Endpoints []string
	// Prefix begins every key, so that several clusters can share an etcd. Two clusters with
	// the same prefix would elect one common leader.
	Prefix         string
	User, Password string
	// CA, Cert and Key are PEM files: the CAs to trust instead of the system's, and the client
	// certificate with its key.
	CA, Cert, Key string
}

// open connects to etcd. Errors are counted in the registry, which can be nil.
func (e Etcd) open(to prometheus.Registerer) (*clientv3.Client, error) {
	if (e.User == "") != (e.Password == "") {
		return nil, errors.New("a user needs a password, and a password a user")
	}
	secure, err := e.tls()
	if err != nil {
		return nil, err
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: e.Endpoints, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
		Username: e.User, Password: e.Password, TLS: secure,
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(countEtcdErrors(to))},
	})
	if err != nil {
		return nil, err
	}
	if e.Prefix != "" {
		prefix := "/" + strings.Trim(e.Prefix, "/") + "/"
		c.KV = namespace.NewKV(c.KV, prefix)
		c.Watcher = namespace.NewWatcher(c.Watcher, prefix)
		c.Lease = namespace.NewLease(c.Lease, prefix)
	}
	return c, nil
}

func countEtcdErrors(to prometheus.Registerer) grpc.UnaryClientInterceptor {
	failed := promauto.With(to).NewCounter(prometheus.CounterOpts{
		Name: "berth_etcd_errors_total", Help: "Calls of etcd that failed; each try of a call counts.",
	})
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			failed.Inc()
		}
		return err
	}
}

// tls returns the TLS configuration, or nil without TLS.
func (e Etcd) tls() (*tls.Config, error) {
	if (e.Cert == "") != (e.Key == "") {
		return nil, errors.New("a client certificate needs its key, and a key its certificate")
	}
	plain := true
	for _, endpoint := range e.Endpoints {
		plain = plain && !strings.HasPrefix(endpoint, "https://")
	}
	if plain {
		if e.CA != "" || e.Cert != "" {
			return nil, errors.New("certificates are given, but no endpoint begins with https://")
		}
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.CA != "" {
		pem, err := os.ReadFile(e.CA)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", e.CA)
		}
	}
	if e.Cert != "" {
		pair, err := tls.LoadX509KeyPair(e.Cert, e.Key)
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
