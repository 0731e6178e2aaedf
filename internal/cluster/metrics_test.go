package cluster

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
)

func unpacked(t *testing.T, packed []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func things(value float64) *prometheus.Registry {
	r := prometheus.NewRegistry()
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "things"})
	g.Set(value)
	r.MustRegister(g)
	return r
}

// TestMetricsAreForManagers reads the metrics of a hub with certificates of a manager, of a node and without one.
func TestMetricsAreForManagers(t *testing.T) {
	s := newSite(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hub := NewHub(HubConfig{CA: s.ca, Join: s.join, Managers: func() []string { return nil }, Metrics: things(7)})
	done := make(chan error, 1)
	go func() { done <- hub.Serve(t.Context(), l) }()
	address := l.Addr().String()
	packed, err := s.ca.Metrics(t.Context(), address)
	if err != nil || !strings.Contains(unpacked(t, packed), "things 7") {
		t.Errorf("as a manager: %v", err)
	}
	stranger := newSite(t)
	if _, err := stranger.ca.Metrics(t.Context(), address); err == nil {
		t.Error("a manager of another cluster reads the metrics")
	}
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	csr, err := newRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := s.ca.Issue(csr, RoleAgent, "node", "", NodeLife)
	if err != nil {
		t.Fatal(err)
	}
	for name, certificates := range map[string][]tls.Certificate{"a node": {{Certificate: [][]byte{der}, PrivateKey: key}}, "no certificate": nil} {
		conn, err := dialTLS(t.Context(), address, &tls.Config{
			MinVersion: tls.VersionTLS13, NextProtos: []string{protoMetrics}, ServerName: serverName, RootCAs: s.ca.pool(), Certificates: certificates,
		})
		if err != nil {
			continue // refused during the handshake
		}
		client, err := clientOver(address, once(conn))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gather(t.Context(), client); err == nil {
			t.Errorf("%s reads the metrics", name)
		}
		client.Close()
		conn.Close()
	}
}

// TestMetricsOfAPeer reads the metrics of a node through its tunnel.
func TestMetricsOfAPeer(t *testing.T) {
	s := newSite(t)
	m := s.manager(t, "127.0.0.1:0")
	cfg := s.node(t, "node", m.addr)
	n, err := NewNode(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	ServeMetrics(srv, things(3))
	go func() { _ = n.Serve(t.Context(), srv) }()
	p := <-m.peers
	packed, err := p.Metrics(t.Context())
	if err != nil || !strings.Contains(unpacked(t, packed), "things 3") {
		t.Errorf("metrics of the node: %v", err)
	}
}
