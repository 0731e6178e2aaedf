package builder

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/errdefs"
	"github.com/moby/buildkit/cache/remotecache"
	"github.com/moby/buildkit/session"
	"github.com/moby/buildkit/session/auth"
	"github.com/moby/buildkit/util/compression"
	"github.com/moby/buildkit/util/contentutil"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/build"
	"github.com/berthhq/berth/agent/runtime/push"
	"github.com/berthhq/berth/internal/registry/remote"
)

// registries are the registries of base images.
type registries []build.Registry

// named returns the registry of a host.
func (r registries) named(host string) build.Registry {
	for _, known := range r {
		if known.Host == host {
			return known
		}
	}
	return build.Registry{Host: host}
}

// of returns how BuildKit reaches a registry. BuildKit asks accounts for the credentials.
func (r registries) of(host string) ([]docker.RegistryHost, error) {
	hosts, err := hostsOf(r.named(host).Way, "", "")
	if err != nil {
		return nil, err
	}
	return hosts(host)
}

// hostsOf returns how containerd reaches a registry with one account.
func hostsOf(way build.Way, username, password string) (docker.RegistryHosts, error) {
	transport, err := transportOf(way)
	if err != nil {
		return nil, err
	}
	return func(host string) ([]docker.RegistryHost, error) {
		client := &http.Client{Transport: &guard{to: transport, registry: hostname(host)}}
		options := []docker.RegistryOpt{docker.WithClient(client), docker.WithPlainHTTP(func(string) (bool, error) { return way.PlainHTTP, nil })}
		if username != "" {
			account := docker.WithAuthCreds(func(string) (string, string, error) { return username, password, nil })
			options = append(options, docker.WithAuthorizer(docker.NewDockerAuthorizer(account, docker.WithAuthClient(client))))
		}
		return docker.ConfigureDefaultRegistries(options...)(host)
	}, nil
}

// transportOf returns a transport with the proxy and the certificates of a registry.
func transportOf(way build.Way) (*http.Transport, error) {
	t := docker.DefaultHTTPTransport(nil)
	t.ResponseHeaderTimeout = 2 * time.Minute
	if way.Proxy != "" {
		u, err := remote.ProxyURL(way.Proxy)
		if err != nil {
			return nil, err
		}
		t.Proxy = http.ProxyURL(u)
	}
	if way.Certificates != "" {
		pool, err := remote.Certificates(way.Certificates)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return t, nil
}

// guard refuses requests with credentials to other sites than that of the registry, which a registry can name as its
// token server.
type guard struct {
	to       http.RoundTripper
	registry string
}

// dockerHub is the name of Docker Hub in references.
const dockerHub = "docker.io"

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Hostname()
	foreign := !remote.SameSite(g.registry, host) && (g.registry != dockerHub || !remote.SameSite("registry-1.docker.io", host))
	if foreign && (r.Header.Get("Authorization") != "" || r.Method == http.MethodPost || r.Method == http.MethodPut) {
		return nil, fmt.Errorf("the registry %s asks for its credentials at %s, which is not on its site: %w", g.registry, host, errdefs.ErrPermissionDenied)
	}
	return g.to.RoundTrip(r)
}

// hostname returns a host without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// target returns a repository for the pusher.
func target(to build.Repository) (push.Target, error) {
	t, err := transportOf(to.Way)
	return push.Target{
		Repository: to.Name, PlainHTTP: to.PlainHTTP, Transport: t, Username: to.Username, Password: to.Password, MountFrom: to.MountFrom,
	}, err
}

// accounts answers BuildKit's questions for credentials of registries.
type accounts struct {
	auth.UnimplementedAuthServer
	registries registries
}

func (a accounts) Register(s *grpc.Server) { auth.RegisterAuthServer(s, a) }

func (a accounts) Credentials(_ context.Context, r *auth.CredentialsRequest) (*auth.CredentialsResponse, error) {
	for _, known := range a.registries {
		if known.Host == r.Host {
			return &auth.CredentialsResponse{Username: known.Username, Secret: known.Password}, nil
		}
	}
	return &auth.CredentialsResponse{}, nil
}

// imported returns BuildKit's reader of the project's cache in a registry. A tag that does not exist is
// not an error of the build.
func imported(c build.Cache) remotecache.ResolveCacheImporterFunc {
	return func(ctx context.Context, _ session.Group, attrs map[string]string) (remotecache.Importer, ocispec.Descriptor, error) {
		hosts, err := hostsOf(c.Way, c.Reader, c.Secret)
		if err != nil {
			return nil, ocispec.Descriptor{}, err
		}
		from := docker.NewResolver(docker.ResolverOptions{Hosts: hosts})
		name, desc, err := from.Resolve(ctx, c.Name+":"+attrs[attrTag])
		if err != nil {
			return nil, desc, err
		}
		return remotecache.NewImporter(remoteContent{from, name}), desc, nil
	}
}

const attrTag = "tag"

// remoteContent reads the blobs of a repository.
type remoteContent struct {
	remotes.Resolver
	name string
}

func (r remoteContent) ReaderAt(ctx context.Context, desc ocispec.Descriptor) (content.ReaderAt, error) {
	fetcher, err := r.Fetcher(ctx, r.name)
	if err != nil {
		return nil, err
	}
	return contentutil.FromFetcher(fetcher).ReaderAt(ctx, desc)
}

// exported returns BuildKit's writer of the project's cache in a registry.
func exported(c build.Cache) remotecache.ResolveCacheExporterFunc {
	return func(ctx context.Context, _ session.Group, attrs map[string]string) (remotecache.Exporter, error) {
		comp, err := compression.ParseAttributes(attrs)
		if err != nil {
			return nil, err
		}
		if c.Name == "" {
			return nil, errdefs.ErrInvalidArgument
		}
		name := c.Name + ":" + attrs[attrTag]
		to, err := target(c.Repository)
		if err != nil {
			return nil, err
		}
		to.Repository = name
		pusher, err := push.NewPusher(ctx, to)
		if err != nil {
			return nil, err
		}
		return &cacheWriter{remotecache.NewExporter(contentutil.FromPusher(pusher), name, true, true, comp)}, nil
	}
}

type cacheWriter struct{ remotecache.Exporter }

func (*cacheWriter) Name() string { return "save the project's cache" }
