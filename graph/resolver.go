// Package graph answers GraphQL. Reads go directly to ent, whose rules filter rows by the
// viewer; each mutation is one call of a manager's service. A noun has two files:
// session.graphql is its schema, session.go has its resolvers.
package graph

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/graph/exec"
	"github.com/berthhq/berth/graph/server"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/manager/agents"
	"github.com/berthhq/berth/manager/app"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/budget"
	"github.com/berthhq/berth/manager/build"
	"github.com/berthhq/berth/manager/chat"
	"github.com/berthhq/berth/manager/commit"
	"github.com/berthhq/berth/manager/deployment"
	"github.com/berthhq/berth/manager/deployment/key"
	"github.com/berthhq/berth/manager/diagnosis"
	"github.com/berthhq/berth/manager/group"
	"github.com/berthhq/berth/manager/identity"
	"github.com/berthhq/berth/manager/idle"
	"github.com/berthhq/berth/manager/image"
	"github.com/berthhq/berth/manager/leader"
	"github.com/berthhq/berth/manager/notice"
	"github.com/berthhq/berth/manager/notice/announcement"
	"github.com/berthhq/berth/manager/objectstorage"
	"github.com/berthhq/berth/manager/occupancy"
	"github.com/berthhq/berth/manager/oidc"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/prepull"
	"github.com/berthhq/berth/manager/preset"
	"github.com/berthhq/berth/manager/price"
	"github.com/berthhq/berth/manager/recovery"
	"github.com/berthhq/berth/manager/role"
	"github.com/berthhq/berth/manager/scheduler"
	"github.com/berthhq/berth/manager/series"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/signup"
	"github.com/berthhq/berth/manager/stats"
	"github.com/berthhq/berth/manager/task"
	"github.com/berthhq/berth/manager/template"
	"github.com/berthhq/berth/manager/vfolder"
)

// Resolver holds the services that the resolvers call.
type Resolver struct {
	Client         *ent.Client
	Bus            *event.Bus
	Agents         *agents.Service
	Occupancy      *occupancy.Service
	Audit          *audit.Service
	Auth           *auth.Service
	Identity       *identity.Service
	Tasks          *task.Service
	Images         *image.Service
	Commits        *commit.Service
	Prepulls       *prepull.Service
	Builds         *build.Service
	Providers      *oidc.Service
	SignUps        *signup.Service
	Policies       *policy.Service
	Prices         *price.Service
	Budgets        *budget.Service
	Groups         *group.Service
	Roles          *role.Service
	Sessions       *session.Service
	Stats          *stats.Service
	Series         *series.Service
	Folders        *vfolder.Service
	ObjectStores   *objectstorage.Service
	Presets        *preset.Service
	Idle           *idle.Service
	Apps           *app.Service
	Templates      *template.Service
	Deployments    *deployment.Service
	DeploymentKeys *key.Service
	Chats          *chat.Service
	Notices        *notice.Service
	Announcements  *announcement.Service
	Leadership     *leader.Service
	Recovery       *recovery.Service
	Diagnosis      *diagnosis.Service
	Scheduler      *scheduler.Scheduler
	Advisor        *scheduler.Advisor
	Version        string
	QueryTimeout   time.Duration // 0 = server.DefaultQueryTimeout
	BatchWait      time.Duration // 0 = 1 ms; see manager.Config
	Meter          *server.Meter // nil: no metrics
	Logger         *slog.Logger
}

// Server answers GraphQL requests. Requests have a viewer in their context. If the request of a
// WebSocket has none, init gets the viewer from the payload of the first message.
func (r *Resolver) Server(init transport.WebsocketInitFunc) http.Handler {
	return server.New(server.Config{
		Schema: exec.NewExecutableSchema(exec.Config{Resolvers: r}), Init: init, Tables: tables,
		Fresh: func(ctx context.Context) context.Context { return fresh(ctx, r) },
		Audit: r.Audit, QueryTimeout: r.QueryTimeout, Meter: r.Meter, Logger: r.Logger,
	})
}

