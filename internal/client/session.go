package client

import (
	"context"
	"slices"
	"time"

	"github.com/berthhq/berth/internal/resource"
	"github.com/containerd/errdefs"
)

// Ended lists the states that a session does not leave.
var ended = []string{"terminated", "cancelled", "error"}

// Session is a session as lists show it.
type Session struct {
	ID                string         `json:"id"`
	Version           int            `json:"version"`
	Name              string         `json:"name"`
	Type              string         `json:"type"`
	Status            string         `json:"status"`
	Result            string         `json:"result"`
	ExitCode          *int           `json:"exitCode"`
	Priority          int            `json:"priority"`
	Slots             resource.Slots `json:"slots"`
	Command           []string       `json:"command"`
	TerminationReason *string        `json:"terminationReason"`
	StatusMessage     string         `json:"statusMessage"`
	CreatedAt         time.Time      `json:"createdAt"`
	StartedAt         *time.Time     `json:"startedAt"`
	TerminatedAt      *time.Time     `json:"terminatedAt"`
	Owner             *UserRef       `json:"owner"`
	Project           *Ref           `json:"project"`
	ResourceGroup     *Ref           `json:"resourceGroup"`
	Image             ImageRef       `json:"image"`
}

const sessionFields = `fragment sessionFields on Session {
  id version name type status result exitCode priority slots command
  terminationReason statusMessage createdAt startedAt terminatedAt
  owner { id email } project { id name } resourceGroup { id name } image { id reference name }
}`

// Ended reports whether nothing more will happen to the session.
func (s *Session) Ended() bool { return slices.Contains(ended, s.Status) }

// ImageRef names an image.
type ImageRef struct {
	ID        string `json:"id"`
	Reference string `json:"reference"`
	Name      string `json:"name"`
}

// SessionDetail is all there is to know about a session.
type SessionDetail struct {
	Session
	Environment map[string]string `json:"environment"`
	ScheduledAt *time.Time        `json:"scheduledAt"`
	DeadlineAt  *time.Time        `json:"deadlineAt"`
	Domain      *Ref              `json:"domain"`
	Kernels     []Kernel          `json:"kernels"`
	Mounts      []Mount           `json:"mounts"`
	History     []SessionEvent    `json:"history"`
	Pending     *PendingReport    `json:"pending"`
	Usage       []UsageEntry      `json:"usage"`
	Idle        *SessionIdle      `json:"idle"`
	IdleExempt  bool              `json:"idleExempt"`

	DiskBytes    int64        `json:"diskBytes"` // of each kernel; 0 of an old session
	Lifetime     *int         `json:"lifetime"`  // seconds
	EndsAt       *time.Time   `json:"endsAt"`
	Preemptible  bool         `json:"preemptible"`
	SessionGroup *Ref         `json:"sessionGroup"`
	StartsAt     *time.Time   `json:"startsAt"`
	Agents       []Ref        `json:"agents"`
	StrictAgents bool         `json:"strictAgents"`
	DependsOn    []Dependency `json:"dependsOn"`
	Dependents   []Dependency `json:"dependents"`
}

// Dependency says that a session starts only after another has succeeded. Needed
// is nil when that one is out of sight or gone.
type Dependency struct {
	ID        string      `json:"id"`
	Name      string      `json:"name"` // of the needed session
	Satisfied bool        `json:"satisfied"`
	Session   *SessionRef `json:"session"`
	Needed    *SessionRef `json:"needed"`
}

// SessionRef names a session and says how it is.
type SessionRef struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
}

// Kernel is one container of a session.
type Kernel struct {
	ID            string         `json:"id"`
	Role          string         `json:"role"`
	Index         int            `json:"index"`
	Hostname      string         `json:"hostname"`
	Status        string         `json:"status"`
	StatusMessage string         `json:"statusMessage"`
	ExitCode      *int           `json:"exitCode"`
	Slots         resource.Slots `json:"slots"`
	CreatedAt     time.Time      `json:"createdAt"`
	StartedAt     *time.Time     `json:"startedAt"`
	TerminatedAt  *time.Time     `json:"terminatedAt"`
	Agent         *Ref           `json:"agent"`
	Allocations   []Allocation   `json:"allocations"`
	Stats         struct {
		At      *time.Time `json:"at"`
		Metrics []Metric   `json:"metrics"`
	} `json:"stats"`
}

// Allocation is a part of a device that a kernel holds or held.
type Allocation struct {
	ID        string     `json:"id"`
	Slot      string     `json:"slot"`
	Amount    string     `json:"amount"`
	CreatedAt time.Time  `json:"createdAt"`
	FreedAt   *time.Time `json:"freedAt"`
	Device    *struct {
		ID            string `json:"id"`
		DeviceID      string `json:"deviceId"`
		Model         string `json:"model"`
		Health        string `json:"health"`
		HealthMessage string `json:"healthMessage"`
	} `json:"device"`
}

