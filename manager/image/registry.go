package image

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/remote"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/permit"
)

// Service writes registries and images.
type Service struct {
	client *ent.Client
	keys   *seal.Ring
	own    Own
}

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Keys   *seal.Ring // encrypts the passwords of registries
	Own    Own        // for images of sessions
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{client: cfg.Client, keys: cfg.Keys, own: cfg.Own} }

// CreateRegistryInput describes a new registry.
type CreateRegistryInput struct {
	Name      string
	Host      string
	PlainHTTP *bool
	Username  *string
	Password  *string
}

// RegistryPayload is a registry after a change.
type RegistryPayload struct{ Registry *ent.Registry }

// maxCredential is in characters; tokens of cloud registries are long.
const maxCredential = 4096

// CreateRegistry adds a registry without contacting it.
func (s *Service) CreateRegistry(ctx context.Context, in CreateRegistryInput) (*RegistryPayload, error) {
	if _, err := permit.Check(ctx, access.Create, access.Registry, access.Object{}); err != nil {
		return nil, err
	}
	if err := naming.Name("name", in.Name); err != nil {
		return nil, err
	}
	host, err := canonicalHost(in.Host)
	if err != nil {
		return nil, err
	}
	if err := checkCredentials(in.Username, in.Password); err != nil {
		return nil, err
	}
	c := s.client.Registry.Create().SetName(in.Name).SetHost(host).SetNillablePlainHTTP(in.PlainHTTP).
		SetNillableUsername(in.Username)
	if in.Password != nil && *in.Password != "" {
		c.SetPasswordSealed(s.keys.Seal(seal.RegistryPassword, []byte(*in.Password)))
	}
	r, err := c.Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("create registry: %w", err)
	}
	return &RegistryPayload{Registry: r}, nil
}

func checkCredentials(username, password *string) error {
	for field, text := range map[string]*string{"username": username, "password": password} {
		if text == nil {
			continue
		}
		if err := naming.Line(field, *text, maxCredential); err != nil {
			return err
		}
	}
	return nil
}

// Password returns the password of a registry, or "".
func (s *Service) Password(r *ent.Registry) (string, error) {
	if len(r.PasswordSealed) == 0 {
		return "", nil
	}
	password, err := s.keys.Open(seal.RegistryPassword, r.PasswordSealed)
	return string(password), err
}

// reach returns the connection data of a registry for the library.
func (s *Service) reach(r *ent.Registry) (remote.Registry, error) {
	password, err := s.Password(r)
	return remote.Registry{Host: r.Host, PlainHTTP: r.PlainHTTP, Username: r.Username, Password: password}, err
}

// dockerHub is the usual name of Docker Hub; the others are its servers.
const dockerHub = "docker.io"

// canonicalHost checks host[:port] and returns a canonical spelling.
func canonicalHost(s string) (string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	if strings.Contains(s, "://") {
		return "", problem.Invalid("host", "must not have a scheme; set plainHttp for a registry without TLS")
	}
	host, port := s, ""
	if h, p, err := net.SplitHostPort(s); err == nil {
		host, port = h, p
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "", problem.Invalid("host", "has no valid port").WithLimit("1..65535")
		}
	}
	if !naming.Host(host) {
		return "", problem.Invalid("host", "is not a host name or host:port")
	}
	if port == "" && (host == "index."+dockerHub || host == "registry-1."+dockerHub) {
		return dockerHub, nil
	}
	if port != "" {
		return net.JoinHostPort(host, port), nil
	}
	return host, nil
}
