package main

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// volume is one open volume.
type volume struct {
	*driver.Mount
	walk    *driver.Walker
	program driver.Program // lfs
	options options
	counted bool   // scopes have projects
	reason  string // why there are no limits
}

func open(ctx context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	v := &volume{Mount: m, options: o, program: driver.Program{Path: o.LFS, Longest: longest}}
	var err error
	if v.reason, err = v.look(ctx); err != nil {
		return nil, err
	}
	v.counted = v.reason == ""
	if v.counted && !o.Enforced {
		v.reason = "no limits: according to the option enforced, the servers only count"
	}
	v.walk = driver.NewWalker(m, time.Duration(o.MaxAge)*time.Second)
	return v, nil
}

// unused is a project id that scopes do not get; any user can query it.
const unused = 1<<30 - 1

// look returns why there are no project quotas, or "".
func (v *volume) look(ctx context.Context) (string, error) {
	if !v.program.There() {
		return "no limits: the Lustre client's program " + v.options.LFS + " (option lfs) does not exist", nil
	}
	if _, err := v.targets(ctx); err != nil {
		if lacking(err) {
			return "", status.Errorf(codes.FailedPrecondition, "mount_path: %s is not a Lustre file system: %s", v.Path(), status.Convert(err).Message())
		}
		return "", err
	}
	root, err := v.Root()
	if err != nil {
		return "", err
	}
	defer root.Close()
	id, err := v.of(ctx, root, v.Path())
	if err == nil && id != 0 {
		return "", status.Errorf(codes.FailedPrecondition, "mount_path belongs to project %d itself: projects do not nest", id)
	}
	if err == nil {
		_, err = v.quota(ctx, unused)
	}
	if lacking(err) {
		return "no limits: the file system lacks the feature project, or its quotas are off: " + status.Convert(err).Message(), nil
	}
	return "", err
}

// lacking reports whether an error means that the file system does not support the feature.
func lacking(err error) bool {
	return err != nil && status.Code(driver.Error("", err)) == codes.FailedPrecondition
}

// Traits implements driver.Volume. Servers grant a limit in portions and clients write
// asynchronously, so a writer is stopped a little late.
func (v *volume) Traits() driver.Traits {
	if v.reason != "" {
		return driver.Traits{Enforcement: pb.Enforcement_NONE}
	}
	return driver.Traits{Enforcement: pb.Enforcement_DELAYED, Inodes: v.options.FileLimits}
}

// Health implements driver.Volume.
func (v *volume) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := v.Mount.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	worse := func(reason string) {
		h.State = pb.HealthReport_DEGRADED
		h.Reason = strings.TrimPrefix(h.Reason+"; "+reason, "; ")
	}
	if v.reason != "" {
		worse(v.reason)
	}
	if !v.program.There() {
		return h, nil // the reason contains it
	}
	wrong, err := v.targets(ctx)
	if err != nil {
		worse(status.Convert(driver.Error("", err)).Message())
	}
	if len(wrong) > 0 {
		worse("targets: " + strings.Join(wrong, ", "))
	}
	return h, nil
}

// Close implements driver.Volume.
func (v *volume) Close() error { return v.walk.Close() }
