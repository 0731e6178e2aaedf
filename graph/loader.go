package graph

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vikstrous/dataloadgen"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/ent/device"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/sessionmount"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/app"
	deploymentload "github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/price"
	"github.com/berthhq/berth/manager/scheduler"
	"github.com/berthhq/berth/manager/scheduler/plan"
	msession "github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/stats"
)

// holder is the session that uses a part of a device.
type holder struct {
	slot    string
	amount  int64
	since   time.Time
	session *ent.Session // nil if the viewer cannot see it
	mine    bool
}

type loader[T any] = dataloadgen.Loader[uuid.UUID, T]

// loaderSet batches the reads of fields in lists of objects, within one response.
type loaderSet struct {
	devices             *loader[[]*ent.Device]
	topology            *loader[*ent.Agent]
	left                *loader[int]
	holders             *bySelection[[]holder]
	byAgent, byDevice   *loader[resource.Slots]
	byOwner             *loader[resource.Slots]
	byProject, byDomain *loader[resource.Slots]
	accessGroups        *bySelection[*ent.ResourceGroup]
	accessUsers         *bySelection[*ent.User]
	accessProjects      *bySelection[*ent.Project]
	stats               *loader[report.Stats]
	prices              *loader[*price.Table] // one, with the zero key
	usage               *loader[[]stats.UsageEntry]
	uses                *loader[[]*ent.SessionUse]
	activeUsers         *loader[bool]
	environments        *loader[*ent.Session]
	clusters            *loader[clusterOf]
	requests            *loader[*msession.CreateSessionInput]
	templates           *loader[*msession.CreateSessionInput]
	revisionRequests    *loader[*msession.CreateSessionInput]
	loads               *loader[*deploymentload.Total]
	arrays              *loader[msession.ArrayCounts]
	mounted             *bySelection[[]*ent.Session]
	open                *loader[*ent.Vfolder]
	volumeGrants        *loader[[]*ent.VolumeGrant]
	versions            *loader[[]*ent.ImageVersion]
	copies              *dataloadgen.Loader[content, []*ent.ImageCopy]
	imageUses           *loader[*image.ImageUse]
	fits                *fitLoader
	users               *bySelection[*ent.User]
	places              *loader[*scheduler.Place]
	suggestions         *loader[[]*scheduler.Suggestion]
	seen                *loader[*ent.Session]
	queued              *bySelection[*ent.Session]
	domains             *bySelection[*ent.Domain]
	shares              *loader[[]*plan.Holder]
	weights             *bySelection[[]*ent.ShareWeight]
	sharesOf            *loader[[]*ent.VfolderShare]
	apps                *loader[[]*app.App]
	myShare             *loader[*ent.VfolderShare]
	folderNames, emails *loader[string]
	volumeOf            *bySelection[*ent.Volume] // of a quota scope
	origins             *bySelection[*ent.Vfolder]
	folderTasks         *loader[[]*ent.Task]
	proxyNames          *loader[string]
	scopeLimits         *loader[*int64]
	holderProjects      *bySelection[*ent.Project]
	chatAnswers         *loader[[]*ent.ChatAnswer]
	chatVotes           *loader[[]*ent.ChatVote]
	chatContents        *loader[[]byte] // of the attachments of a prompt
	chatDeployments     *bySelection[*ent.Deployment]
	chatEndpoints       *loader[*ent.ChatEndpoint]
}

type loadersKey struct{}

// fresh returns a context with empty loaders. They are created at the first use of one,
// because most lists use none.
func fresh(ctx context.Context, r *Resolver) context.Context {
	return context.WithValue(ctx, loadersKey{}, sync.OnceValue(r.newLoaders))
}

func loaders(ctx context.Context) *loaderSet { return ctx.Value(loadersKey{}).(func() *loaderSet)() }

