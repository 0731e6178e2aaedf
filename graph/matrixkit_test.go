package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/rolegrant"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/managertest"
)

// The scopes of the matrix: the relation between the object and the caller.
var matrixScopes = []string{"own", "project", "domain", "foreign"}

// column is a role of the matrix.
type column struct {
	name    string
	user    *ent.User
	project *ent.Project // project of the user
	as      *managertest.Client
}

// table has the objects of the access matrix, and its results.
type table struct {
	*managertest.World
	t         *testing.T
	m         *managertest.Manager
	columns   []*column
	colleague *ent.User    // member of A's project
	other     *ent.Project // second project of domain A, with the member Loner
	kits      map[uuid.UUID]kit
	n         int // makes names unique
	report    *accessReport
}

// kit has the ID of one row of every type, all of one owner in their project. Further rows of a
// type have a suffix after a plus, such as Session+restart.
type kit map[string]uuid.UUID

// newTable creates the users of the matrix, and one kit for each owner.
func newTable(t *testing.T) *table {
	w := managertest.New(t)
	x := &table{World: w, t: t, m: w.Quiet(t), kits: map[uuid.UUID]kit{}, report: &accessReport{}}
	ctx := w.System(t)
	w.Client.Domain.Update().SetRegistriesRestricted(true).ExecX(ctx)
	x.other = w.Client.Project.Create().SetName("other").SetDomain(w.A.Domain).SaveX(ctx)
	solo := w.Client.Project.Create().SetName("solo").SetDomain(w.A.Domain).SaveX(ctx)
	x.colleague = x.person("colleague", w.A.Project)
	granted, object := x.person("granted", solo), x.person("object", w.A.Project)
	for _, u := range []*ent.User{w.A.Admin, w.Superadmin, w.Monitor} { // every role needs a project
		w.Client.Membership.Create().SetUser(u).SetProject(w.A.Project).ExecX(ctx)
	}
	w.Client.Membership.Create().SetUser(w.A.Loner).SetProject(x.other).ExecX(ctx)
	for _, c := range []*column{
		{name: "user", user: w.A.Member}, {name: "lead", user: w.A.Lead}, {name: "admin", user: w.A.Admin},
		{name: "superadmin", user: w.Superadmin}, {name: "monitor", user: w.Monitor},
		{name: "granted", user: granted, project: solo}, // a custom role with everything on the project
		{name: "object", user: object},                  // a custom role with everything on the foreign objects
	} {
		if c.project == nil {
			c.project = w.A.Project
		}
		x.columns = append(x.columns, c)
		x.report.columns = append(x.report.columns, c.name)
		x.kits[c.user.ID] = x.kit(c.user, c.project, w.A.Domain)
	}
	x.kits[x.colleague.ID] = x.kit(x.colleague, w.A.Project, w.A.Domain)
	x.kits[w.A.Loner.ID] = x.kit(w.A.Loner, x.other, w.A.Domain)
	x.kits[w.B.Member.ID] = x.kit(w.B.Member, w.B.Project, w.B.Domain)
	x.grant(granted, access.OnProject, w.A.Project.ID)
	foreign := x.kits[w.B.Member.ID]
	for _, kind := range []string{"Session", "Vfolder", "ResourceGroup"} {
		x.grant(object, access.OnObject, foreign[kind])
	}
	for _, c := range x.columns {
		c.as = x.m.As(t, c.user)
		w.Client.RoleGrant.DeleteOneID(x.kits[c.user.ID]["RoleGrant"]).ExecX(ctx)
	}
	return x
}

func (x *table) person(name string, p *ent.Project) *ent.User {
	ctx := x.System(x.t)
	u := x.Client.User.Create().SetEmail(name + "@example.org").SetUsername(name).
		SetPasswordHash(x.A.Member.PasswordHash).SetDomainID(p.DomainID).SaveX(ctx)
	x.Client.Membership.Create().SetUser(u).SetProject(p).ExecX(ctx)
	return u
}

