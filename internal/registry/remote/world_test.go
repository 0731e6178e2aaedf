package remote

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// world serves every host of a fixture on one loopback port with TLS, behind a proxy: the names of
// the vendors' servers are used as they are.
type world struct {
	handlers map[string]http.Handler // by host
	ca       string
	server   *httptest.Server

	mu   sync.Mutex
	seen []*http.Request // all, in order
}

func newWorld(t *testing.T, hosts map[string]http.Handler) *world {
	t.Helper()
	w := &world{handlers: hosts}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fixture"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	for host := range hosts {
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	w.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	w.server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	w.server.StartTLS()
	t.Cleanup(w.server.Close)
	return w
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.seen = append(w.seen, r)
	w.mu.Unlock()
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	h := w.handlers[host]
	if h == nil {
		http.Error(rw, "no such host", http.StatusBadGateway)
		return
	}
	h.ServeHTTP(rw, r)
}

// proxy is a CONNECT proxy that leads every name to the world.
func (w *world) proxy(t *testing.T) string {
	t.Helper()
	p := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			w.serve(rw, r)
			return
		}
		there, err := net.Dial("tcp", w.server.Listener.Addr().String())
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadGateway)
			return
		}
		here, buffered, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = fmt.Fprint(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = buffered.WriteTo(there); _ = there.Close() }()
		go func() { _, _ = bytes.NewBuffer(nil).WriteTo(here); copyClose(here, there) }()
	}))
	t.Cleanup(p.Close)
	return p.URL
}

func copyClose(to, from net.Conn) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_ = to.Close()
}

func (w *world) client(t *testing.T, host, user, password string) *Client {
	t.Helper()
	c, err := Open(Registry{Host: host, Username: user, Password: password, CA: w.ca, Proxy: w.proxy(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// leaks returns the hosts that got an Authorization, except those that may.
func (w *world) leaks(may ...string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	allowed := map[string]bool{}
	for _, h := range may {
		allowed[h] = true
	}
	var bad []string
	for _, r := range w.seen {
		if r.Header.Get("Authorization") != "" && !allowed[r.Host] {
			bad = append(bad, r.Host+r.URL.Path)
		}
	}
	return bad
}

// asked returns the requests to a host as METHOD path?query.
func (w *world) asked(host string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, r := range w.seen {
		if r.Host == host {
			q, _ := url.QueryUnescape(r.URL.RawQuery)
			out = append(out, r.Method+" "+r.URL.Path+"?"+q)
		}
	}
	return out
}

// image is a manifest and its configuration.
type image struct{ manifest, config []byte }

func newImage(arch string, env ...string) image {
	cfg, _ := json.Marshal(map[string]any{"os": "linux", "architecture": arch, "config": map[string]any{"Labels": map[string]string{"for": arch}, "Env": env}})
	m, _ := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": ociManifest,
		"config": map[string]any{"mediaType": ociConfig, "digest": sum(cfg), "size": len(cfg)},
		"layers": []any{map[string]any{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": sum([]byte(arch)), "size": 1000}},
	})
	return image{m, cfg}
}

func (i image) serve(rw http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case bytes.Contains([]byte(path), []byte("/manifests/")):
		rw.Header().Set("Content-Type", ociManifest)
		rw.Header().Set(digestHeader, sum(i.manifest))
		_, _ = rw.Write(i.manifest)
	case bytes.HasSuffix([]byte(path), []byte("/blobs/"+sum(i.config))):
		_, _ = rw.Write(i.config)
	case bytes.HasSuffix([]byte(path), []byte("/tags/list")):
		_ = json.NewEncoder(rw).Encode(map[string]any{"tags": []string{"1.0", "latest", "../../x"}})
	case path == "/v2/":
		_, _ = rw.Write([]byte("{}"))
	default:
		http.NotFound(rw, r)
	}
}
