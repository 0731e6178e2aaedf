package volumetest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var startChecks = []Check{
	{"describe", "the process starts and describes itself, twice the same", describe},
	{"open", "OpenVolume lists SCOPE, no capability twice, an enforcement that fits, and may be repeated", open},
	{"open-options", "an unknown option is INVALID_ARGUMENT and named", openOptions},
	{"open-missing", "OpenVolume of a path that is not there fails", openMissing},
	{"not-open", "calls for a volume that is not open are NOT_FOUND, Close of it a success", notOpen},
	{"health", "a mounted volume has a health state; a reason unless healthy", health},
	{"capacity", "total, used and available agree with each other and, within 1 %, with statfs", capacity},
	{"unimplemented", "calls whose capability is not listed are UNIMPLEMENTED", unimplemented},
}

func describe(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	again, err := c.Describe(ctx, &pb.DescribeRequest{})
	if err != nil {
		return err
	}
	if again.String() != c.Description.String() {
		return fmt.Errorf("described as %v and then as %v", c.Description, again)
	}
	return nil
}

func open(ctx context.Context, b *bench) error {
	c, first, err := b.open(ctx)
	if err != nil {
		return err
	}
	again, err := c.OpenVolume(ctx, b.request())
	if err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	if first.String() != again.String() {
		return fmt.Errorf("opened as %v and then as %v", first, again)
	}
	caps := slices.Clone(first.Capabilities)
	slices.Sort(caps)
	if len(slices.Compact(slices.Clone(caps))) != len(caps) {
		return fmt.Errorf("a capability is listed twice: %v", first.Capabilities)
	}
	if !has(first, pb.Capability_SCOPE) || has(first, pb.Capability_CAPABILITY_UNSPECIFIED) {
		return fmt.Errorf("capabilities %v", first.Capabilities)
	}
	quota := has(first, pb.Capability_QUOTA_BYTES) || has(first, pb.Capability_QUOTA_INODES)
	none := first.Enforcement == pb.Enforcement_NONE
	if first.Enforcement == pb.Enforcement_ENFORCEMENT_UNSPECIFIED || quota == none {
		return fmt.Errorf("enforcement %v with capabilities %v", first.Enforcement, first.Capabilities)
	}
	return nil
}

func openOptions(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	q := b.request()
	q.OptionsJson = `{"no_such_option_x7": 1}`
	_, err = c.OpenVolume(ctx, q)
	if err := want("unknown option", err, codes.InvalidArgument); err != nil {
		return err
	}
	if text := status.Convert(err).Message(); !strings.Contains(text, "no_such_option_x7") {
		return fmt.Errorf("the message %q does not name the option", text)
	}
	return nil
}

func openMissing(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	q := b.request()
	q.MountPath = filepath.Join(b.dir, "missing")
	if _, err := c.OpenVolume(ctx, q); err == nil {
		return errors.New("a missing mount path was opened")
	}
	return nil
}

func notOpen(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	ref := &pb.VolumeRef{Volume: volumeName}
	_, health := c.Health(ctx, ref)
	_, scope := c.GetScope(ctx, &pb.ScopeRef{Volume: volumeName, Scope: newScope()})
	_, closed := c.CloseVolume(ctx, ref)
	return errors.Join(want("health", health, codes.NotFound), want("scope", scope, codes.NotFound), want("close", closed, codes.OK))
}

func health(ctx context.Context, b *bench) error {
	c, _, err := b.open(ctx)
	if err != nil {
		return err
	}
	h, err := c.Health(ctx, &pb.VolumeRef{Volume: volumeName})
	if err != nil {
		return err
	}
	if h.State == pb.HealthReport_STATE_UNSPECIFIED || h.State != pb.HealthReport_HEALTHY && h.Reason == "" {
		return fmt.Errorf("health %v", h)
	}
	return nil
}

func capacity(ctx context.Context, b *bench) error {
	c, r, err := b.open(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_CAPACITY) {
		return skip("no CAPACITY")
	}
	got, err := c.Capacity(ctx, &pb.VolumeRef{Volume: volumeName})
	if err != nil {
		return err
	}
	if got.TotalBytes <= 0 || got.UsedBytes < 0 || got.AvailableBytes < 0 || got.AsOfUnixMs <= 0 ||
		!got.Elastic && got.UsedBytes+got.AvailableBytes > got.TotalBytes {
		return fmt.Errorf("capacity %v", got)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(b.mount, &st); err != nil {
		return err
	}
	total := int64(st.Blocks) * st.Bsize
	if off := got.TotalBytes - total; !got.Elastic && max(off, -off) > total/100 {
		return fmt.Errorf("total %d, statfs says %d", got.TotalBytes, total)
	}
	return nil
}

func unimplemented(ctx context.Context, b *bench) error {
	c, r, err := b.open(ctx)
	if err != nil {
		return err
	}
	ref, tree := &pb.VolumeRef{Volume: volumeName}, &pb.TreeRef{Volume: volumeName, Path: "x"}
	copying := &pb.CopyRequest{Volume: volumeName, From: "x", To: "y"}
	calls := map[pb.Capability]func() error{
		pb.Capability_METRICS:    func() error { _, err := c.Performance(ctx, ref); return err },
		pb.Capability_CAPACITY:   func() error { _, err := c.Capacity(ctx, ref); return err },
		pb.Capability_USAGE_FAST: func() error { _, err := c.TreeUsage(ctx, tree); return err },
		pb.Capability_PER_SCOPE_MOUNT: func() error {
			_, err := c.MountPlan(ctx, &pb.ScopeRef{Volume: volumeName, Scope: newScope()})
			return err
		},
		pb.Capability_LIST_SCOPES: func() error { s, err := c.ListScopes(ctx, ref); return first(s, err) },
		pb.Capability_DELETE:      func() error { s, err := c.DeleteTree(ctx, tree); return first(s, err) },
		pb.Capability_SCAN:        func() error { s, err := c.ScanTree(ctx, tree); return first(s, err) },
		pb.Capability_COPY:        func() error { s, err := c.CopyTree(ctx, copying); return first(s, err) },
		pb.Capability_CLONE:       func() error { s, err := c.CloneTree(ctx, copying); return first(s, err) },
	}
	var errs []error
	for capability, call := range calls {
		if !has(r, capability) {
			errs = append(errs, want(capability.String(), call(), codes.Unimplemented))
		}
	}
	return errors.Join(errs...)
}

// first is the error that a stream begins with.
func first[M any](s interface{ Recv() (*M, error) }, err error) error {
	if err == nil {
		_, err = s.Recv()
	}
	return err
}