// grant gives a user a role with every permission on a scope.
func (x *table) grant(u *ent.User, on access.Scope, id uuid.UUID) *ent.RoleGrant {
	x.n++
	all := access.Permissions{}
	for _, e := range access.Entities() {
		all[e] = access.OperationsOn(e)
	}
	ctx := x.System(x.t)
	r := x.Client.Role.Create().SetName(fmt.Sprint("everything", x.n)).SetPermissions(all).SaveX(ctx)
	return x.Client.RoleGrant.Create().SetRole(r).SetUser(u).SetScope(rolegrant.Scope(on)).SetScopeID(id).SaveX(ctx)
}

// holding gives each user of the columns the role of their kit while do runs, because a user with a
// role passes the audience checks of the schema.
func (x *table) holding(what string, do func()) {
	ctx := x.System(x.t)
	for _, c := range x.columns {
		k := x.kits[c.user.ID]
		if id := k["RoleGrant"]; strings.Contains(strings.ToLower(what), "role") {
			x.Client.RoleGrant.Create().SetID(id).SetRoleID(k["Role"]).SetUser(c.user).SetScope("domain").SetScopeID(x.A.ID).ExecX(ctx)
			defer x.Client.RoleGrant.DeleteOneID(id).ExecX(ctx)
		}
	}
	do()
}

// at returns the owner of the objects in a scope, as seen from a caller.
func (x *table) at(c *column, scope string) (owner *ent.User, p *ent.Project, d *ent.Domain) {
	switch scope {
	case "project":
		return x.colleague, x.A.Project, x.A.Domain
	case "domain":
		return x.A.Loner, x.other, x.A.Domain
	case "foreign":
		return x.B.Member, x.B.Project, x.B.Domain
	}
	return c.user, c.project, x.A.Domain
}

// has reports whether an ID belongs to a row of this type in the kit.
func (k kit) has(kind, id string) bool {
	for name, one := range k {
		if base, _, _ := strings.Cut(name, "+"); base == kind && one.String() == id {
			return true
		}
	}
	return false
}

// ids lists the IDs of all rows of a type.
func (x *table) ids(kind string) []uuid.UUID {
	var list []uuid.UUID
	for _, k := range x.kits {
		for name, id := range k {
			if base, _, _ := strings.Cut(name, "+"); base == kind && !slices.Contains(list, id) {
				list = append(list, id)
			}
		}
	}
	return list
}

