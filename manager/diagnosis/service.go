package diagnosis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/agents"
	"github.com/berthhq/berth/manager/app"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/recovery"
)

// Severity is how bad a finding is.
type Severity string

// Severities, the worst first.
const (
	Fault   Severity = "fault"   // something does not work
	Warning Severity = "warning" // something will not work soon, or no longer after one more fault
	Notice  Severity = "notice"  // unusual, and possibly meant
	Fine    Severity = "fine"    // the check has found no fault
)

var severities = []Severity{Fault, Warning, Notice, Fine}

// Check is what a check looks at.
type Check string

// Checks, in their order.
const (
	DatabaseCheck     Check = "database"
	RedisCheck        Check = "redis"
	EtcdCheck         Check = "etcd"
	LeaderCheck       Check = "leader"
	ManagersCheck     Check = "managers"
	RecoveryCheck     Check = "recovery"
	GatewaysCheck     Check = "gateways"
	CertificatesCheck Check = "certificates"
	AgentsCheck       Check = "agents"
	ConditionsCheck   Check = "conditions"
	PluginsCheck      Check = "plugins"
	StorageCheck      Check = "storage"
	VolumesCheck      Check = "volumes"
	ImagesCheck       Check = "images"
	RegistriesCheck   Check = "registries"
	TasksCheck        Check = "tasks"
	RetentionCheck    Check = "retention"
	SessionsCheck     Check = "sessions"
)

// Finding is the result of a check about one subject.
type Finding struct {
	Check    Check
	Severity Severity
	// Subject names the object; "": the check as a whole.
	Subject   string
	SubjectID *uuid.UUID
	// Text is the fault or, of a fine result, what was found.
	Text        string
	Consequence string
	Fix         string
}

// Diagnosis is the result of all checks.
type Diagnosis struct {
	At       time.Time
	Findings []Finding // the worst first
}

// Config has what the checks look at.
type Config struct {
	Client   *ent.Client
	Redis    redis.UniversalClient
	Etcd     *clientv3.Client
	Leader   *leader.Service
	Recovery *recovery.Service
	Agents   *agents.Service
	Gateways func() []app.Gateway
	// Authority returns the expiry of the certificate of the cluster's CA.
	Authority func() time.Time
	Version   string
}

// Service makes the checks.
type Service struct{ Config }

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg} }

// checkTime limits one check.
const checkTime = 5 * time.Second

// check is one check. It returns what it has found; a result without findings is an error of the check.
type check struct {
	name Check
	run  func(ctx context.Context) ([]Finding, error)
}

// Diagnose makes all checks at the same time.
func (s *Service) Diagnose(ctx context.Context) *Diagnosis {
	ctx = viewer.SystemContext(ctx)
	agents := sync.OnceValues(func() ([]*ent.Agent, error) {
		ctx, cancel := context.WithTimeout(ctx, checkTime)
		defer cancel()
		return s.list(ctx)
	})
	checks := []check{
		{DatabaseCheck, s.database}, {RedisCheck, s.redis}, {EtcdCheck, s.etcd}, {LeaderCheck, s.leader}, {ManagersCheck, s.managers}, {RecoveryCheck, s.recovery},
		{GatewaysCheck, s.gateways}, {CertificatesCheck, s.certificates}, {AgentsCheck, ofAgents(agents, s.agents)}, {ConditionsCheck, ofAgents(agents, s.conditions)}, {PluginsCheck, ofAgents(agents, s.plugins)},
		{StorageCheck, s.proxies}, {VolumesCheck, s.volumes}, {ImagesCheck, s.images}, {RegistriesCheck, s.registries}, {TasksCheck, s.tasks},
		{RetentionCheck, s.retention}, {SessionsCheck, s.sessions},
	}
	results := make([][]Finding, len(checks))
	var all sync.WaitGroup
	for i, c := range checks {
		all.Go(func() { results[i] = c.findings(ctx) })
	}
	all.Wait()
	d := &Diagnosis{At: clock.Now(), Findings: slices.Concat(results...)}
	slices.SortStableFunc(d.Findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity))
	})
	return d
}

// findings runs the check. A check that fails is a finding.
func (c check) findings(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	list, err := c.run(ctx)
	if err != nil {
		list = append(list, Finding{
			Severity: Fault, Text: fmt.Sprintf("the check failed: %v", err), Consequence: "its faults are not known",
			Fix: "look at the stores first: most checks need the database",
		})
	}
	for i := range list {
		list[i].Check = c.name
	}
	return list
}

// fine returns the result of a check without a fault.
func fine(format string, args ...any) []Finding {
	return []Finding{{Severity: Fine, Text: fmt.Sprintf(format, args...)}}
}

// orFine returns what was found or, without findings, a fine result.
func orFine(found []Finding, format string, args ...any) ([]Finding, error) {
	if len(found) > 0 {
		return found, nil
	}
	return fine(format, args...), nil
}
