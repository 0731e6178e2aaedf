package volumetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var mountChecks = []Check{
	{"unmounted", "an unmounted volume is UNAVAILABLE, its calls fail, and the bare mount point stays empty", unmounted},
	{"other-mount", "a volume is not written to after another file system was mounted there", otherMount},
	{"remounted", "after a remount, the volume can be opened and has its scopes", remounted},
}

// bound is a volume with a scope on a bind mount of the product.
type bound struct {
	*volume.Client
	at, scope string
}

// away unmounts the product.
func (p *bound) away() error {
	if err := unix.Unmount(p.at, 0); err != nil {
		return fmt.Errorf("unmount, which a plugin that holds something open prevents: %w", err)
	}
	return nil
}

func (b *bench) bound(ctx context.Context) (*bound, error) {
	if os.Geteuid() != 0 {
		return nil, suite.Skip("only root can mount")
	}
	if b.plugin.Environment.NoBind {
		return nil, suite.Skip("the product works only at one path")
	}
	at := filepath.Join(b.dir, "bound")
	if err := os.Mkdir(at, 0o755); err != nil {
		return nil, err
	}
	if err := unix.Mount(b.mount, at, "", unix.MS_BIND, ""); err != nil {
		return nil, suite.Skip("cannot mount: " + err.Error())
	}
	b.undo = append(b.undo, func() error {
		for unix.Unmount(at, unix.MNT_DETACH) == nil { // for each mount at this path
		}
		return nil
	})
	c, err := b.launch(ctx)
	if err != nil {
		return nil, err
	}
	q := b.request()
	q.MountPath = at
	if _, err := c.OpenVolume(ctx, q); err != nil {
		return nil, fmt.Errorf("open volume: %w", err)
	}
	id, err := b.create(ctx, c, nil)
	return &bound{c, at, id}, err
}

// refuses checks that all calls with side effects, and Health, are rejected.
func (b *bench) refuses(ctx context.Context, p *bound) error {
	h, err := p.Health(ctx, this())
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	if h.State != pb.HealthReport_UNAVAILABLE || h.Reason == "" {
		return fmt.Errorf("health is %v", h)
	}
	codes := []codes.Code{codes.FailedPrecondition, codes.Unavailable}
	_, create := p.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: b.reserve()})
	_, get := p.GetScope(ctx, ref(p.scope))
	_, remove := p.DeleteScope(ctx, ref(p.scope))
	errs := []error{want("create", create, codes...), want("get", get, codes...), want("delete", remove, codes...)}
	left, err := os.ReadDir(p.at)
	if len(left) > 0 {
		errs = append(errs, fmt.Errorf("%d entries were created in the bare mount point", len(left)))
	}
	return errors.Join(append(errs, err)...)
}

func unmounted(ctx context.Context, b *bench) error {
	p, err := b.bound(ctx)
	if err != nil {
		return err
	}
	if err := p.away(); err != nil {
		return err
	}
	return b.refuses(ctx, p)
}

func otherMount(ctx context.Context, b *bench) error {
	p, err := b.bound(ctx)
	if err != nil {
		return err
	}
	if err := p.away(); err != nil {
		return err
	}
	if err := unix.Mount("other", p.at, "tmpfs", 0, "size=1m"); err != nil {
		return suite.Skip("cannot mount: " + err.Error())
	}
	return b.refuses(ctx, p)
}

func remounted(ctx context.Context, b *bench) error {
	p, err := b.bound(ctx)
	if err != nil {
		return err
	}
	before, err := p.GetScope(ctx, ref(p.scope))
	if err != nil {
		return err
	}
	if err := p.away(); err != nil {
		return err
	}
	if _, err := p.GetScope(ctx, ref(p.scope)); err == nil {
		return errors.New("a scope is found in the bare mount point")
	}
	if err := unix.Mount(b.mount, p.at, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	q := b.request()
	q.MountPath = p.at
	if _, err := p.OpenVolume(ctx, q); err != nil {
		return err
	}
	return same(ctx, p.Client, before)
}