// kit creates a row of every type in the schema.
func (x *table) kit(u *ent.User, p *ent.Project, d *ent.Domain) kit {
	c, ctx := x.Client, x.System(x.t)
	name := "kit-" + u.Username
	k := kit{"User": u.ID, "Project": p.ID, "Domain": d.ID}
	k["Membership"] = c.Membership.Query().Where(membership.UserID(u.ID), membership.ProjectID(p.ID)).OnlyIDX(ctx)
	pol := c.ResourcePolicy.Create().SetName(name).SetTotalSlots(resource.Slots{"cpu": 1000}).SaveX(ctx)
	k["ResourcePolicy"] = pol.ID
	k["PolicyAttachment"] = c.PolicyAttachment.Create().SetPolicy(pol).SetUser(u).SetWithinProject(p).SaveX(ctx).ID
	k["PolicyAttachment+domain"] = c.PolicyAttachment.Create().SetPolicy(pol).SetDomain(d).SaveX(ctx).ID
	k["PolicyAttachment+project"] = c.PolicyAttachment.Create().SetPolicy(pol).SetProject(p).SaveX(ctx).ID
	k["Price"] = c.Price.Create().SetKind("input_tokens").SetMicros(1).SetValidFrom(time.Now()).SetCreator(u).SaveX(ctx).ID
	k["Budget"] = c.Budget.Create().SetPeriod("month").SetStartsAt(time.Now()).SetSoftMicros(1_000_000_000_000).SetUser(u).SaveX(ctx).ID
	k["Budget+project"] = c.Budget.Create().SetPeriod("month").SetStartsAt(time.Now()).SetSoftMicros(1_000_000_000_000).SetProject(p).SaveX(ctx).ID
	k["Budget+domain"] = c.Budget.Create().SetPeriod("month").SetStartsAt(time.Now()).SetSoftMicros(1_000_000_000_000).SetDomain(d).SaveX(ctx).ID
	token := c.AccessToken.Create().SetName(name).SetPrefix("x").SetHash(hash()).SetProject(p).SetUser(u).SaveX(ctx)
	k["AccessToken"] = token.ID
	k["Keypair"] = c.Keypair.Create().SetName(name).SetAccessKey(name).SetSecretSealed([]byte("-")).SetUser(u).SaveX(ctx).ID
	k["PolicyAttachment+keypair"] = c.PolicyAttachment.Create().SetPolicy(pol).SetKeypairID(k["Keypair"]).SaveX(ctx).ID
	k["SSHKey"] = c.SSHKey.Create().SetName(name).SetPublicKey(name).SetFingerprint(name).SetUser(u).SaveX(ctx).ID
	k["LoginSession"] = c.LoginSession.Create().SetHash(hash()).SetExpiresAt(time.Now().Add(time.Hour)).SetUser(u).SaveX(ctx).ID
	k["LoginAttempt"] = c.LoginAttempt.Create().SetUserID(u.ID).SetDomainID(d.ID).SetEmail(u.Email).SetResult("success").SaveX(ctx).ID
	k["Role"] = c.Role.Create().SetName(name).SetPermissions(access.Permissions{access.System: {access.Read}}).SaveX(ctx).ID
	k["RoleGrant"] = c.RoleGrant.Create().SetRoleID(k["Role"]).SetUser(u).SetScope("domain").SetScopeID(d.ID).SaveX(ctx).ID
	k["SlotType"] = c.SlotType.Create().SetName(name).SetKind("count").SaveX(ctx).ID
	k["Task"] = c.Task.Create().SetKind("test").SetInput([]byte("{}")).SetDomainID(d.ID).SetCreatorID(u.ID).SaveX(ctx).ID
	k["AuditEntry"] = c.AuditEntry.Create().SetActorID(u.ID).SetActorEmail(u.Email).SetActedAsID(u.ID).SetAction("test").
		SetDomainID(d.ID).SetProjectID(p.ID).SetResult("OK").SaveX(ctx).ID
	k["Invitation"] = c.Invitation.Create().SetEmail(name + "@example.org").SetHash(hash()).SetDomain(d).SetProject(p).
		SetExpiresAt(time.Now().Add(time.Hour)).SaveX(ctx).ID
	k["IdentityProvider"] = c.IdentityProvider.Create().SetName(name).SetIssuer("https://issuer.example.org").SetClientID("c").
		SetClientSecretSealed([]byte("-")).SetDomain(d).SetProject(p).SaveX(ctx).ID
	x.machines(k, name, u, p, d)
	x.work(k, name, u, p, d)
	return k
}

