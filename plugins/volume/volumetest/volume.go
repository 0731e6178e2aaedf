package volumetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/suite"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var volumeChecks = []Check{
	{"open", "OpenVolume lists SCOPE, no capability twice, an enforcement that fits, and may be repeated", open},
	{"open-missing", "OpenVolume of a path that is not a directory, or not absolute, is refused", openMissing},
	{"open-two", "two volumes are open at once, and closing one leaves the other", openTwo},
	{"open-busy", "OpenVolume does not disturb running calls", openBusy},
	{"not-open", "calls for a volume that is not open are NOT_FOUND, Close of it a success", notOpen},
	{"close", "after CloseVolume the volume can be opened again and nothing is lost", closed},
	{"unimplemented", "calls whose capability is not listed are UNIMPLEMENTED, those listed are not", unimplemented},
	{"health", "a mounted volume has a health state, and a reason unless healthy", health},
	{"capacity", "total, used and available agree with each other and, within 1 %, with statfs", capacity},
	{"performance", "measurements are rates over a window, not counters", performance},
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
	if !proto.Equal(first, again) {
		return fmt.Errorf("opened as %v and then as %v", first, again)
	}
	caps := slices.Sorted(slices.Values(first.Capabilities))
	if len(slices.Compact(slices.Clone(caps))) != len(caps) {
		return fmt.Errorf("a capability is listed twice: %v", first.Capabilities)
	}
	if !has(first, pb.Capability_SCOPE) || has(first, pb.Capability_CAPABILITY_UNSPECIFIED) {
		return fmt.Errorf("capabilities %v", first.Capabilities)
	}
	none := first.Enforcement == pb.Enforcement_NONE
	if first.Enforcement == pb.Enforcement_ENFORCEMENT_UNSPECIFIED || limited(first) == none {
		return fmt.Errorf("enforcement %v with capabilities %v", first.Enforcement, first.Capabilities)
	}
	return suite.Note(fmt.Sprint(first.Enforcement))
}

func openMissing(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	file := filepath.Join(b.dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	for _, path := range []string{filepath.Join(b.dir, "missing"), file, "", ".", "relative/path"} {
		q := b.request()
		q.MountPath = path
		if _, err := c.OpenVolume(ctx, q); err == nil {
			return fmt.Errorf("the mount path %q was opened", path)
		}
	}
	q := b.request()
	q.Volume = ""
	_, err = c.OpenVolume(ctx, q)
	return want("a volume without a name", err, codes.InvalidArgument)
}

func openTwo(ctx context.Context, b *bench) error {
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	second := b.request()
	second.Volume = "second"
	if _, err := c.OpenVolume(ctx, second); err != nil {
		return err
	}
	if _, err := c.GetScope(ctx, &pb.ScopeRef{Volume: "second", Scope: id}); err != nil {
		return fmt.Errorf("the same product under another name: %w", err)
	}
	if _, err := c.CloseVolume(ctx, &pb.VolumeRef{Volume: "second"}); err != nil {
		return err
	}
	_, err = c.GetScope(ctx, &pb.ScopeRef{Volume: "second", Scope: id})
	if err := want("closed", err, codes.NotFound); err != nil {
		return err
	}
	_, err = c.GetScope(ctx, ref(id))
	return err
}

func openBusy(ctx context.Context, b *bench) error {
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	busy, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			for busy.Err() == nil && errs[i] == nil {
				_, errs[i] = c.GetScope(ctx, ref(id))
			}
		})
	}
	for range 5 {
		if _, err := c.OpenVolume(ctx, b.request()); err != nil {
			errs = append(errs, err)
		}
	}
	stop()
	wg.Wait()
	return errors.Join(errs...)
}

func notOpen(ctx context.Context, b *bench) error {
	c, err := b.launch(ctx)
	if err != nil {
		return err
	}
	id := ref("0123456789abcdef0123456789abcdef")
	_, health := c.Health(ctx, this())
	_, scope := c.GetScope(ctx, id)
	_, closed := c.CloseVolume(ctx, this())
	_, deleted := c.DeleteScope(ctx, id)
	return errors.Join(want("health", health, codes.NotFound), want("scope", scope, codes.NotFound),
		want("delete", deleted, codes.NotFound), want("close", closed, codes.OK))
}

func closed(ctx context.Context, b *bench) error {
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	before, err := c.GetScope(ctx, ref(id))
	if err != nil {
		return err
	}
	for range 2 {
		if _, err := c.CloseVolume(ctx, this()); err != nil {
			return err
		}
	}
	_, err = c.GetScope(ctx, ref(id))
	if err := want("a closed volume", err, codes.NotFound); err != nil {
		return err
	}
	if _, err := c.OpenVolume(ctx, b.request()); err != nil {
		return err
	}
	return same(ctx, c, before)
}