func (r *Resolver) newLoaders() *loaderSet {
	return &loaderSet{
		accessGroups:     loadSelected(r, r.loadAccessGroups),
		accessUsers:      loadSelected(r, r.loadAccessUsers),
		accessProjects:   loadSelected(r, r.loadAccessProjects),
		devices:          load(r, r.loadDevices),
		topology:         load(r, r.loadTopology),
		left:             load(r, r.Agents.SessionsLeft),
		holders:          loadSelected(r, r.loadHolders),
		byAgent:          load(r, r.loadOccupied(allocation.FieldAgentID)),
		byDevice:         load(r, r.loadOccupied(allocation.FieldDeviceID)),
		byOwner:          load(r, r.loadOccupied(allocation.FieldOwnerID)),
		byProject:        load(r, r.loadOccupied(allocation.FieldProjectID)),
		byDomain:         load(r, r.loadOccupied(allocation.FieldDomainID)),
		stats:            load(r, r.Stats.Latest),
		activeUsers:      load(r, r.loadActiveUsers),
		environments:     load(r, r.loadEnvironments),
		clusters:         load(r, r.loadClusters),
		requests:         load(r, r.Sessions.Requests),
		templates:        load(r, r.Templates.Requests),
		revisionRequests: load(r, r.Deployments.Requests),
		loads:            load(r, r.loadLoads),
		arrays:           load(r, r.Sessions.ArrayCounts),
		uses:             load(r, r.loadUses),
		prices: load(r, func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]*price.Table, error) {
			t, err := price.Load(ctx, r.Client)
			return map[uuid.UUID]*price.Table{uuid.Nil: t}, err
		}),
		usage: load(r, func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID][]stats.UsageEntry, error) {
			return stats.BySession(ctx, r.Client, ids)
		}),
		mounted:        loadSelected(r, r.loadMounted),
		open:           load(r, r.Folders.Open),
		volumeGrants:   load(r, r.Folders.GrantsOf),
		versions:       load(r, r.Images.VersionsOf),
		copies:         load(r, r.copiesOf),
		imageUses:      load(r, r.Images.UseOf),
		fits:           r.loadFits(),
		users:          loadSelected(r, r.loadUsers),
		places:         load(r, r.Advisor.Places),
		suggestions:    load(r, r.Advisor.Suggest),
		seen:           load(r, r.loadSeen),
		queued:         loadSelected(r, r.loadQueued),
		domains:        loadSelected(r, r.loadDomains),
		shares:         load(r, r.Scheduler.ShareHolders),
		weights:        loadSelected(r, r.loadWeights),
		sharesOf:       load(r, r.loadSharesOf),
		apps:           load(r, r.Apps.List),
		myShare:        load(r, r.loadMyShare),
		folderNames:    load(r, r.loadFolderNames),
		emails:         load(r, r.loadEmails),
		volumeOf:       loadSelected(r, r.loadVolumeOf),
		origins:        loadSelected(r, r.loadOrigins),
		folderTasks:    load(r, r.loadFolderTasks),
		proxyNames:     load(r, r.loadProxyNames),
		scopeLimits:    load(r, r.Folders.EffectiveLimits),
		holderProjects: loadSelected(r, r.loadHolderProjects),

		chatAnswers: load(r, r.loadChatAnswers), chatVotes: load(r, r.loadChatVotes), chatContents: load(r, r.loadChatContents),
		chatDeployments: loadSelected(r, r.loadChatDeployments), chatEndpoints: load(r, r.loadChatEndpoints),
	}
}

// batchWait is the time for which a loader collects keys after the first one.
func (r *Resolver) batchWait() dataloadgen.Option {
	return dataloadgen.WithWait(cmp.Or(r.BatchWait, time.Millisecond))
}

// load creates a loader that returns zero values for missing keys.
func load[K comparable, T any](r *Resolver, fetch func(context.Context, []K) (map[K]T, error)) *dataloadgen.Loader[K, T] {
	return dataloadgen.NewLoader(func(ctx context.Context, keys []K) ([]T, []error) {
		values := make([]T, len(keys))
		m, err := fetch(ctx, keys)
		if err != nil {
			return values, []error{err}
		}
		for i, key := range keys {
			values[i] = m[key]
		}
		return values, nil
	}, r.batchWait())
}

func (r *Resolver) loadDevices(ctx context.Context, agents []uuid.UUID) (map[uuid.UUID][]*ent.Device, error) {
	all, err := r.Client.Device.Query().Where(device.AgentIDIn(agents...)).Order(device.ByDeviceID()).All(ctx)
	m := map[uuid.UUID][]*ent.Device{}
	for _, d := range all {
		m[d.AgentID] = append(m[d.AgentID], d)
	}
	return m, err
}

