// Package access reaches the registry of an image with containerd's library: login, proxy, certificates
// and timeouts are the same for pulls and for lazy reads.
package access

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/containerd/containerd/v2/core/remotes/docker"

	"github.com/berthhq/berth/internal/registry/remote"
)

// Registry is how an agent reaches a registry.
type Registry struct {
	PlainHTTP          bool
	Username, Password string
	Proxy              string // URL, "" = that of the environment
	Certificates       string // in PEM, trusted in addition to those of the machine
}

// Hosts returns the registry for containerd's library.
func (r Registry) Hosts() (docker.RegistryHosts, error) {
	authorizer := docker.NewDockerAuthorizer(docker.WithAuthCreds(func(string) (string, string, error) {
		return r.Username, r.Password, nil
	}))
	// The duration of a download is not limited, but the registry must start its response in time.
	transport := docker.DefaultHTTPTransport(nil)
	transport.ResponseHeaderTimeout = 30 * time.Second
	if r.Proxy != "" {
		u, err := remote.ProxyURL(r.Proxy)
		if err != nil {
			return nil, err
		}
		transport.Proxy = http.ProxyURL(u)
	}
	if r.Certificates != "" {
		pool, err := remote.Certificates(r.Certificates)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return docker.ConfigureDefaultRegistries(
		docker.WithAuthorizer(authorizer),
		docker.WithClient(&http.Client{Transport: transport}),
		docker.WithPlainHTTP(func(string) (bool, error) { return r.PlainHTTP, nil }),
	), nil
}
