package graph

import (
	"context"
	"maps"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/graph/model"
	"github.com/berthhq/berth/graph/server"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/image"
)

// tables maps the kind in an id to its table, for the kinds that the schema publishes as
// nodes.
var tables = map[id.Kind]string{
	id.Domain: "domains", id.Project: "projects", id.User: "users", id.Membership: "memberships",
	id.AccessToken: "access_tokens", id.Keypair: "keypairs", id.SSHKey: "ssh_keys", id.LoginSession: "login_sessions", id.LoginAttempt: "login_attempts", id.ResourcePolicy: "resource_policies",
	id.ResourceGroup: "resource_groups", id.Agent: "agents", id.Device: "devices", id.SlotType: "slot_types",
	id.Registry: "registries", id.ScanResult: "scan_results", id.Image: "images", id.Session: "sessions", id.Kernel: "kernels",
	id.Allocation: "allocations", id.SessionEvent: "session_events", id.Volume: "volumes",
	id.Task: "tasks", id.ImageBuild: "image_builds", id.QuotaScope: "quota_scopes", id.PolicyAttachment: "policy_attachments", id.Vfolder: "vfolders", id.VfolderShare: "vfolder_shares", id.ObjectStorage: "object_storages", id.SessionMount: "session_mounts", id.SessionGroup: "session_groups", id.SessionArray: "session_arrays", id.SessionTemplate: "session_templates", id.SessionDependency: "session_dependencies",
	id.Deployment: "deployments", id.DeploymentRevision: "deployment_revisions", id.DeploymentReplica: "deployment_replicas", id.DeploymentEvent: "deployment_events", id.DeploymentKey: "deployment_keys", id.PromptRecord: "prompt_records",
	id.Chat: "chats", id.ChatTurn: "chat_turns", id.ChatAnswer: "chat_answers", id.ChatEndpoint: "chat_endpoints",
	id.Notice: "notices", id.NoticeChannel: "notice_channels", id.NoticeDelivery: "notice_deliveries", id.Announcement: "announcements",
	id.Role: "roles", id.RoleGrant: "role_grants", id.GroupGrant: "group_grants", id.ResourcePreset: "resource_presets",
	id.Invitation: "invitations", id.IdentityProvider: "identity_providers",
	id.IdleChecker: "idle_checkers", id.IdleBinding: "idle_bindings",
	id.Price: "prices", id.Budget: "budgets",
	id.AuditEntry: "audit_entries", id.ShareWeight: "share_weights",
}

// Node returns the object with an id, or null if it does not exist or the viewer cannot see
// it.
func (r queryResolver) Node(ctx context.Context, nodeID uuid.UUID) (ent.Noder, error) {
	table, ok := tables[id.KindOf(nodeID)]
	if !ok {
		return nil, nil
	}
	if shut, err := r.shut(ctx, []uuid.UUID{nodeID}); err != nil || shut[nodeID] {
		return nil, err
	}
	n, err := r.Client.Noder(ctx, nodeID, ent.WithFixedNodeType(table))
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return n, err
}

// shut returns the ids of images that the viewer cannot use. Their rows are visible
// nevertheless, through the sessions that were started from them.
func (r queryResolver) shut(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]bool, error) {
	m := map[uuid.UUID]bool{}
	for _, one := range ids {
		if id.KindOf(one) == id.Image {
			m[one] = true
		}
	}
	if len(m) == 0 || viewer.From(ctx).SeesAll() {
		return nil, nil
	}
	open, err := r.Client.Image.Query().Where(entimage.IDIn(slices.Collect(maps.Keys(m))...), image.Open(ctx)).IDs(ctx)
	for _, one := range open {
		delete(m, one)
	}
	return m, err
}

const maxNodes = 100

// Nodes returns the objects with the ids, in the order of the request, with one query per
// table.
func (r queryResolver) Nodes(ctx context.Context, ids []uuid.UUID) ([]ent.Noder, error) {
	if len(ids) > maxNodes {
		return nil, problem.Invalid("ids", "has %d ids, which is too many for one request", len(ids)).WithLimit("100")
	}
	shut, err := r.shut(ctx, ids)
	if err != nil {
		return nil, err
	}
	nodes := make([]ent.Noder, len(ids))
	var known []uuid.UUID
	var places []int
	for i, one := range ids {
		if _, ok := tables[id.KindOf(one)]; ok && !shut[one] {
			known, places = append(known, one), append(places, i)
		}
	}
	if len(known) == 1 {
		n, err := r.Node(ctx, known[0])
		nodes[places[0]] = n
		return nodes, err
	}
	// ent adds an error for an id without a row; here such an id is null.
	quiet := graphql.WithFreshResponseContext(ctx)
	found, err := r.Client.Noders(quiet, known, ent.WithNodeType(func(_ context.Context, one uuid.UUID) (string, error) {
		return tables[id.KindOf(one)], nil
	}))
	if err != nil {
		return nil, err
	}
	for _, e := range graphql.GetErrors(quiet) {
		if e.Extensions["code"] == problem.CodeInternal {
			return nil, e
		}
	}
	for i, n := range found {
		nodes[places[i]] = n
	}
	return nodes, nil
}

// Server describes this manager.
func (r queryResolver) Server(context.Context) (*model.Server, error) {
	return &model.Server{Currency: r.Resolver.Budgets.Currency, Version: r.Version, MaxPageSize: server.MaxPage, SSH: r.Apps.SSH()}, nil
}
