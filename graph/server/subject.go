package server

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/audit"
)

// nouns maps the names of objects in the schema to the entities of permissions. The name of a
// mutation, of its payload or of its input contains one of them.
var nouns = map[string]access.Entity{
	"Domain": access.Domain, "Project": access.Project, "Member": access.Project, "User": access.User,
	"Viewer": access.User, "Password": access.User, "Account": access.User,
	"AccessToken": access.Credential, "LoginSession": access.Credential, "Keypair": access.Credential,
	"SSHKey": access.Credential, "SshKey": access.Credential, "Totp": access.Credential, "RecoveryCode": access.Credential,
	"Identity": access.Credential, "IdentityProvider": access.Provider, "Provider": access.Provider,
	"Invitation": access.Invitation, "Role": access.Role, "RoleGrant": access.Role,
	"ResourcePolicy": access.ResourcePolicy, "PolicyAttachment": access.ResourcePolicy, "Policy": access.ResourcePolicy, "Price": access.ResourcePolicy, "Budget": access.ResourcePolicy,
	"ResourceGroup": access.ResourceGroup, "GroupGrant": access.ResourceGroup, "Group": access.ResourceGroup, "ShareWeight": access.ResourceGroup,
	"IdleChecker": access.ResourceGroup, "IdleBinding": access.ResourceGroup,
	"ResourcePreset": access.ResourcePreset, "Preset": access.ResourcePreset,
	"Agent": access.Agent, "Device": access.Agent, "SlotType": access.Agent, "JoinToken": access.System,
	"Registry": access.Registry, "Image": access.Image, "Session": access.Session, "App": access.Session, "SessionGroup": access.Session, "SessionArray": access.Session, "SessionTemplate": access.Template, "Kernel": access.Session,
	"Deployment": access.Deployment, "DeploymentRevision": access.Deployment, "DeploymentReplica": access.Deployment, "DeploymentKey": access.Credential,
	"Chat": access.Deployment, "ChatTurn": access.Deployment, "ChatAnswer": access.Deployment, "ChatReplay": access.Deployment, "ChatEndpoint": access.System, // with deployments
	"Notice": access.User, "Notices": access.User, "NoticeSettings": access.User, "NoticeChannel": access.User, "NoticeDelivery": access.User, "Announcement": access.System,
	"Volume": access.Volume, "VolumeGrant": access.Volume, "StorageProxy": access.Volume, "ObjectStorage": access.ObjectStorage, "Vfolder": access.Vfolder, "File": access.Vfolder,
	"QuotaScope": access.Vfolder, "Task": access.Task, "Retention": access.System, "Occupancy": access.System, "Recovery": access.System,
}

// longest lists the nouns so that a noun comes before another one that it ends with.
var longest = func() []string {
	var list []string
	for n := range nouns {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return list
}()

// entityOf returns the kind of object that a field is about, from its payload, its own name or
// its input, in this order; "" if none of them contains a noun.
func entityOf(s *ast.Schema, f *ast.FieldDefinition) access.Entity {
	if payload := s.Types[f.Type.Name()]; payload != nil {
		for _, part := range payload.Fields {
			if e, ok := nouns[part.Type.Name()]; ok {
				return e
			}
		}
	}
	for _, n := range longest {
		if strings.Contains(f.Name, n) {
			return nouns[n]
		}
	}
	for _, part := range inputOf(s, f) {
		if e, ok := nouns[strings.ToUpper(part.Name[:1])+part.Name[1:]]; ok {
			return e
		}
	}
	return ""
}

func inputOf(s *ast.Schema, f *ast.FieldDefinition) ast.FieldList {
	if a := f.Arguments.ForName("input"); a != nil && s.Types[a.Type.Name()] != nil {
		return s.Types[a.Type.Name()].Fields
	}
	return nil
}

// subject returns the object that a field is about: the id in its input; for a mutation of a
// user, that user; the object in its payload; or the id in its input for the same kind. It
// reads only ids of the input.
func (t auditLog) subject(ctx context.Context, f *ast.Field, vars map[string]any, payload any) audit.Entry {
	e := audit.Entry{Action: f.Name}
	if f.Definition == nil {
		return e
	}
	e.Entity = entityOf(t.schema, f.Definition)
	args := map[string]any{}
	if vars != nil {
		args = f.ArgumentMap(vars)
	}
	if in, ok := args["input"].(map[string]any); ok {
		args = in
	}
	named, holder := asID(args["id"]), asID(args["user"])
	switch {
	case named != uuid.Nil:
		e.ID = named
	case holder != uuid.Nil && !strings.HasPrefix(f.Name, "create"):
		e.ID = holder
	case idIn(payload) != uuid.Nil:
		e.ID = idIn(payload)
	}
	for _, part := range inputOf(t.schema, f.Definition) {
		one := asID(args[part.Name])
		switch {
		case one == uuid.Nil:
			continue
		case e.ID == uuid.Nil && audit.EntityOf(one) == e.Entity && !strings.HasPrefix(f.Name, "create"),
			e.ID == uuid.Nil && e.Entity == access.Vfolder && id.KindOf(one) == id.Vfolder:
			e.ID = one
		case payload == nil: // rejected: the request may name scopes that the user cannot see
		case id.KindOf(one) == id.Domain:
			e.Domain = one
		case id.KindOf(one) == id.Project:
			e.Project = one
		}
	}
	if own := viewer.From(ctx); e.ID == uuid.Nil && own != nil && aboutOneself(t.schema, f.Definition) {
		e.ID = own.User
	}
	if kind := audit.EntityOf(e.ID); e.ID != uuid.Nil && kind != "" {
		e.Entity = kind
	}
	return e
}

// aboutOneself reports whether a field returns the viewer.
func aboutOneself(s *ast.Schema, f *ast.FieldDefinition) bool {
	payload := s.Types[f.Type.Name()]
	return payload != nil && payload.Fields.ForName("viewer") != nil
}

func asID(v any) uuid.UUID {
	switch v := v.(type) {
	case uuid.UUID:
		return v
	case string:
		if one, err := uuid.Parse(v); err == nil {
			return one
		}
	}
	return uuid.Nil
}

// idIn returns the id of the first object in a payload.
func idIn(payload any) uuid.UUID {
	v := reflect.Indirect(reflect.ValueOf(payload))
	if v.Kind() != reflect.Struct {
		return uuid.Nil
	}
	if one, ok := idField(v); ok {
		return one
	}
	for i := range v.NumField() {
		part := reflect.Indirect(v.Field(i))
		if part.Kind() != reflect.Struct || !v.Type().Field(i).IsExported() {
			continue
		}
		if one, ok := idField(part); ok {
			return one
		}
	}
	return uuid.Nil
}

func idField(v reflect.Value) (uuid.UUID, bool) {
	f := v.FieldByName("ID")
	if !f.IsValid() {
		return uuid.Nil, false
	}
	one, ok := f.Interface().(uuid.UUID)
	return one, ok
}
