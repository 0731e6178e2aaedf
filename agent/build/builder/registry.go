package builder

import (
	"context"
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
)

// registries are the registries of base images.
type registries []build.Registry

// of returns how BuildKit reaches a registry.
func (r registries) of(host string) ([]docker.RegistryHost, error) {
	plain := false
	for _, known := range r {
		if known.Host == host {
			plain = known.PlainHTTP
		}
	}
	return hostsOf(plain, "", "")(host)
}

// hostsOf returns how containerd reaches registries with one account.
func hostsOf(plain bool, username, password string) docker.RegistryHosts {
	authorizer := docker.NewDockerAuthorizer(docker.WithAuthCreds(func(string) (string, string, error) { return username, password, nil }))
	transport := docker.DefaultHTTPTransport(nil)
	transport.ResponseHeaderTimeout = 2 * time.Minute
	options := []docker.RegistryOpt{
		docker.WithClient(&http.Client{Transport: transport}),
		docker.WithPlainHTTP(func(string) (bool, error) { return plain, nil }),
	}
	if username != "" {
		options = append(options, docker.WithAuthorizer(authorizer))
	}
	return docker.ConfigureDefaultRegistries(options...)
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
		remote := docker.NewResolver(docker.ResolverOptions{Hosts: hostsOf(c.PlainHTTP, c.Reader, c.Secret)})
		name, desc, err := remote.Resolve(ctx, c.Name+":"+attrs[attrTag])
		if err != nil {
			return nil, desc, err
		}
		return remotecache.NewImporter(remoteContent{remote, name}), desc, nil
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
		pusher, err := push.NewPusher(ctx, push.Target{
			Repository: name, PlainHTTP: c.PlainHTTP, Username: c.Username, Password: c.Password, MountFrom: c.MountFrom,
		})
		if err != nil {
			return nil, err
		}
		return &cacheWriter{remotecache.NewExporter(contentutil.FromPusher(pusher), name, true, true, comp)}, nil
	}
}

type cacheWriter struct{ remotecache.Exporter }

func (*cacheWriter) Name() string { return "save the project's cache" }
