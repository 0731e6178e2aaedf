package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/manager/app"
)

// Apps asks the containers of all sessions of a request together.
func (r sessionResolver) Apps(ctx context.Context, s *ent.Session, kernel *uuid.UUID) ([]*app.App, error) {
	if kernel != nil {
		list, err := r.Resolver.Apps.Of(ctx, s.ID, *kernel)
		return some(list), err
	}
	list, err := loaders(ctx).apps.Load(ctx, s.ID)
	return some(list), err
}

// some returns an empty list instead of nil.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// AppLog asks the container for the output of an app.
func (r sessionResolver) AppLog(ctx context.Context, s *ent.Session, name string, kernel *uuid.UUID, bytes *int) (string, error) {
	n := 16 << 10
	if bytes != nil {
		n = *bytes
	}
	return r.Resolver.Apps.Log(ctx, app.AppActionInput{Session: s.ID, App: name, Kernel: kernel}, n)
}

func (r mutationResolver) OpenApp(ctx context.Context, input app.OpenAppInput) (*app.OpenAppPayload, error) {
	return r.Apps.OpenApp(ctx, input)
}

func (r mutationResolver) RestartApp(ctx context.Context, input app.AppActionInput) (*app.AppPayload, error) {
	return r.Apps.RestartApp(ctx, input)
}

func (r mutationResolver) StopApp(ctx context.Context, input app.AppActionInput) (*app.AppPayload, error) {
	return r.Apps.StopApp(ctx, input)
}

func (r mutationResolver) ShareApp(ctx context.Context, input app.ShareAppInput) (*app.AppPayload, error) {
	return r.Apps.ShareApp(ctx, input)
}

func (r mutationResolver) UnshareApp(ctx context.Context, input app.AppActionInput) (*app.AppPayload, error) {
	return r.Apps.UnshareApp(ctx, input)
}