// loadHolders reads the sessions that use the devices. That a device is used is visible to
// everyone who can see the device; the session only to those who can see it.
func (r *Resolver) loadHolders(ctx context.Context, devices []uuid.UUID) (map[uuid.UUID][]holder, error) {
	v := viewer.From(ctx)
	held, err := r.Client.Allocation.Query().
		Where(allocation.DeviceIDIn(devices...), allocation.FreedAtIsNil()).
		Order(allocation.ByCreatedAt()).All(viewer.SystemContext(ctx))
	if err != nil || len(held) == 0 {
		return nil, err
	}
	var ids []uuid.UUID
	for _, a := range held {
		ids = append(ids, a.SessionID)
	}
	byID, err := r.sessionsBelow(ctx, "DeviceHolder", "session", ids)
	if err != nil {
		return nil, err
	}
	m := map[uuid.UUID][]holder{}
	for _, a := range held {
		m[a.DeviceID] = append(m[a.DeviceID], holder{a.Slot, a.Amount, a.CreatedAt, byID[a.SessionID], a.OwnerID == v.User})
	}
	return m, nil
}

// sessionsBelow reads the sessions that the viewer can see, with the fields that are selected
// below the present object. If none are selected, it reads nothing.
func (r *Resolver) sessionsBelow(ctx context.Context, object, name string, ids []uuid.UUID) (map[uuid.UUID]*ent.Session, error) {
	ctx, selected := below(ctx, object, name)
	if !selected {
		return nil, nil
	}
	q, err := r.Client.Session.Query().Where(session.IDIn(ids...)).CollectFields(ctx, "Session", "Node")
	if err != nil {
		return nil, err
	}
	seen, err := q.All(ctx)
	byID := map[uuid.UUID]*ent.Session{}
	for _, s := range seen {
		byID[s.ID] = s
	}
	return byID, err
}

// loadOccupied sums live allocations by one of their scopes. The viewer can see the object
// itself, so the sum over all its sessions hides nothing from them.
func (r *Resolver) loadOccupied(column string) func(context.Context, []uuid.UUID) (map[uuid.UUID]resource.Slots, error) {
	return func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]resource.Slots, error) {
		return stats.Occupied(viewer.SystemContext(ctx), r.Client, column, ids)
	}
}

func (r *Resolver) loadMounted(ctx context.Context, folders []uuid.UUID) (map[uuid.UUID][]*ent.Session, error) {
	var failed error
	mounts, err := r.Client.SessionMount.Query().
		Where(sessionmount.VfolderIDIn(folders...), sessionmount.HasSessionWith(session.TerminatedAtIsNil()),
			sessionmount.Or(sessionmount.RevokedAtIsNil(), sessionmount.Settled(false))).
		WithSession(func(q *ent.SessionQuery) { _, failed = q.CollectFields(ctx, "Session", "Node") }).All(ctx)
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	m := map[uuid.UUID][]*ent.Session{}
	for _, mt := range mounts {
		if mt.Edges.Session != nil {
			m[mt.VfolderID] = append(m[mt.VfolderID], mt.Edges.Session)
		}
	}
	return m, nil
}

// below returns a context with the named part of the present object as its field, so that a
// query can collect the selection there, and whether the part is selected.
func below(ctx context.Context, object, name string) (context.Context, bool) {
	fc := graphql.GetFieldContext(ctx)
	if fc == nil {
		return ctx, true
	}
	var part graphql.CollectedField
	for _, f := range graphql.CollectFields(graphql.GetOperationContext(ctx), fc.Field.Selections, []string{object}) {
		if f.Name == name { // under any alias
			part.Field = f.Field
			part.Selections = append(part.Selections, f.Selections...)
		}
	}
	return graphql.WithFieldContext(ctx, &graphql.FieldContext{Object: object, Field: part}), part.Field != nil
}

// bySelection has one loader for each place in a query, because the fields that are read for
// one place can differ from another.
type bySelection[T any] struct {
	resolver *Resolver
	fetch    func(context.Context, []uuid.UUID) (map[uuid.UUID]T, error)

	mu      sync.Mutex
	loaders map[*ast.Field]*loader[T]
}

func loadSelected[T any](r *Resolver, fetch func(context.Context, []uuid.UUID) (map[uuid.UUID]T, error)) *bySelection[T] {
	return &bySelection[T]{resolver: r, fetch: fetch, loaders: map[*ast.Field]*loader[T]{}}
}

// Load returns the value of one key for the place of ctx.
func (b *bySelection[T]) Load(ctx context.Context, key uuid.UUID) (T, error) {
	place := graphql.GetFieldContext(ctx).Field.Field
	b.mu.Lock()
	l, ok := b.loaders[place]
	if !ok {
		l = load(b.resolver, b.fetch)
		b.loaders[place] = l
	}
	b.mu.Unlock()
	return l.Load(ctx, key)
}