// machines creates a resource group that is granted to the user, with an agent, and an image of a
// registry that is open to their domain.
func (x *table) machines(k kit, name string, u *ent.User, p *ent.Project, d *ent.Domain) {
	c, ctx := x.Client, x.System(x.t)
	g := c.ResourceGroup.Create().SetName(name).SetPublic(false).SaveX(ctx)
	k["ResourceGroup"] = g.ID
	k["GroupGrant"] = c.GroupGrant.Create().SetResourceGroup(g).SetUser(u).SaveX(ctx).ID
	k["GroupGrant+project"] = c.GroupGrant.Create().SetResourceGroup(c.ResourceGroup.Create().SetName(name + "-project").SetPublic(false).SaveX(ctx)).SetProject(p).SaveX(ctx).ID
	k["GroupGrant+domain"] = c.GroupGrant.Create().SetResourceGroup(c.ResourceGroup.Create().SetName(name + "-domain").SetPublic(false).SaveX(ctx)).SetDomain(d).SaveX(ctx).ID
	k["GroupGrant+keypair"] = c.GroupGrant.Create().SetResourceGroup(g).SetKeypairID(k["Keypair"]).SaveX(ctx).ID
	k["ShareWeight"] = c.ShareWeight.Create().SetWeight(2).SetUser(u).SetWithinProject(p).SaveX(ctx).ID
	k["ShareWeight+group"] = c.ShareWeight.Create().SetWeight(2).SetUser(u).SetResourceGroup(g).SaveX(ctx).ID
	k["ShareWeight+project"] = c.ShareWeight.Create().SetWeight(2).SetProject(p).SaveX(ctx).ID
	k["ShareWeight+domain"] = c.ShareWeight.Create().SetWeight(2).SetDomain(d).SaveX(ctx).ID
	k["Price+group"] = c.Price.Create().SetKind("slot_hour").SetSlot("cpu").SetMicros(1).SetValidFrom(time.Now()).SetResourceGroup(g).SaveX(ctx).ID
	k["IdleChecker"] = c.IdleChecker.Create().SetName(name).SetKind("memory").SetTimeout(3600).SetThresholds(map[string]float64{"cuda": 1}).SaveX(ctx).ID
	k["IdleBinding"] = c.IdleBinding.Create().SetCheckerID(k["IdleChecker"]).SetProject(p).SaveX(ctx).ID
	k["IdleBinding+group"] = c.IdleBinding.Create().SetCheckerID(k["IdleChecker"]).SetResourceGroup(g).SaveX(ctx).ID
	k["IdleBinding+domain"] = c.IdleBinding.Create().SetCheckerID(k["IdleChecker"]).SetDomain(d).SaveX(ctx).ID
	k["PolicyAttachment+group"] = c.PolicyAttachment.Create().SetPolicyID(k["ResourcePolicy"]).SetUser(u).SetResourceGroup(g).SaveX(ctx).ID
	k["ResourcePreset"] = c.ResourcePreset.Create().SetName(name).SetSlots(resource.Slots{"cpu": 1000}).SetResourceGroup(g).SaveX(ctx).ID
	k["ResourcePreset+all"] = c.ResourcePreset.Create().SetName(name).SetSlots(resource.Slots{"cpu": 1000}).SaveX(ctx).ID
	a := c.Agent.Create().SetName(name).SetResourceGroup(g).
		SetConditions([]report.Condition{{Type: "disk_pressure"}}).SetPlugins([]report.Plugin{{Name: "p"}}).SetProbes([]report.Probe{{Name: "p"}}).
		SetLinks([]report.Link{{A: "cpu", B: "part"}}).SetCounters(report.Counters{"cpu": {"cores": 8}}).SaveX(ctx)
	k["Agent"] = a.ID
	draws := []report.CounterUse{{Set: "cpu", Amounts: map[string]int64{"cores": 1}}}
	k["Device"] = c.Device.Create().SetAgent(a).SetDeviceID("cpu").SetPlugin("cuda").SetCapacity(resource.Slots{"cpu": 1 << 40}).SetConsumes(draws).SaveX(ctx).ID
	k["Device+part"] = c.Device.Create().SetAgent(a).SetDeviceID("part").SetParent("cpu").SaveX(ctx).ID
	reg := c.Registry.Create().SetName(name).SetHost(name + ".example.org").AddDomainIDs(d.ID).SaveX(ctx)
	k["Registry"] = reg.ID
	k["Registry+project"] = c.Registry.Create().SetName(name + "-project").SetHost(name + "-project.example.org").AddProjects(p).SaveX(ctx).ID
	k["ScanResult"] = c.ScanResult.Create().SetRegistry(reg).SetName("i:1").SetOutcome("new").SetScanID(uuid.New()).SaveX(ctx).ID
	k["Image"] = c.Image.Create().SetReference(name + ".example.org/i:1").SetName("i:1").SetArchitecture("x86_64").
		SetDigest("-").SetRegistry(reg).SaveX(ctx).ID
	c.ImageCopy.Create().SetAgent(a).SetReference(name + ".example.org/i:1").SetDigest("-").SetState("present").ExecX(ctx)
	c.Image.UpdateOneID(k["Image"]).AddAutoPullIDs(a.ResourceGroupID).ExecX(ctx)
	for _, digest := range []string{"-", "+"} {
		c.ImageVersion.Create().SetImageID(k["Image"]).SetDigest(digest).SetCreator(u).SetLayers([]report.Layer{{Digest: digest}}).
			SetLabels(map[string]string{"v": digest}).SetEnvironment([]string{"V=" + digest}).ExecX(ctx)
	}
	k["Image+own"] = c.Image.Create().SetReference(name + ".example.org/users/u/i:1").SetName("users/u/i:1").SetArchitecture("x86_64").
		SetDigest("-").SetRegistry(reg).SetVisibility("private").SetDomainID(d.ID).SetOwner(u).SaveX(ctx).ID
	k["Image+project"] = c.Image.Create().SetReference(name + ".example.org/users/u/p:1").SetName("users/u/p:1").SetArchitecture("x86_64").
		SetDigest("-").SetRegistry(reg).SetVisibility("project").SetDomainID(d.ID).SetOwner(u).SetProject(p).SaveX(ctx).ID
	proxy := c.StorageProxy.Create().SetName(name).SaveX(ctx)
	k["Volume"] = c.Volume.Create().SetName(name).SetProxy(proxy).SaveX(ctx).ID
	k["ObjectStorage"] = c.ObjectStorage.Create().SetName(name).SetEndpoint("http://127.0.0.1:1").SetBucket("bucket").SetOwner(u).SaveX(ctx).ID
	k["ObjectStorage+domain"] = c.ObjectStorage.Create().SetName(name).SetEndpoint("http://127.0.0.1:1").SetBucket("bucket").SetDomain(d).SaveX(ctx).ID
	k["VolumeGrant"] = c.VolumeGrant.Create().SetVolumeID(k["Volume"]).SetUser(u).SetPermissions(access.VolumePermissions()).SaveX(ctx).ID
	for _, g := range []*ent.VolumeGrantCreate{c.VolumeGrant.Create().SetProject(p), c.VolumeGrant.Create().SetDomain(d)} {
		g.SetVolumeID(k["Volume"]).SetPermissions(access.VolumePermissions()).ExecX(ctx)
	}
}

