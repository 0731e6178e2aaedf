package kernel

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/mount"
)

// UpdateMounts changes mounted folders of a kernel. The record is changed first, so that a
// container that is created again from it has the same mounts.
func (m *Manager) UpdateMounts(ctx context.Context, r *agentpb.UpdateMountsRequest) error {
	if err := m.Fence(r.Epoch); err != nil {
		return err
	}
	k, err := m.Get(r.KernelId)
	if err != nil {
		return err
	}
	switch present := k.rec.request.LaunchEpoch; {
	case r.LaunchEpoch < present:
		return fmt.Errorf("kernel %s: launch %d was replaced by launch %d: %w", k.ID, r.LaunchEpoch, present, errdefs.ErrFailedPrecondition)
	case r.LaunchEpoch > present:
		return fmt.Errorf("kernel %s: launch %d is not on this node: %w", k.ID, r.LaunchEpoch, errdefs.ErrNotFound)
	}
	changes, err := k.wanted(r.Mounts)
	if err != nil {
		return err
	}
	k.mounting.Lock()
	defer k.mounting.Unlock()
	if k.ended() {
		return nil
	}
	if err := k.noteMounts(changes); err != nil {
		return err
	}
	c, err := k.Running()
	if err != nil {
		return fmt.Errorf("container of kernel %s does not exist yet: %w", k.ID, errdefs.ErrUnavailable)
	}
	if err := c.Remount(ctx, changes); err != nil {
		return fmt.Errorf("kernel %s: %w", k.ID, err)
	}
	return nil
}

// wanted returns the changes for mounts that the kernel has. Updates of mounts that it was started
// without are skipped.
func (k *Kernel) wanted(updates []*agentpb.MountUpdate) (list []mount.Change, err error) {
	for _, u := range updates {
		c := mount.Change{Target: path.Clean(u.Target), ReadOnly: u.ReadOnly, Gone: u.Gone}
		has := slices.ContainsFunc(k.rec.request.Mounts, func(m *agentpb.Mount) bool { return path.Clean(m.Target) == c.Target })
		switch {
		case has:
			list = append(list, c)
		case !c.Gone:
			return nil, fmt.Errorf("kernel %s has no folder at %.80q: %w", k.ID, u.Target, errdefs.ErrInvalidArgument)
		}
	}
	return list, nil
}

// noteMounts writes changes to the record. A removed mount stays removed.
func (k *Kernel) noteMounts(changes []mount.Change) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.rec.mounts
	k.rec.mounts = maps.Clone(before)
	if k.rec.mounts == nil {
		k.rec.mounts = map[string]mount.Change{}
	}
	for _, c := range changes {
		c.Gone = c.Gone || before[c.Target].Gone
		k.rec.mounts[c.Target] = c
	}
	if maps.Equal(before, k.rec.mounts) {
		return nil
	}
	if err := k.save(); err != nil {
		k.rec.mounts = before
		return fmt.Errorf("write record of kernel %s: %w", k.ID, err)
	}
	return nil
}

// folders returns the folders of the request with the recorded changes applied.
func (k *Kernel) folders() (list []mount.Folder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range folders(k.rec.request) {
		c, changed := k.rec.mounts[path.Clean(f.Target)]
		if changed && c.Gone {
			continue
		}
		if changed {
			f.ReadOnly = c.ReadOnly
		}
		list = append(list, f)
	}
	return list
}
