package image

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/remote"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/task"
)

// Service writes registries and images, and scans registries.
type Service struct {
	client *ent.Client
	keys   *seal.Ring
	own    Own
	tasks  *task.Service
	meter  *meter
	log    *slog.Logger

	tagTimeout time.Duration
	sweepGrace time.Duration
	pace       hookPace
	documents  documents
	logins     *remote.Logins
	onShare    func(ctx context.Context, tx *ent.Tx, i *ent.Image, project uuid.UUID) error
}

// OnShare sets what decides whether an image can be shared with a project. Call it before the service is
// used.
func (s *Service) OnShare(f func(ctx context.Context, tx *ent.Tx, i *ent.Image, project uuid.UUID) error) {
	s.onShare = f
}

// Config has the dependencies of a Service.
type Config struct {
	Client     *ent.Client
	Keys       *seal.Ring            // encrypts the passwords of registries
	Own        Own                   // for images of sessions; zero: no such registry
	Tasks      *task.Service         // runs scans; nil: registries cannot be scanned
	Registry   prometheus.Registerer // nil: no metrics
	Logger     *slog.Logger          // nil: no log
	TagTimeout time.Duration         // of one tag in a scan; zero: 30 s
	SweepGrace time.Duration         // age of content that sweeps never remove; zero: 3 h
}

// New returns a Service, and registers its kind of tasks.
func New(cfg Config) *Service {
	s := &Service{
		client: cfg.Client, keys: cfg.Keys, own: cfg.Own, tasks: cfg.Tasks, meter: newMeter(cfg.Registry), log: cfg.Logger, tagTimeout: cfg.TagTimeout,
		logins: remote.NewLogins(),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.tagTimeout == 0 {
		s.tagTimeout = tagTimeout
	}
	if s.sweepGrace = cfg.SweepGrace; s.sweepGrace == 0 {
		s.sweepGrace = sweepGrace
	}
	if s.tasks != nil {
		s.tasks.Register(scanKind, scanner{s})
		s.tasks.Register(rescanKind, scanner{s})
		s.tasks.Register(sweepKind, sweeper{s})
	}
	return s
}

// CreateRegistryInput describes a new registry.
type CreateRegistryInput struct {
	Name      string
	Host      string
	PlainHTTP *bool
	Username  *string
	Password  *string
	RegistrySettings
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
	if err := s.checkSettings(ctx, &in.RegistrySettings); err != nil {
		return nil, err
	}
	c := s.client.Registry.Create().SetName(in.Name).SetHost(host).SetNillablePlainHTTP(in.PlainHTTP).
		SetNillableUsername(in.Username)
	if in.Password != nil && *in.Password != "" {
		c.SetPasswordSealed(s.keys.Seal(seal.RegistryPassword, []byte(*in.Password)))
	}
	in.set(c.Mutation())
	if err := s.setMirrors(c.Mutation(), nil, in.Mirrors); err != nil {
		return nil, err
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

// Login returns the user name and the password with which agents pull images of a registry, or two empty strings. It
// asks Amazon for those of a registry at Amazon, which are valid for 12 hours.
func (s *Service) Login(ctx context.Context, r *ent.Registry) (username, password string, err error) {
	if !remote.IsECR(r.Host) {
		password, err = s.Password(r)
		return r.Username, password, err
	}
	from, err := s.reach(r)
	if err != nil {
		return "", "", err
	}
	defer from.Close()
	username, password, err = from.Login(ctx)
	if err != nil {
		return "", "", explain(r, "registry "+r.Name, err)
	}
	return username, password, nil
}

// reach returns a client for a registry. Close it.
func (s *Service) reach(r *ent.Registry) (*remote.Client, error) {
	password, err := s.Password(r)
	if err != nil {
		return nil, err
	}
	return remote.Open(remote.Registry{
		Host: r.Host, PlainHTTP: r.PlainHTTP, Username: r.Username, Password: password, Proxy: r.Proxy, CA: r.Certificates,
		Logins: s.logins,
	})
}

// dockerHub is the usual name of Docker Hub. Other names belong to its servers.
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
