package volumetest

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var processChecks = []Check{
	{"kill", "after kill -9 a new process finds every scope and limit as they were", killed},
	{"close", "after CloseVolume the volume can be opened again and nothing is lost", closed},
	{"cancel", "a call whose caller has gone does not hold up the next one", cancelled},
}

func killed(ctx context.Context, b *bench) error {
	return withScope(ctx, b, func(c *volume.Client, _ *pb.OpenVolumeResponse, id string) error {
		before, err := c.GetScope(ctx, ref(id))
		if err != nil {
			return err
		}
		if err := syscall.Kill(c.Pid(), syscall.SIGKILL); err != nil {
			return err
		}
		select {
		case <-c.Done():
		case <-time.After(5 * time.Second):
			return errors.New("the process is still there 5 s after kill -9")
		}
		next, _, err := b.open(ctx)
		if err != nil {
			return err
		}
		return same(ctx, next, before)
	})
}

func closed(ctx context.Context, b *bench) error {
	return withScope(ctx, b, func(c *volume.Client, _ *pb.OpenVolumeResponse, id string) error {
		before, err := c.GetScope(ctx, ref(id))
		if err != nil {
			return err
		}
		if _, err := c.CloseVolume(ctx, &pb.VolumeRef{Volume: volumeName}); err != nil {
			return err
		}
		if _, err := c.GetScope(ctx, ref(id)); err == nil {
			return errors.New("a closed volume still answers")
		}
		if _, err := c.OpenVolume(ctx, b.request()); err != nil {
			return err
		}
		return same(ctx, c, before)
	})
}

func same(ctx context.Context, c *volume.Client, before *pb.Scope) error {
	after, err := c.GetScope(ctx, ref(before.Scope))
	if err != nil {
		return err
	}
	if after.Path != before.Path || after.GetLimit().String() != before.GetLimit().String() {
		return fmt.Errorf("scope was %v and is %v", before, after)
	}
	return nil
}

func cancelled(ctx context.Context, b *bench) error {
	return withScope(ctx, b, func(c *volume.Client, _ *pb.OpenVolumeResponse, id string) error {
		for range 20 {
			gone, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := c.GetScope(gone, ref(id)); err == nil {
				return errors.New("a cancelled call succeeded")
			}
		}
		soon, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := c.GetScope(soon, ref(id))
		return err
	})
}