type (
	accessTokenResolver          struct{ *Resolver }
	queryResolver                struct{ *Resolver }
	mutationResolver             struct{ *Resolver }
	subscriptionResolver         struct{ *Resolver }
	agentResolver                struct{ *Resolver }
	allocationResolver           struct{ *Resolver }
	auditEntryResolver           struct{ *Resolver }
	clusterResolver              struct{ *Resolver }
	deviceResolver               struct{ *Resolver }
	deviceLinkResolver           struct{ *Resolver }
	domainResolver               struct{ *Resolver }
	fileResolver                 struct{ *Resolver }
	kernelResolver               struct{ *Resolver }
	loginSessionResolver         struct{ *Resolver }
	projectResolver              struct{ *Resolver }
	sessionResolver              struct{ *Resolver }
	sessionArrayResolver         struct{ *Resolver }
	sessionTemplateResolver      struct{ *Resolver }
	sessionWhereInputResolver    struct{ *Resolver }
	sessionArrayWhereResolver    struct{ *Resolver }
	userResolver                 struct{ *Resolver }
	vfolderResolver              struct{ *Resolver }
	vfolderWhereInputResolver    struct{ *Resolver }
	userWhereInputResolver       struct{ *Resolver }
	membershipWhereInputResolver struct{ *Resolver }
	idleBindingResolver          struct{ *Resolver }
	idleCheckerResolver          struct{ *Resolver }
	volumeResolver               struct{ *Resolver }
	quotaScopeResolver           struct{ *Resolver }
	volumeGrantResolver          struct{ *Resolver }
	vfolderShareResolver         struct{ *Resolver }
	resourcePolicyResolver       struct{ *Resolver }
	resourcePresetResolver       struct{ *Resolver }
	imageResolver                struct{ *Resolver }
	registryResolver             struct{ *Resolver }
	resourceGroupResolver        struct{ *Resolver }
	roleResolver                 struct{ *Resolver }
	roleGrantResolver            struct{ *Resolver }
	resourceGroupAccessResolver  struct{ *Resolver }
	shareHolderResolver          struct{ *Resolver }
	viewerResolver               struct{ *Resolver }
	pendingReportResolver        struct{ *Resolver }
	queueEntryResolver           struct{ *Resolver }
	objectStorageResolver        struct{ *Resolver }
	objectTransferResolver       struct{ *Resolver }
	taskResolver                 struct{ *Resolver }
	dryRunResolver               struct{ *Resolver }
	keypairResolver              struct{ *Resolver }
	sshKeyResolver               struct{ *Resolver }
)

