package audit

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/accesstoken"
	"github.com/berthhq/berth/ent/keypair"
	"github.com/berthhq/berth/ent/loginsession"
	"github.com/berthhq/berth/ent/sshkey"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/viewer"
)

// entities maps the kind in an id to the entity that permissions are about.
var entities = map[id.Kind]access.Entity{
	id.Domain: access.Domain, id.Project: access.Project, id.Membership: access.Project, id.User: access.User,
	id.AccessToken: access.Credential, id.LoginSession: access.Credential, id.Keypair: access.Credential,
	id.SSHKey: access.Credential, id.LoginAttempt: access.Credential,
	id.IdentityProvider: access.Provider, id.Invitation: access.Invitation, id.Role: access.Role, id.RoleGrant: access.Role,
	id.ResourcePolicy: access.ResourcePolicy, id.PolicyAttachment: access.ResourcePolicy, id.Price: access.ResourcePolicy, id.Budget: access.ResourcePolicy,
	id.ResourceGroup: access.ResourceGroup, id.GroupGrant: access.ResourceGroup, id.ResourcePreset: access.ResourcePreset,
	id.Agent: access.Agent, id.Device: access.Agent, id.SlotType: access.Agent, id.JoinToken: access.System,
	id.Registry: access.Registry, id.ScanResult: access.Registry, id.Image: access.Image, id.ImageVersion: access.Image, id.ImageCopy: access.Agent,
	id.Session: access.Session, id.ImageBuild: access.Session, id.Kernel: access.Session, id.Allocation: access.Session,
	id.SessionGroup: access.Session, id.SessionArray: access.Session, id.SessionTemplate: access.Template, id.SessionEvent: access.Session, id.SessionMount: access.Session, id.SessionDependency: access.Session,
	id.Deployment: access.Deployment, id.DeploymentRevision: access.Deployment, id.DeploymentReplica: access.Deployment, id.DeploymentEvent: access.Deployment,
	id.DeploymentKey: access.Credential, id.PromptRecord: access.Deployment,
	id.Chat: access.Deployment, id.ChatTurn: access.Deployment, id.ChatAnswer: access.Deployment, id.ChatEndpoint: access.System,
	id.Notice: access.User, id.NoticeChannel: access.User, id.NoticeDelivery: access.User, id.Announcement: access.System,
	id.IdleChecker: access.ResourceGroup, id.IdleBinding: access.ResourceGroup,
	id.StorageProxy: access.Volume, id.Volume: access.Volume, id.VolumeGrant: access.Volume, id.ObjectStorage: access.ObjectStorage,
	id.QuotaScope: access.Vfolder, id.Vfolder: access.Vfolder, id.Task: access.Task, id.AuditEntry: access.Audit,
}

// EntityOf returns the entity of an object, or "" if its id does not have a known kind.
func EntityOf(object uuid.UUID) access.Entity { return entities[id.KindOf(object)] }

// locate adds the scopes of an entry's object. For a failure it uses only objects that the
// viewer can see, so that the row reveals nothing else to them. A failure without a visible
// object belongs to the viewer's domain.
func (s *Service) locate(ctx context.Context, e Entry) Entry {
	if e.ID != uuid.Nil {
		if e.Entity == "" {
			e.Entity = EntityOf(e.ID)
		}
		read := ctx
		if e.Result == OK || viewer.From(ctx) == nil {
			read = viewer.SystemContext(ctx)
		}
		domain, project, err := s.scopes(read, e.ID)
		if err != nil && !ent.IsNotFound(err) {
			s.log.WarnContext(ctx, "find the scopes of an object", "object", e.ID, "error", err)
		}
		if e.Domain == uuid.Nil {
			e.Domain = domain
		}
		if e.Project == uuid.Nil {
			e.Project = project
		}
	}
	if v := viewer.From(ctx); e.Domain == uuid.Nil && e.Result != OK && v != nil && !v.IsAnonymous() {
		e.Domain = v.Domain
	}
	return e
}

