package graph_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/sessionevent"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/manager/managertest"
)

// seeder adds rows of every kind.
type seeder struct {
	*managertest.World
	ctx context.Context
	n   int // number of rounds so far
}

func seed(t *testing.T, w *managertest.World) *seeder { return &seeder{World: w, ctx: w.System(t)} }

// more adds a number of rounds; each round has rows of every kind.
func (s *seeder) more(rounds int) {
	for range rounds {
		s.n++
		s.round(s.n)
	}
}

func (s *seeder) round(i int) {
	c, ctx := s.Client, s.ctx
	pol := c.ResourcePolicy.Create().SetName(fmt.Sprint("policy", i)).SaveX(ctx)
	d := c.Domain.Create().SetName(fmt.Sprint("domain", i)).SaveX(ctx)
	p := c.Project.Create().SetName(fmt.Sprint("project", i)).SetDomain(s.A.Domain).SaveX(ctx)
	c.Project.Create().SetName("inner").SetDomain(d).ExecX(ctx)
	u := c.User.Create().SetEmail(fmt.Sprintf("user%d@example.org", i)).SetUsername(fmt.Sprint("user", i)).
		SetPasswordHash("-").SetDomain(s.A.Domain).SaveX(ctx)
	c.PolicyAttachment.Create().SetPolicy(pol).SetDomain(d).ExecX(ctx)
	c.PolicyAttachment.Create().SetPolicy(pol).SetProject(p).ExecX(ctx)
	c.PolicyAttachment.Create().SetPolicy(pol).SetUser(u).ExecX(ctx)
	c.Membership.Create().SetUser(u).SetProject(p).ExecX(ctx)
	c.Membership.Create().SetUser(s.Superadmin).SetProject(p).ExecX(ctx)
	c.AccessToken.Create().SetName(fmt.Sprint("token", i)).SetPrefix("x").SetHash([]byte(uuid.NewString())).SetProject(p).SetUser(s.Superadmin).ExecX(ctx)
	c.Keypair.Create().SetName(fmt.Sprint("keypair", i)).SetAccessKey(uuid.NewString()).SetSecretSealed([]byte("x")).SetUser(s.Superadmin).ExecX(ctx)
	c.SSHKey.Create().SetName(fmt.Sprint("key", i)).SetPublicKey("x").SetFingerprint(uuid.NewString()).SetUser(s.Superadmin).ExecX(ctx)
	c.LoginSession.Create().SetHash([]byte(uuid.NewString())).SetExpiresAt(time.Now().Add(time.Hour)).SetUser(s.Superadmin).ExecX(ctx)
	c.LoginAttempt.Create().SetUserID(s.Superadmin.ID).SetEmail(s.Superadmin.Email).SetResult("success").ExecX(ctx)
	c.AuditEntry.Create().SetActorID(u.ID).SetActedAsID(s.Superadmin.ID).SetAction("count").SetDomainID(d.ID).SetProjectID(p.ID).SetResult("OK").ExecX(ctx)
	c.SlotType.Create().SetName(fmt.Sprint("slot", i)).SetKind("count").ExecX(ctx)

	reg := c.Registry.Create().SetName(fmt.Sprint("registry", i)).SetHost(fmt.Sprint("host", i)).SaveX(ctx)
	img := c.Image.Create().SetReference(fmt.Sprint("host/image", i)).SetName(fmt.Sprint("image", i)).
		SetArchitecture("amd64").SetDigest("sha256:1").SetRegistry(reg).SaveX(ctx)
	c.Domain.UpdateOne(d).AddRegistries(reg).ExecX(ctx)
	c.Task.Create().SetKind("count").SetInput([]byte("{}")).SetCreatorID(s.Superadmin.ID).ExecX(ctx)
	g := c.ResourceGroup.Create().SetName(fmt.Sprint("group", i)).SaveX(ctx)
	a := c.Agent.Create().SetName(fmt.Sprint("agent", i)).SetResourceGroup(s.Group).SaveX(ctx)
	c.Agent.Create().SetName(fmt.Sprint("other", i)).SetResourceGroup(g).ExecX(ctx)
	var devices []*ent.Device
	for _, id := range []string{"cpu", "mem"} {
		devices = append(devices, c.Device.Create().SetAgent(a).SetDeviceID(id).SetCapacity(resource.Slots{id: 1 << 40}).SaveX(ctx))
	}

	proxy := c.StorageProxy.Create().SetName(fmt.Sprint("proxy", i)).SaveX(ctx)
	vol := c.Volume.Create().SetName(fmt.Sprint("volume", i)).SetProxy(proxy).SaveX(ctx)
	for _, owner := range []*ent.User{u, s.Superadmin, s.A.Member} {
		// Each session mounts its owner's folder: a running manager revokes a mount of a folder that is not shared.
		scope := c.QuotaScope.Create().SetKind(quotascope.KindUser).SetHolderID(owner.ID).SetDomainID(s.A.ID).SetVolume(vol).SaveX(ctx)
		f := c.Vfolder.Create().SetName(fmt.Sprint("data", i)).SetPath("p").SetDomainID(s.A.ID).SetOwner(owner).SetCreator(owner).
			SetQuotaScope(scope).SaveX(ctx)
		s.session(owner, p, img, f, a, devices, fmt.Sprint("session", i))
	}
}

func (s *seeder) session(owner *ent.User, p *ent.Project, img *ent.Image, f *ent.Vfolder, a *ent.Agent, devices []*ent.Device, name string) *ent.Session {
	c, ctx := s.Client, s.ctx
	together := c.SessionGroup.Create().SetName(name).SetPlacement("spread").SetDomainID(p.DomainID).SetProject(p).SetOwner(owner).SaveX(ctx)
	x := c.Session.Create().SetName(name).SetSessionGroup(together).SetType("batch").SetStatus(lifecycle.Running).SetSlots(resource.Slots{}).
		SetDomainID(p.DomainID).SetProject(p).SetOwner(owner).SetResourceGroup(s.Group).SetImage(img).
		SetPending(&report.Pending{DecidedAt: time.Now(), Dropped: []report.DroppedAgents{{Check: "cpu"}}, Limits: []report.LimitReached{{What: "cpu"}}, Nearest: &report.NearestFit{}}).
		SaveX(ctx)
	for range 2 {
		k := c.Kernel.Create().SetSession(x).SetSlots(resource.Slots{}).SetAgent(a).
			SetDomainID(p.DomainID).SetProjectID(p.ID).SetOwnerID(owner.ID).SaveX(ctx)
		for _, d := range devices {
			c.Allocation.Create().SetSlot(d.DeviceID).SetAmount(1).SetSessionID(x.ID).SetKernel(k).SetAgentID(a.ID).SetDevice(d).
				SetDomainID(p.DomainID).SetProjectID(p.ID).SetOwnerID(owner.ID).ExecX(ctx)
		}
	}
	c.SessionMount.Create().SetTarget("/home/work/data").SetSession(x).SetVfolder(f).ExecX(ctx)
	c.SessionDependency.Create().SetName("first").SetSession(x).SetNeeded(x).ExecX(ctx)
	x.Update().AddAgents(a).ExecX(ctx)
	c.SessionEvent.Create().SetPhase("schedule").SetResult(sessionevent.ResultInfo).SetSession(x).
		SetSteps([]report.Step{{Name: "one", StartedAt: time.Now(), EndedAt: time.Now()}}).ExecX(ctx)
	return x
}
