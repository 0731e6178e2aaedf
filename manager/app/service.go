// Package app manages the apps of sessions, which people open in the browser: which apps a session
// has, who can open them, and how a gateway starts them and connects to them. Managers and gateways
// import it.
package app

import (
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/policy"
)

// Agents reaches the worker machines.
type Agents interface {
	RPC(agent string) (agentpb.AgentClient, error)
	Streams(agent string) (portstream.Opener, error)
}

// Config has the dependencies of a Service.
type Config struct {
	Client *ent.Client
	Bus    *event.Bus
	Redis  redis.UniversalClient // keeps tickets
	Keys   *seal.Ring
	Agents Agents
	// Gateways returns the live gateways.
	Gateways func() []Gateway
	Logger   *slog.Logger
}

// Service lists, starts and shares apps of sessions.
type Service struct {
	Config
	catalogue []entry
	policies  *policy.Service
	surveys   surveys
}

// New returns a Service.
func New(cfg Config) (*Service, error) {
	list, err := loadCatalogue(catalogueText)
	if err != nil {
		return nil, err
	}
	return &Service{Config: cfg, catalogue: list, policies: policy.New(policy.Config{Client: cfg.Client, Bus: cfg.Bus}), surveys: surveys{m: map[uuid.UUID]*surveyed{}}}, nil
}

// Gateway is what a gateway publishes about itself.
type Gateway struct {
	Address string `json:"address"` // address for agents
	Apps    string `json:"apps"`    // URL of apps with * for the label, such as https://*.apps.example.org
	Paths   string `json:"paths"`   // URL of path mode, such as https://apps.example.org; "": none
	Ports   *Ports `json:"ports,omitempty"`
	SSH     *SSH   `json:"ssh,omitempty"`
	Models  string `json:"models,omitempty"` // base URL of the APIs of models, such as https://berth.example.org/v1
}

// SSH is the address of a gateway's SSH server.
type SSH struct {
	Host    string `json:"host"`
	Port    int    `json:"port"`
	HostKey string `json:"host_key"` // in the format of authorized_keys
}

// SSH returns the address of a live gateway's SSH server, or nil if there is none.
func (s *Service) SSH() *SSH {
	for _, g := range s.Gateways() {
		if g.SSH != nil {
			return g.SSH
		}
	}
	return nil
}

// ModelsURL returns the base URL of the APIs of models of a live gateway, or "" if none serves models.
func (s *Service) ModelsURL() string {
	for _, g := range s.Gateways() {
		if g.Models != "" {
			return g.Models
		}
	}
	return ""
}

// GatewaysKey is the prefix of the keys in etcd at which gateways publish a Gateway as JSON.
const GatewaysKey = "/berth/gateways/"

// surveys caches the surveys of containers, so that lists and repeated requests do not start a
// process for each.
type surveys struct {
	mu sync.Mutex
	m  map[uuid.UUID]*surveyed
}

const (
	surveyFor   = 2 * time.Second // how long a survey is used
	surveyTime  = 5 * time.Second // timeout of a survey
	surveysMost = 4096
)