// Metric is one sample.
type Metric struct {
	Name     string  `json:"name"`
	DeviceID string  `json:"deviceId"`
	Value    float64 `json:"value"`
	Capacity float64 `json:"capacity"`
	Unit     string  `json:"unit"`
	Quality  string  `json:"quality"`
}

const metricFields = `fragment metricFields on Metric { name deviceId value capacity unit quality }`

// Mount is a folder inside a session.
type Mount struct {
	ID       string `json:"id"`
	Vfolder  *Ref   `json:"vfolder"`
	Target   string `json:"target"`
	Subpath  string `json:"subpath"`
	ReadOnly bool   `json:"readOnly"`
	// RevokedAt is when its owner lost the folder.
	RevokedAt *time.Time `json:"revokedAt"`
}

// SessionEvent is one entry of a session's history.
type SessionEvent struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	Phase      string    `json:"phase"`
	FromStatus *string   `json:"fromStatus"`
	ToStatus   *string   `json:"toStatus"`
	Result     string    `json:"result"`
	Attempt    int       `json:"attempt"`
	Code       string    `json:"code"`
	Message    string    `json:"message"`
	Steps      []struct {
		Name      string    `json:"name"`
		StartedAt time.Time `json:"startedAt"`
		EndedAt   time.Time `json:"endedAt"`
		OK        bool      `json:"ok"`
		Message   string    `json:"message"`
	} `json:"steps"`
}

// UsageEntry is what has been charged for one slot.
type UsageEntry struct {
	Slot        string `json:"slot"`
	SlotSeconds string `json:"slotSeconds"`
}

// SessionState is what changes while a session lives.
type SessionState struct {
	ID                string     `json:"id"`
	Version           int        `json:"version"`
	Name              string     `json:"name"`
	Status            string     `json:"status"`
	Result            string     `json:"result"`
	ExitCode          *int       `json:"exitCode"`
	TerminationReason *string    `json:"terminationReason"`
	StatusMessage     string     `json:"statusMessage"`
	StartedAt         *time.Time `json:"startedAt"`
	Pending           *struct {
		Position int    `json:"position"`
		Summary  string `json:"summary"`
	} `json:"pending"`
	Kernels []struct {
		ID   string `json:"id"`
		Role string `json:"role"`
	} `json:"kernels"`
}

const stateFields = `fragment stateFields on Session {
  id version name status result exitCode terminationReason statusMessage
  startedAt pending { position summary } kernels { id role }
}`

// Ended reports whether nothing more will happen to the session.
func (s *SessionState) Ended() bool { return slices.Contains(ended, s.Status) }

// Started reports whether the main process has begun at some time.
func (s *SessionState) Started() bool {
	return s.Status == "running" || s.StartedAt != nil || s.ExitCode != nil
}

// MainKernel is the id of the kernel that runs the command, "" before there is
// one.
func (s *SessionState) MainKernel() string {
	for _, k := range s.Kernels {
		if k.Role == "main" {
			return k.ID
		}
	}
	return ""
}

var listSessions = define[struct {
	Sessions connection[Session] `json:"sessions"`
}](`query Sessions($first: Int, $after: Cursor, $where: SessionWhereInput) {
  sessions(first: $first, after: $after, where: $where, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
    edges { node { ...sessionFields } } pageInfo { hasNextPage endCursor }
  }
}`, sessionFields)

// SessionFilter narrows a list of sessions; zero values do not.
type SessionFilter struct {
	ID, Name string
	Owner    string // id
	Project  string // id
	Statuses []string
	Live     bool // not ended
	Limit    int
}

// Sessions lists sessions in sight, newest first.
func (c *Client) Sessions(ctx context.Context, f SessionFilter) ([]Session, error) {
	where := vars{}
	set := func(key, value string) {
		if value != "" {
			where[key] = value
		}
	}
	set("id", f.ID)
	set("name", f.Name)
	set("ownerID", f.Owner)
	set("projectID", f.Project)
	if len(f.Statuses) > 0 {
		where["statusIn"] = f.Statuses
	}
	if f.Live {
		where["statusNotIn"] = ended
	}
	return collect(f.Limit, vars{"where": where}, func(v vars) (connection[Session], error) {
		out, err := listSessions.run(ctx, c, v)
		return out.Sessions, err
	})
}

var showSession = define[struct {
	Node *SessionDetail `json:"node"`
}](`query Session($id: ID!) {
  node(id: $id) { ... on Session {
    ...sessionFields environment scheduledAt deadlineAt domain { id name }
    kernels {
      id role index hostname status statusMessage exitCode slots createdAt startedAt terminatedAt
      agent { id name }
      allocations { id slot amount createdAt freedAt device { id deviceId model health healthMessage } }
      stats { at metrics { ...metricFields } }
    }
    mounts { id vfolder { id name } target subpath readOnly revokedAt }
    idle { checker kind endsAt reason warnedAt } idleExempt
    history {
      id at phase fromStatus toStatus result attempt code message
      steps { name startedAt endedAt ok message }
    }
    pending { ...reportFields }
    usage { slot slotSeconds }
    startsAt agents { id name } strictAgents
    diskBytes lifetime endsAt preemptible sessionGroup { id name }
    dependsOn { ...dependencyFields } dependents { ...dependencyFields }
  } }
}
fragment dependencyFields on SessionDependency {
  id name satisfied session { id name status } needed { id name status }
}`, sessionFields, metricFields, reportFields)