// work creates a running session of the user with a folder of theirs.
func (x *table) work(k kit, name string, u *ent.User, p *ent.Project, d *ent.Domain) {
	c, ctx := x.Client, x.System(x.t)
	k["QuotaScope"] = c.QuotaScope.Create().SetKind(quotascope.KindUser).SetHolderID(u.ID).SetDomainID(d.ID).SetVolumeID(k["Volume"]).SaveX(ctx).ID
	f := c.Vfolder.Create().SetName(name).SetPath("p").SetStatus("ready").SetDomainID(d.ID).SetOwner(u).SetCreator(u).SetQuotaScopeID(k["QuotaScope"]).SaveX(ctx)
	k["Vfolder"] = f.ID
	k["QuotaScope+project"] = c.QuotaScope.Create().SetKind(quotascope.KindProject).SetHolderID(p.ID).SetDomainID(d.ID).SetVolumeID(k["Volume"]).SaveX(ctx).ID
	k["Vfolder+project"] = c.Vfolder.Create().SetName(name + "-shared").SetPath("q").SetStatus("ready").SetDomainID(d.ID).SetProject(p).SetCreator(u).
		SetQuotaScopeID(k["QuotaScope+project"]).SetClonedFromID(f.ID).SaveX(ctx).ID
	k["Task+folder"] = c.Task.Create().SetKind("vfolder.test").SetInput([]byte("{}")).SetDomainID(d.ID).SetCreatorID(u.ID).SetSubjectID(f.ID).SaveX(ctx).ID
	k["VfolderShare"] = c.VfolderShare.Create().SetVfolder(f).SetDomainID(d.ID).SetEmail(name + "-friend@example.org").SetPermission(access.ReadOnly).SetInviter(u).SaveX(ctx).ID
	k["VfolderShare+own"] = c.VfolderShare.Create().SetVfolderID(k["Vfolder+project"]).SetDomainID(d.ID).SetEmail(u.Email).SetPermission(access.ReadWrite).
		SetStatus("accepted").SetUser(u).SaveX(ctx).ID
	k["SessionGroup"] = c.SessionGroup.Create().SetName(name).SetPlacement("spread").SetDomainID(d.ID).SetProject(p).SetOwner(u).SaveX(ctx).ID
	k["SessionArray"] = c.SessionArray.Create().SetName(name).SetIndexes("1").SetSize(1).SetDomainID(d.ID).SetProject(p).SetOwner(u).SaveX(ctx).ID
	k["SessionTemplate"] = c.SessionTemplate.Create().SetName(name).SetRequest([]byte(`{"Image":"i:1","Mounts":[{"Vfolder":"data"}],"Apps":[{"Name":"a","Port":1}]}`)).SetDomainID(d.ID).SetOwner(u).SaveX(ctx).ID
	k["SessionTemplate+project"] = c.SessionTemplate.Create().SetName(name).SetRequest([]byte(`{"Image":"i:1"}`)).SetDomainID(d.ID).SetProject(p).SaveX(ctx).ID
	s := c.Session.Create().SetName(name).SetSessionGroupID(k["SessionGroup"]).SetArrayID(k["SessionArray"]).SetArrayIndex(1).SetType("batch").SetStatus(lifecycle.Running).SetIdle(&report.Idle{Checker: name, Kind: "network", EndsAt: time.Now(), WarnedAt: time.Now()}).SetSlots(resource.Slots{"cpu": 1}).
		SetDomainID(d.ID).SetProject(p).SetOwner(u).SetResourceGroupID(k["ResourceGroup"]).SetImageID(k["Image"]).
		SetPending(&report.Pending{DecidedAt: time.Now(), Dropped: []report.DroppedAgents{{Check: "cpu"}}, Limits: []report.LimitReached{{What: "cpu"}}, Nearest: &report.NearestFit{}, Order: &report.Ordering{Levels: []report.Standing{{}}}}).
		SaveX(ctx)
	k["Session"] = s.ID
	k["ImageBuild"] = c.ImageBuild.Create().SetDomainID(d.ID).SetProject(p).SetOwner(u).SetRepository("users/u/b").SetTag("1").SetName("b:1").
		SetKind("recipe").SetDockerfile("FROM i").SetDigest("-").SetBase("i").SetSessionID(k["Session"]).SetImageID(k["Image+own"]).SaveX(ctx).ID
	k["Deployment"] = c.Deployment.Create().SetName(name).SetDomainID(d.ID).SetProject(p).SetOwner(u).SetWanted(1).SetCurrent(1).SetTarget(1).SetWeights(map[int]int{1: 100}).
		SetStrategy([]byte(`{"Kind":"rolling","Steps":[10]}`)).SetScaling([]byte(`{"Max":1,"Targets":[{"Metric":"requests"}],"Schedules":[{"TimeZone":"UTC"}]}`)).SetProgress([]byte(`{}`)).SaveX(ctx).ID
	k["Price+deployment"] = c.Price.Create().SetKind("output_tokens").SetMicros(1).SetValidFrom(time.Now()).SetDeploymentID(k["Deployment"]).SaveX(ctx).ID
	k["Deployment+shared"] = c.Deployment.Create().SetName(name + "-shared").SetDomainID(d.ID).SetProject(p).SetOwner(u).SetWanted(1).SetCurrent(1).SetTarget(1).SetShared(true).
		SetStrategy([]byte(`{}`)).SetScaling([]byte(`{}`)).SetProgress([]byte(`{}`)).SaveX(ctx).ID
	for _, which := range []string{"", "+shared"} {
		of := k["Deployment"+which]
		k["DeploymentRevision"+which] = c.DeploymentRevision.Create().SetDeploymentID(of).SetNumber(1).SetVariant("custom").SetRequest([]byte(`{"Image":"i:1"}`)).
			SetEngine([]byte(`{"Port":8000}`)).SetImage("i:1").SetVfolderID(k["Vfolder"]).SetCreator(u).SaveX(ctx).ID
		k["DeploymentReplica"+which] = c.DeploymentReplica.Create().SetDeploymentID(of).SetRevision(1).SetSessionID(k["Session"]).SaveX(ctx).ID
		k["PromptRecord"+which] = c.PromptRecord.Create().SetDeploymentID(of).SetUser(u).SetPath("/v1/chat/completions").SetStatus(200).SetRequest("{}").SetAnswer("{}").SetTruncated(false).
			SetPromptTokens(1).SetCompletionTokens(1).SetFirstByteMs(1).SetDurationMs(1).SaveX(ctx).ID
		k["DeploymentEvent"+which] = c.DeploymentEvent.Create().SetDeploymentID(of).SetKind("created").SaveX(ctx).ID
	}
	k["ChatEndpoint"] = c.ChatEndpoint.Create().SetName(name).SetAddress("https://api.example.org/v1").SetModels([]string{"m"}).SetAudience([]uuid.UUID{d.ID}).SaveX(ctx).ID
	deployed, outside := conversation.Model{Name: "m", DeploymentID: new(k["Deployment"])}, conversation.Model{Name: "m", EndpointID: new(k["ChatEndpoint"])}
	for _, which := range []string{"", "+shared"} {
		chat := c.Chat.Create().SetTitle(name + which).SetShared(which != "").SetDomainID(d.ID).SetOwnerID(u.ID).SetNextNumber(2).
			SetAsks([]conversation.Column{{Model: deployed}, {Number: 1, Model: outside}}).SaveX(ctx).ID
		k["Chat"+which] = chat
		turn := c.ChatTurn.Create().SetChatID(chat).SetPrompt("hello").SetFiles([]conversation.Attachment{{Name: "a", Type: "text/plain", Size: 1}}).SaveX(ctx).ID
		k["ChatTurn"+which] = turn
		c.ChatContent.Create().SetChatID(chat).SetTurnID(turn).SetData([]byte("x")).ExecX(ctx)
		answer := func(m conversation.Model) *ent.ChatAnswerCreate {
			return c.ChatAnswer.Create().SetChatID(chat).SetTurnID(turn).SetOwnerID(u.ID).SetPlace(0).SetAsked(conversation.Asked{Model: m}).
				SetStatus("done").SetText("hello").SetMeasured(&conversation.Metrics{}).SetSessionID(k["Session"]).SetEndedAt(time.Now())
		}
		k["ChatAnswer"+which] = answer(deployed).SaveX(ctx).ID
		k["ChatAnswer+outside"+which] = answer(outside).SaveX(ctx).ID
		for i, m := range []conversation.Model{deployed, outside} {
			replay := c.ChatReplay.Create().SetChatID(chat).SetModel(m).SetPlace(0).SaveX(ctx)
			k[fmt.Sprint("ChatAnswer+replay", i, which)] = answer(m).SetReplayID(replay.ID).SetOriginal(k["ChatAnswer"+which]).SaveX(ctx).ID
		}
		c.ChatAnswer.Create().SetChatID(chat).SetTurnID(turn).SetOwnerID(u.ID).SetPlace(1).SetAsked(conversation.Asked{}).ExecX(ctx) // waits
		c.ChatVote.Create().SetChatID(chat).SetTurnID(turn).SetDomainID(d.ID).SetAnswers([]uuid.UUID{k["ChatAnswer"+which]}).SetBlind(false).ExecX(ctx)
	}
	k["Notice"] = c.Notice.Create().SetKind("session_failed").SetSeverity("error").SetParameters(map[string]string{"name": name}).SetSubjectID(s.ID).SetUserID(u.ID).SaveX(ctx).ID
	channel := c.NoticeChannel.Create().SetType("webhook").SetName(name).SetHost("example.org").SetAddressSealed([]byte("x")).SetUserID(u.ID).SaveX(ctx)
	k["NoticeChannel"] = channel.ID
	k["NoticeDelivery"] = c.NoticeDelivery.Create().SetType("webhook").SetKind("session_failed").SetStatus("dead").SetDueAt(time.Now()).SetExpiresAt(time.Now()).
		SetNoticeID(k["Notice"]).SetChannelID(channel.ID).SetUserID(u.ID).SaveX(ctx).ID
	k["Announcement"] = c.Announcement.Create().SetText(name).SetAudience("project").SetScopeID(p.ID).SaveX(ctx).ID
	k["DeploymentKey"] = c.DeploymentKey.Create().SetName(name).SetPrefix("x").SetHash(hash()).SetDomainID(d.ID).SetUser(u).SetDeploymentID(k["Deployment"]).SaveX(ctx).ID
	k["Session+restart"] = c.Session.Create().SetName(name + "-again").SetType("batch").SetStatus(lifecycle.Terminated).SetTerminatedAt(time.Now()).SetSlots(resource.Slots{}).
		SetDomainID(d.ID).SetProject(p).SetOwner(u).SetResourceGroupID(k["ResourceGroup"]).SetImageID(k["Image"]).SetRestartOf(s).SaveX(ctx).ID
	for _, place := range []string{"first", "next"} { // no agent has the slot, so that the sessions wait
		w := c.Session.Create().SetName(name + "-" + place).SetType("batch").SetSlots(resource.Slots{"nothing": 1}).
			SetDomainID(d.ID).SetProject(p).SetOwner(u).SetResourceGroupID(k["ResourceGroup"]).SetImageID(k["Image"]).
			SetPending(&report.Pending{DecidedAt: time.Now()}).SaveX(ctx)
		k["Session+"+place] = w.ID
		k["Kernel+"+place] = c.Kernel.Create().SetSession(w).SetSlots(resource.Slots{"nothing": 1}).
			SetDomainID(d.ID).SetProjectID(p.ID).SetOwnerID(u.ID).SaveX(ctx).ID
	}
	kernel := c.Kernel.Create().SetSession(s).SetSlots(resource.Slots{"cpu": 1}).SetStatus(lifecycle.Running).SetAgentID(k["Agent"]).
		SetDomainID(d.ID).SetProjectID(p.ID).SetOwnerID(u.ID).SaveX(ctx)
	k["Kernel"] = kernel.ID
	k["Allocation"] = c.Allocation.Create().SetSlot("cpu").SetAmount(1).SetSessionID(s.ID).SetKernel(kernel).SetAgentID(k["Agent"]).
		SetDeviceID(k["Device"]).SetDomainID(d.ID).SetProjectID(p.ID).SetOwnerID(u.ID).SaveX(ctx).ID
	k["SessionMount"] = c.SessionMount.Create().SetTarget("/home/work/data").SetSession(s).SetVfolder(f).SaveX(ctx).ID
	k["SessionDependency"] = c.SessionDependency.Create().SetName(name).SetSession(s).SetNeeded(s).SaveX(ctx).ID
	k["SessionDependency+array"] = c.SessionDependency.Create().SetName(name).SetSession(s).SetNeededArrayID(k["SessionArray"]).SaveX(ctx).ID
	s.Update().AddAgentIDs(k["Agent"]).ExecX(ctx)
	k["SessionEvent"] = c.SessionEvent.Create().SetPhase("schedule").SetResult(sessionevent.ResultInfo).SetSession(s).
		SetSteps([]report.Step{{Name: "one", StartedAt: time.Now(), EndedAt: time.Now()}}).SaveX(ctx).ID
}
