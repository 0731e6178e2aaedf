package cluster

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/internal/cluster/clusterpb"
)

const (
	// protoMetrics is the application protocol of managers that read the metrics of another manager or of a gateway.
	protoMetrics = "berth-metrics"
	// maxGathers limits the calls of Gather that a process answers at a time.
	maxGathers = 4
	// readerLife is the validity of the certificate for one call.
	readerLife = 10 * time.Minute
)

// ServeMetrics adds a service to the gRPC server of a role, with which managers read its metrics. It adds nothing without
// a gatherer.
func ServeMetrics(s grpc.ServiceRegistrar, from prometheus.Gatherer) {
	if from != nil {
		clusterpb.RegisterMetricsServer(s, &metricsService{from: from, running: make(chan struct{}, maxGathers)})
	}
}

type metricsService struct {
	clusterpb.UnimplementedMetricsServer
	from    prometheus.Gatherer
	running chan struct{}
}

// Gather implements clusterpb.MetricsServer.
func (s *metricsService) Gather(context.Context, *clusterpb.GatherRequest) (*clusterpb.GatherResponse, error) {
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	default:
		return nil, status.Errorf(codes.ResourceExhausted, "%d clients already read metrics here", maxGathers)
	}
	families, err := s.from.Gather()
	if err != nil && len(families) == 0 {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	var text bytes.Buffer
	packed := gzip.NewWriter(&text)
	to := expfmt.NewEncoder(packed, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := to.Encode(f); err != nil {
			return nil, fmt.Errorf("write metric %s: %w", f.GetName(), err)
		}
	}
	if err := packed.Close(); err != nil {
		return nil, err
	}
	return &clusterpb.GatherResponse{Text: text.Bytes()}, nil
}

// Metrics returns the metrics of the node in the text format of Prometheus, compressed with gzip.
func (p *Peer) Metrics(ctx context.Context) ([]byte, error) { return gather(ctx, p.Conn) }

func gather(ctx context.Context, from grpc.ClientConnInterface) ([]byte, error) {
	got, err := clusterpb.NewMetricsClient(from).Gather(ctx, &clusterpb.GatherRequest{})
	if err != nil {
		return nil, errgrpc.ToNative(err)
	}
	return got.Text, nil
}

// Metrics returns the metrics of the manager or gateway whose hub listens at an address, as Peer.Metrics does.
func (ca *CA) Metrics(ctx context.Context, address string) ([]byte, error) {
	cfg, err := ca.readerTLS()
	if err != nil {
		return nil, err
	}
	conn, err := dialTLS(ctx, address, cfg)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	client, err := clientOver(address, once(conn))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return gather(ctx, client)
}

// readerTLS returns the configuration of a manager that connects to another one, or to a gateway.
func (ca *CA) readerTLS() (*tls.Config, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	cert, err := ca.issue(key.Public(), pkix.Name{CommonName: serverName, OrganizationalUnit: []string{roleManager}}, readerLife, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate for reading metrics: %w", err)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protoMetrics}, ServerName: serverName, RootCAs: ca.pool(),
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}},
	}, nil
}

// byManager returns an error unless the other end has shown a certificate of a manager. Nodes have certificates of the same
// authority, with other roles, and cannot read the metrics of a manager.
func byManager(s tls.ConnectionState) error {
	if len(s.PeerCertificates) > 0 {
		if of := s.PeerCertificates[0].Subject.OrganizationalUnit; len(of) == 1 && of[0] == roleManager {
			return nil
		}
	}
	return fmt.Errorf("metrics are only for managers: %w", errdefs.ErrUnauthenticated)
}
