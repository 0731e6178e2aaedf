package graph

import (
	"context"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/template"
)

func (r queryResolver) SessionTemplates(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.SessionTemplateOrder, where *ent.SessionTemplateWhereInput) (*ent.SessionTemplateConnection, error) {
	return r.Client.SessionTemplate.Query().Paginate(ctx, after, first, before, last, ent.WithSessionTemplateOrder(orderBy), ent.WithSessionTemplateFilter(where.Filter))
}

func (r sessionTemplateResolver) Request(ctx context.Context, x *ent.SessionTemplate) (*session.CreateSessionInput, error) {
	return loaders(ctx).templates.Load(ctx, x.ID)
}

func (r sessionTemplateResolver) Permissions(ctx context.Context, x *ent.SessionTemplate) ([]access.Operation, error) {
	return may(ctx, x)
}

func (r mutationResolver) CreateSessionTemplate(ctx context.Context, input template.CreateSessionTemplateInput) (*template.SessionTemplatePayload, error) {
	return r.Templates.CreateSessionTemplate(ctx, input)
}

func (r mutationResolver) UpdateSessionTemplate(ctx context.Context, input template.UpdateSessionTemplateInput) (*template.SessionTemplatePayload, error) {
	return r.Templates.UpdateSessionTemplate(ctx, input)
}

func (r mutationResolver) DeleteSessionTemplate(ctx context.Context, input template.DeleteSessionTemplateInput) (*template.DeleteSessionTemplatePayload, error) {
	return r.Templates.DeleteSessionTemplate(ctx, input)
}
