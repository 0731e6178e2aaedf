package view

import (
	"context"

	"github.com/berthhq/berth/storage/volume"
)

// space returns the space of a folder, or of a directory whose folders all belong to one quota
// scope.
func (t *tree) space(ctx context.Context, name string) (out volume.Space, known bool, err error) {
	at, err := t.find(ctx, name)
	if err != nil {
		return out, false, err
	}
	folder := at.folder
	if folder == nil {
		folder = at.node.only()
	}
	if folder == nil || folder.check(false) != nil {
		return out, false, nil
	}
	err = t.in(folder, func(f *volume.Folder) (err error) {
		out, err = f.Space(ctx)
		return err
	})
	return out, err == nil, err
}

// only returns a folder below a node if all folders there share one quota scope, and nil
// otherwise.
func (n *node) only() (one *open) {
	for _, below := range n.below {
		o := below.folder
		if o == nil {
			o = below.only()
		}
		if o == nil || one != nil && (o.ref.Volume != one.ref.Volume || o.ref.Scope != one.ref.Scope) {
			return nil
		}
		one = o
	}
	return one
}
