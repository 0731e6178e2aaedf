package remote

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/egress"
)

// way is how a registry is reached. The operator names the registry, so it can be at any address
// except those of metadata services. Hosts that the registry names, in a redirect or as its token
// server, can be inside the platform's network only if the registry is there too.
type way struct {
	host  string   // of the registry
	proxy *url.URL // nil: that of the environment

	mu      sync.Mutex
	home    netip.Addr      // address of the registry, once it was reached
	proxies map[string]bool // host:port of proxies in use
}

func (w *way) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = w.dial
	t.Proxy = w.choose
	t.ResponseHeaderTimeout = headerTimeout
	t.MaxIdleConnsPerHost = 16
	t.MaxResponseHeaderBytes = 64 << 10
	t.DisableCompression = true // a small compressed answer could become a very long one
	return t
}

// choose returns the proxy of a request, and remembers its address.
func (w *way) choose(r *http.Request) (*url.URL, error) {
	u, err := w.proxy, error(nil)
	if u == nil {
		u, err = http.ProxyFromEnvironment(r)
	}
	if err != nil || u == nil {
		return nil, err
	}
	// A proxy resolves names itself. An address can be checked here.
	if a, err := netip.ParseAddr(r.URL.Hostname()); err == nil && r.URL.Hostname() != w.host {
		if err := egress.CheckBeside(w.at(), a); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.proxies == nil {
		w.proxies = map[string]bool{}
	}
	w.proxies[withPort(u)] = true
	return u, nil
}

func withPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "1080"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// at returns the address of the registry; not valid while it is unknown.
func (w *way) at() netip.Addr {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.home
}

func (w *way) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w: %w", address, errdefs.ErrInvalidArgument, err)
	}
	w.mu.Lock()
	named := w.proxies[address]
	w.mu.Unlock()
	if !named && !strings.EqualFold(host, w.host) {
		return egress.Beside(w.at())(ctx, network, address)
	}
	conn, err := (&egress.Policy{}).Dialer(egress.Private)(ctx, network, address)
	if err != nil || named {
		return conn, err
	}
	if to, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		w.mu.Lock()
		w.home = to.AddrPort().Addr()
		w.mu.Unlock()
	}
	return conn, nil
}

// Busy is the answer of a registry that asks its clients to wait.
type Busy struct{ After time.Duration }

func (b *Busy) Error() string { return fmt.Sprintf("the registry asks to wait %s", b.After) }

// Unwrap returns the class.
func (b *Busy) Unwrap() error { return errdefs.ErrUnavailable }
