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
	{"other-mount", "a volume where something else is mounted by now is not written to", otherMount},
	{"remounted", "after it was mounted again the volume can be opened and has its scopes", remounted},
}

// bound opens the volume at a place that the product is bound to, and returns that
// place and how to take the product away from it.
func (b *bench) bound(ctx context.Context) (*volume.Client, string, func() error, error) {
	if os.Geteuid() != 0 {
		return nil, "", nil, suite.Skip("only root can mount")
	}
	if b.plugin.Lane.NoBind {
		return nil, "", nil, suite.Skip("the product works at one place alone")
	}
	at := filepath.Join(b.dir, "bound")
	if err := os.Mkdir(at, 0o755); err != nil {
		return nil, "", nil, err
	}
	if err := unix.Mount(b.mount, at, "", unix.MS_BIND, ""); err != nil {
		return nil, "", nil, suite.Skip("cannot mount: " + err.Error())
	}
	b.undo = append(b.undo, func() error {
		for unix.Unmount(at, unix.MNT_DETACH) == nil { // as often as something is there
		}
		return nil
	})
	c, err := b.launch(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	q := b.request()
	q.MountPath = at
	if _, err := c.OpenVolume(ctx, q); err != nil {
		return nil, "", nil, fmt.Errorf("open volume: %w", err)
	}
	return c, at, func() error {
		if err := unix.Unmount(at, 0); err != nil {
			return fmt.Errorf("unmount, which a plugin that holds something open prevents: %w", err)
		}
		return nil
	}, nil
}

// refuses makes the calls that change something, and the one about health.
func (b *bench) refuses(ctx context.Context, c *volume.Client, id, at string) error {
	h, err := c.Health(ctx, this())
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	if h.State != pb.HealthReport_UNAVAILABLE || h.Reason == "" {
		return fmt.Errorf("health is %v", h)
	}
	codes := []codes.Code{codes.FailedPrecondition, codes.Unavailable}
	_, create := c.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: b.reserve()})
	_, get := c.GetScope(ctx, ref(id))
	_, remove := c.DeleteScope(ctx, ref(id))
	errs := []error{want("create", create, codes...), want("get", get, codes...), want("delete", remove, codes...)}
	left, err := os.ReadDir(at)
	if len(left) > 0 {
		errs = append(errs, fmt.Errorf("%d entries were made where the volume is not", len(left)))
	}
	return errors.Join(append(errs, err)...)
}

func unmounted(ctx context.Context, b *bench) error {
	c, at, away, err := b.bound(ctx)
	if err != nil {
		return err
	}
	id, err := b.create(ctx, c, nil)
	if err != nil {
		return err
	}
	if err := away(); err != nil {
		return err
	}
	return b.refuses(ctx, c, id, at)
}

func otherMount(ctx context.Context, b *bench) error {
	c, at, away, err := b.bound(ctx)
	if err != nil {
		return err
	}
	id, err := b.create(ctx, c, nil)
	if err != nil {
		return err
	}
	if err := away(); err != nil {
		return err
	}
	if err := unix.Mount("other", at, "tmpfs", 0, "size=1m"); err != nil {
		return suite.Skip("cannot mount: " + err.Error())
	}
	return b.refuses(ctx, c, id, at)
}

func remounted(ctx context.Context, b *bench) error {
	c, at, away, err := b.bound(ctx)
	if err != nil {
		return err
	}
	id, err := b.create(ctx, c, nil)
	if err != nil {
		return err
	}
	before, err := c.GetScope(ctx, ref(id))
	if err != nil {
		return err
	}
	if err := away(); err != nil {
		return err
	}
	if _, err := c.GetScope(ctx, ref(id)); err == nil {
		return errors.New("a scope is found where the volume is not")
	}
	if err := unix.Mount(b.mount, at, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	q := b.request()
	q.MountPath = at
	if _, err := c.OpenVolume(ctx, q); err != nil {
		return err
	}
	return same(ctx, c, before)
}