// Resolvers of objects that have fields beyond their entity's.
func (r *Resolver) Query() exec.QueryResolver                   { return queryResolver{r} }
func (r *Resolver) Mutation() exec.MutationResolver             { return mutationResolver{r} }
func (r *Resolver) Subscription() exec.SubscriptionResolver     { return subscriptionResolver{r} }
func (r *Resolver) AccessToken() exec.AccessTokenResolver       { return accessTokenResolver{r} }
func (r *Resolver) Agent() exec.AgentResolver                   { return agentResolver{r} }
func (r *Resolver) Allocation() exec.AllocationResolver         { return allocationResolver{r} }
func (r *Resolver) AuditEntry() exec.AuditEntryResolver         { return auditEntryResolver{r} }
func (r *Resolver) Budget() exec.BudgetResolver                 { return budgetResolver{r} }
func (r *Resolver) Price() exec.PriceResolver                   { return priceResolver{r} }
func (r *Resolver) Cluster() exec.ClusterResolver               { return clusterResolver{r} }
func (r *Resolver) Device() exec.DeviceResolver                 { return deviceResolver{r} }
func (r *Resolver) DeviceLink() exec.DeviceLinkResolver         { return deviceLinkResolver{r} }
func (r *Resolver) Domain() exec.DomainResolver                 { return domainResolver{r} }
func (r *Resolver) File() exec.FileResolver                     { return fileResolver{r} }
func (r *Resolver) Keypair() exec.KeypairResolver               { return keypairResolver{r} }
func (r *Resolver) SSHKey() exec.SSHKeyResolver                 { return sshKeyResolver{r} }
func (r *Resolver) Kernel() exec.KernelResolver                 { return kernelResolver{r} }
func (r *Resolver) LoginSession() exec.LoginSessionResolver     { return loginSessionResolver{r} }
func (r *Resolver) Project() exec.ProjectResolver               { return projectResolver{r} }
func (r *Resolver) Session() exec.SessionResolver               { return sessionResolver{r} }
func (r *Resolver) Volume() exec.VolumeResolver                 { return volumeResolver{r} }
func (r *Resolver) ObjectStorage() exec.ObjectStorageResolver   { return objectStorageResolver{r} }
func (r *Resolver) ObjectTransfer() exec.ObjectTransferResolver { return objectTransferResolver{r} }
func (r *Resolver) Task() exec.TaskResolver                     { return taskResolver{r} }
func (r *Resolver) QuotaScope() exec.QuotaScopeResolver         { return quotaScopeResolver{r} }
func (r *Resolver) VfolderShare() exec.VfolderShareResolver     { return vfolderShareResolver{r} }
func (r *Resolver) VolumeGrant() exec.VolumeGrantResolver       { return volumeGrantResolver{r} }
func (r *Resolver) ResourcePolicy() exec.ResourcePolicyResolver { return resourcePolicyResolver{r} }
func (r *Resolver) ResourcePreset() exec.ResourcePresetResolver { return resourcePresetResolver{r} }
func (r *Resolver) User() exec.UserResolver                     { return userResolver{r} }
func (r *Resolver) Vfolder() exec.VfolderResolver               { return vfolderResolver{r} }
func (r *Resolver) UserWhereInput() exec.UserWhereInputResolver { return userWhereInputResolver{r} }
func (r *Resolver) MembershipWhereInput() exec.MembershipWhereInputResolver {
	return membershipWhereInputResolver{r}
}
func (r *Resolver) VfolderWhereInput() exec.VfolderWhereInputResolver {
	return vfolderWhereInputResolver{r}
}
func (r *Resolver) SessionArray() exec.SessionArrayResolver   { return sessionArrayResolver{r} }
func (r *Resolver) Deployment() exec.DeploymentResolver       { return deploymentResolver{r} }
func (r *Resolver) DeploymentKey() exec.DeploymentKeyResolver { return deploymentKeyResolver{r} }
func (r *Resolver) DeploymentRevision() exec.DeploymentRevisionResolver {
	return deploymentRevisionResolver{r}
}
func (r *Resolver) SessionTemplate() exec.SessionTemplateResolver {
	return sessionTemplateResolver{r}
}
func (r *Resolver) SessionWhereInput() exec.SessionWhereInputResolver {
	return sessionWhereInputResolver{r}
}
func (r *Resolver) SessionArrayWhereInput() exec.SessionArrayWhereInputResolver {
	return sessionArrayWhereResolver{r}
}
func (r *Resolver) IdleBinding() exec.IdleBindingResolver     { return idleBindingResolver{r} }
func (r *Resolver) IdleChecker() exec.IdleCheckerResolver     { return idleCheckerResolver{r} }
func (r *Resolver) Viewer() exec.ViewerResolver               { return viewerResolver{r} }
func (r *Resolver) Image() exec.ImageResolver                 { return imageResolver{r} }
func (r *Resolver) Registry() exec.RegistryResolver           { return registryResolver{r} }
func (r *Resolver) ResourceGroup() exec.ResourceGroupResolver { return resourceGroupResolver{r} }
func (r *Resolver) ShareHolder() exec.ShareHolderResolver     { return shareHolderResolver{r} }
func (r *Resolver) Role() exec.RoleResolver                   { return roleResolver{r} }
func (r *Resolver) RoleGrant() exec.RoleGrantResolver         { return roleGrantResolver{r} }
func (r *Resolver) PendingReport() exec.PendingReportResolver { return pendingReportResolver{r} }
func (r *Resolver) QueueEntry() exec.QueueEntryResolver       { return queueEntryResolver{r} }
func (r *Resolver) DryRun() exec.DryRunResolver               { return dryRunResolver{r} }
func (r *Resolver) ResourceGroupAccess() exec.ResourceGroupAccessResolver {
	return resourceGroupAccessResolver{r}
}
func (r *Resolver) Chat() exec.ChatResolver                     { return chatResolver{r} }
func (r *Resolver) ChatTurn() exec.ChatTurnResolver             { return chatTurnResolver{r} }
func (r *Resolver) ChatAnswer() exec.ChatAnswerResolver         { return chatAnswerResolver{r} }
func (r *Resolver) ChatReplay() exec.ChatReplayResolver         { return chatReplayResolver{r} }
func (r *Resolver) ChatModel() exec.ChatModelResolver           { return chatModelResolver{r} }
func (r *Resolver) ChatParameters() exec.ChatParametersResolver { return chatParametersResolver{r} }
func (r *Resolver) ChatAttachment() exec.ChatAttachmentResolver { return chatAttachmentResolver{r} }
func (r *Resolver) ChatEndpoint() exec.ChatEndpointResolver     { return chatEndpointResolver{r} }
