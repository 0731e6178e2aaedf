package builder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/vishvananda/netns"

	"github.com/berthhq/berth/agent/build"
)

// inside connects from the network namespace of a sandbox, and asks the name servers of its steps.
type inside struct {
	netns   string
	servers []string // host:53
}

// insideTransport returns a transport for requests of the builder that belong to the sandbox: the network and the
// rules of a step apply to them.
func insideTransport(r build.Request) *http.Transport {
	in := &inside{netns: r.NetNS}
	for line := range strings.Lines(r.ResolvConf) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "nameserver" {
			in.servers = append(in.servers, net.JoinHostPort(fields[1], "53"))
		}
	}
	return &http.Transport{DialContext: in.dial, TLSHandshakeTimeout: 30 * time.Second, ResponseHeaderTimeout: 2 * time.Minute, ForceAttemptHTTP2: true}
}

// dial resolves a name, and connects to one of its addresses.
func (in *inside) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var failed error
		for _, server := range in.servers {
			conn, err := in.connect(ctx, network, server)
			if err == nil {
				return conn, nil
			}
			failed = errors.Join(failed, err)
		}
		return nil, errors.Join(errors.New("no name server is reachable"), failed)
	}}
	list, err := resolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, ip := range list {
		conn, err := in.connect(ctx, network, net.JoinHostPort(ip, port))
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// connect connects to an IP address. A socket belongs to the namespace of the thread that creates it, so the
// connection is made on a thread that enters the namespace and then ends with its goroutine.
func (in *inside) connect(ctx context.Context, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends
		ns, err := netns.GetFromPath(in.netns)
		if err != nil {
			done <- result{err: fmt.Errorf("open the network of the sandbox: %w", err)}
			return
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			done <- result{err: fmt.Errorf("enter the network of the sandbox: %w", err)}
			return
		}
		// Without a fallback, a literal address is dialled on this thread alone.
		conn, err := (&net.Dialer{Timeout: 30 * time.Second, FallbackDelay: -1}).DialContext(ctx, network, address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}