func unimplemented(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	tree := &pb.TreeRef{Volume: volumeName, Path: id + "/absent"}
	copying := &pb.CopyRequest{Volume: volumeName, From: id + "/absent", To: id + "/target"}
	scoped := &pb.ScopeRequest{Volume: volumeName, Scope: id}
	calls := map[pb.Capability]func() error{
		pb.Capability_METRICS:         func() error { _, err := c.Performance(ctx, this()); return err },
		pb.Capability_CAPACITY:        func() error { _, err := c.Capacity(ctx, this()); return err },
		pb.Capability_USAGE_FAST:      func() error { _, err := c.TreeUsage(ctx, tree); return err },
		pb.Capability_PER_SCOPE_MOUNT: func() error { _, err := c.MountPlan(ctx, ref(id)); return err },
		pb.Capability_LIST_SCOPES:     func() error { s, err := c.ListScopes(ctx, this()); return first(s, err) },
		pb.Capability_DELETE:          func() error { s, err := c.DeleteTree(ctx, tree); return first(s, err) },
		pb.Capability_CLONE:           func() error { s, err := c.CloneTree(ctx, copying); return first(s, err) },
	}
	if !has(r, pb.Capability_QUOTA_INODES) || !has(r, pb.Capability_QUOTA_BYTES) {
		calls[pb.Capability_QUOTA_BYTES] = func() error { _, err := c.SetScopeLimit(ctx, scoped); return err }
		if limited(r) {
			delete(calls, pb.Capability_QUOTA_BYTES)
		}
	}
	var errs []error
	for capability, call := range calls {
		err := want(capability.String(), call(), codes.Unimplemented)
		switch {
		case !has(r, capability):
			errs = append(errs, err)
		case err == nil:
			errs = append(errs, fmt.Errorf("%v is listed, and its call is UNIMPLEMENTED", capability))
		}
	}
	return errors.Join(errs...)
}

// first returns the error of the first message of a stream.
func first[M any](s interface{ Recv() (*M, error) }, err error) error {
	if err == nil {
		_, err = s.Recv()
	}
	return err
}

func health(ctx context.Context, b *bench) error {
	c, _, err := b.open(ctx)
	if err != nil {
		return err
	}
	h, err := c.Health(ctx, this())
	if err != nil {
		return err
	}
	if h.State == pb.HealthReport_STATE_UNSPECIFIED || h.State != pb.HealthReport_HEALTHY && h.Reason == "" {
		return fmt.Errorf("health %v", h)
	}
	if h.State == pb.HealthReport_UNAVAILABLE {
		return fmt.Errorf("the volume that is tested is unavailable: %s", h.Reason)
	}
	return nil
}

func capacity(ctx context.Context, b *bench) error {
	c, r, err := b.open(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_CAPACITY) {
		return suite.Skip("no CAPACITY")
	}
	got, err := c.Capacity(ctx, this())
	if err != nil {
		return err
	}
	if got.TotalBytes <= 0 || got.UsedBytes < 0 || got.AvailableBytes < 0 ||
		!got.Elastic && got.UsedBytes+got.AvailableBytes > got.TotalBytes {
		return fmt.Errorf("capacity %v", got)
	}
	if err := recent(got.AsOfUnixMs); err != nil {
		return err
	}
	if (got.TotalInodes == nil) != (got.UsedInodes == nil) || got.GetUsedInodes() < 0 || got.GetUsedInodes() > got.GetTotalInodes() {
		return fmt.Errorf("inodes %v", got)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(b.mount, &st); err != nil {
		return err
	}
	total := int64(st.Blocks) * max(st.Frsize, 1)
	if off := got.TotalBytes - total; !got.Elastic && max(off, -off) > total/100 {
		return fmt.Errorf("total %d, statfs says %d", got.TotalBytes, total)
	}
	return nil
}

// recent checks that a time is within the last hour.
func recent(unixMs int64) error {
	if age := time.Since(time.UnixMilli(unixMs)); unixMs <= 0 || age > time.Hour || age < -time.Minute {
		return fmt.Errorf("as of %v", time.UnixMilli(unixMs))
	}
	return nil
}

func performance(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_METRICS) {
		return suite.Skip("no METRICS")
	}
	// A counter grows while data is written and then stays constant.
	if err := os.WriteFile(b.at(id, "load"), make([]byte, 1<<20), 0o644); err != nil {
		return err
	}
	for range 2 {
		p, err := c.Performance(ctx, this())
		if err != nil {
			return err
		}
		if p.Subject == pb.PerformanceSample_SUBJECT_UNSPECIFIED || p.WindowMs <= 0 || p.WindowMs > time.Hour.Milliseconds() {
			return fmt.Errorf("rates must have a subject and a window of at most an hour: %v", p)
		}
		if err := recent(p.AsOfUnixMs); err != nil {
			return err
		}
		// No storage exceeds these rates, so a higher value must be a counter.
		const ops, bytes = 1e9, 100 << 40
		for what, v := range map[string]*float64{
			"read_ops": p.ReadOpsPerSecond, "write_ops": p.WriteOpsPerSecond, "read_bytes": p.ReadBytesPerSecond,
			"write_bytes": p.WriteBytesPerSecond, "read_latency": p.ReadLatencyUs, "write_latency": p.WriteLatencyUs,
		} {
			if v != nil && (!(*v >= 0) || *v > bytes || *v > ops && (what == "read_ops" || what == "write_ops")) {
				return fmt.Errorf("%s is %v", what, *v)
			}
		}
	}
	return nil
}
