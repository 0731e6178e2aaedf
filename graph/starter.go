package graph

import (
	"context"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/images"
	"github.com/berthhq/berth/manager/app"
	"github.com/berthhq/berth/manager/image"
)

// StarterImages returns the images that the source tree has recipes for, each with the one that is registered.
func (r queryResolver) StarterImages(ctx context.Context) ([]*image.StarterImage, error) {
	recipes, err := images.Starters()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(recipes))
	for i, s := range recipes {
		names[i] = s.Name + ":" + s.Tag
	}
	found, err := r.Client.Image.Query().
		Where(image.Open(ctx), entimage.NameIn(names...), entimage.StatusEQ(entimage.StatusAlive)).
		Order(entimage.ByCreatedAt()).All(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string]*ent.Image{}
	for _, i := range found {
		byName[i.Name] = i
	}
	out := make([]*image.StarterImage, len(recipes))
	for i, s := range recipes {
		out[i] = &image.StarterImage{Name: s.Name, Tag: s.Tag, Title: s.Title, Description: s.Description, Command: s.Command(), Image: byName[names[i]]}
	}
	return out, nil
}

func (r imageResolver) Apps(_ context.Context, i *ent.Image) ([]*app.ImageApp, error) {
	return r.Resolver.Apps.OfImage(i.Labels), nil
}