// Session reads one session by id.
func (c *Client) Session(ctx context.Context, id string) (*SessionDetail, error) {
	out, err := showSession.run(ctx, c, vars{"id": id})
	if err != nil {
		return nil, err
	}
	if out.Node == nil || out.Node.ID == "" {
		return nil, notFound("session", id)
	}
	return out.Node, nil
}

// MountInput is a folder to mount.
type MountInput struct {
	Vfolder  string `json:"vfolder"`
	Target   string `json:"target,omitempty"`
	Subpath  string `json:"subpath,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// CreateSessionInput is what a new session shall be.
type CreateSessionInput struct {
	Name            string            `json:"name,omitempty"`
	Image           string            `json:"image"`
	Type            string            `json:"type,omitempty"`
	Slots           resource.Slots    `json:"slots"` // of each kernel
	Kernels         int               `json:"kernels,omitempty"`
	Command         []string          `json:"command,omitempty"`
	BootstrapScript string            `json:"bootstrapScript,omitempty"`
	Environment     map[string]string `json:"environment,omitempty"`
	Mounts          []MountInput      `json:"mounts,omitempty"`
	Project         string            `json:"project,omitempty"`
	ResourceGroup   string            `json:"resourceGroup,omitempty"`
	Priority        *int              `json:"priority,omitempty"`
	ShmBytes        int64             `json:"shmBytes,omitempty"`
	DiskBytes       int64             `json:"diskBytes,omitempty"` // of each kernel
	StartsAt        *time.Time        `json:"startsAt,omitempty"`
	DependsOn       []string          `json:"dependsOn,omitempty"`
	Agents          []string          `json:"agents,omitempty"`
	StrictAgents    bool              `json:"strictAgents,omitempty"`
	Lifetime        *int              `json:"lifetime,omitempty"` // seconds
	Preemptible     bool              `json:"preemptible,omitempty"`
	SessionGroup    string            `json:"sessionGroup,omitempty"`
	IdempotencyKey  string            `json:"idempotencyKey"`
}

type sessionPayload struct {
	Payload struct {
		Session Session `json:"session"`
	} `json:"payload"`
}

var createSession = define[sessionPayload](`mutation CreateSession($input: CreateSessionInput!) {
  payload: createSession(input: $input) { session { ...sessionFields } }
}`, sessionFields)

// CreateSession makes a session. The idempotency key lets it ask again when an
// answer was lost.
func (c *Client) CreateSession(ctx context.Context, in CreateSessionInput) (*Session, error) {
	var err error
	for range 3 {
		var out sessionPayload
		out, err = createSession.run(ctx, c, vars{"input": in})
		if err == nil {
			return &out.Payload.Session, nil
		}
		if !errdefs.IsUnavailable(err) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(300 * time.Millisecond):
		}
	}
	return nil, err
}

var terminateSession = define[sessionPayload](`mutation TerminateSession($input: TerminateSessionInput!) {
  payload: terminateSession(input: $input) { session { ...sessionFields } }
}`, sessionFields)

// TerminateSession asks for the session's end; force skips the grace period.
func (c *Client) TerminateSession(ctx context.Context, id string, force bool) (*Session, error) {
	out, err := terminateSession.run(ctx, c, vars{"input": vars{"id": id, "force": force}})
	return &out.Payload.Session, err
}

var renameSession = define[sessionPayload](`mutation RenameSession($input: RenameSessionInput!) {
  payload: renameSession(input: $input) { session { ...sessionFields } }
}`, sessionFields)

// RenameSession gives the session another name.
func (c *Client) RenameSession(ctx context.Context, id, name string) (*Session, error) {
	out, err := renameSession.run(ctx, c, vars{"input": vars{"id": id, "name": name}})
	return &out.Payload.Session, err
}

var sumUsage = define[struct {
	Usage []UsageEntry `json:"usage"`
}](`query Usage($where: UsageWhereInput) { usage(where: $where) { slot slotSeconds } }`)

// UsageFilter narrows usage; zero values do not. User and Project are ids.
type UsageFilter struct {
	From, To      time.Time
	User, Project string
}

// Usage sums what sessions in sight have been charged.
func (c *Client) Usage(ctx context.Context, f UsageFilter) ([]UsageEntry, error) {
	where := vars{}
	for key, t := range map[string]time.Time{"from": f.From, "to": f.To} {
		if !t.IsZero() {
			where[key] = t
		}
	}
	for key, id := range map[string]string{"user": f.User, "project": f.Project} {
		if id != "" {
			where[key] = id
		}
	}
	out, err := sumUsage.run(ctx, c, vars{"where": where})
	return out.Usage, err
}