// scopes reads the scopes of an object with one statement.
func (s *Service) scopes(ctx context.Context, object uuid.UUID) (domain, project uuid.UUID, err error) {
	c := s.client
	switch id.KindOf(object) {
	case id.Domain:
		x, err := c.Domain.Get(ctx, object)
		if err != nil {
			return uuid.Nil, uuid.Nil, err
		}
		return x.ID, uuid.Nil, nil
	case id.Project:
		x, err := c.Project.Get(ctx, object)
		if err != nil {
			return uuid.Nil, uuid.Nil, err
		}
		return x.DomainID, x.ID, nil
	case id.User:
		x, err := c.User.Get(ctx, object)
		if err != nil {
			return uuid.Nil, uuid.Nil, err
		}
		return x.DomainID, uuid.Nil, nil
	case id.Session:
		x, err := c.Session.Get(ctx, object)
		if err != nil {
			return uuid.Nil, uuid.Nil, err
		}
		return x.DomainID, x.ProjectID, nil
	case id.Kernel:
		x, err := c.Kernel.Get(ctx, object)
		if err != nil {
			return uuid.Nil, uuid.Nil, err
		}
		return x.DomainID, x.ProjectID, nil
	case id.Vfolder:
		x, err := c.Vfolder.Get(ctx, object)
		if err != nil {
			return uuid.Nil, uuid.Nil, err
		}
		return x.DomainID, value(x.ProjectID), nil
	case id.Chat:
		x, err := c.Chat.Get(ctx, object)
		if err != nil {
			return uuid.Nil, uuid.Nil, err
		}
		return x.DomainID, uuid.Nil, nil
	case id.Invitation:
		x, err := c.Invitation.Get(ctx, object)
		if err != nil {
			return uuid.Nil, uuid.Nil, err
		}
		return x.DomainID, uuid.Nil, nil
	case id.ObjectStorage:
		x, err := c.ObjectStorage.Get(ctx, object)
		if err != nil {
			return uuid.Nil, uuid.Nil, err
		}
		return value(x.DomainID), uuid.Nil, nil
	case id.Budget:
		return s.scopesOfBudget(ctx, object)
	case id.Task:
		x, err := c.Task.Get(ctx, object)
		if err != nil {
			return uuid.Nil, uuid.Nil, err
		}
		return value(x.DomainID), uuid.Nil, nil
	}
	holder, err := s.holder(ctx, object)
	if err != nil || holder == nil {
		return uuid.Nil, uuid.Nil, err
	}
	return holder.DomainID, uuid.Nil, nil
}

// scopesOfBudget returns the scopes of the object that a budget is for.
func (s *Service) scopesOfBudget(ctx context.Context, one uuid.UUID) (domain, project uuid.UUID, err error) {
	b, err := s.client.Budget.Get(ctx, one)
	switch {
	case err != nil:
		return uuid.Nil, uuid.Nil, err
	case b.ProjectID != nil:
		return s.scopes(ctx, *b.ProjectID)
	case b.UserID != nil:
		return s.scopes(ctx, *b.UserID)
	}
	return value(b.DomainID), uuid.Nil, nil
}

// holder returns the owner of a credential, or nil if the object is not a credential.
func (s *Service) holder(ctx context.Context, object uuid.UUID) (*ent.User, error) {
	c := s.client.User.Query()
	switch id.KindOf(object) {
	case id.AccessToken:
		c.Where(user.HasAccessTokensWith(accesstoken.ID(object)))
	case id.LoginSession:
		c.Where(user.HasLoginSessionsWith(loginsession.ID(object)))
	case id.Keypair:
		c.Where(user.HasKeypairsWith(keypair.ID(object)))
	case id.SSHKey:
		c.Where(user.HasSSHKeysWith(sshkey.ID(object)))
	default:
		return nil, nil
	}
	return c.Only(ctx)
}

func value(id *uuid.UUID) uuid.UUID {
	if id == nil {
		return uuid.Nil
	}
	return *id
}
