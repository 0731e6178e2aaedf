package containerd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/agent/runtime"
)

// labelFolder plus a number is a label with the place of one folder.
const labelFolder = "berth.folder."

// maxBelow limits the recorded mounts within a folder, because a label has at most 4 KiB. Other
// mounts cannot become writable again once they are read-only.
const maxBelow = 100

// findFolders records the mounts of the folders before any process of the user runs that could move
// them.
func (c *container) findFolders(ctx context.Context, s runtime.Spec, pid int) error {
	if len(s.Folders) == 0 {
		return nil
	}
	places, err := mount.Find(pid, s.Folders)
	if errdefs.IsInvalidArgument(err) {
		return err
	}
	if err != nil {
		// The mounts of a container in a virtual machine are not visible to processes of the host.
		c.runtime.cfg.Logger.Warn("the mounts of a container were not found and cannot be changed", "container", c.ID(), "error", err)
		return nil
	}
	var readOnly []mount.Change
	for _, m := range s.Mounts {
		if slices.Contains(s.Folders, m.Destination) && slices.Contains(m.Options, "ro") {
			readOnly = append(readOnly, mount.Change{Target: m.Destination, ReadOnly: true})
		}
	}
	// The runtime makes only the topmost of a folder's mounts read-only.
	if places, err = mount.Apply(pid, places, readOnly); err != nil {
		return fmt.Errorf("folders of %s: %w", c.ID(), err)
	}
	return c.notePlaces(ctx, places)
}

func (c *container) notePlaces(ctx context.Context, places []mount.Place) error {
	labels := map[string]string{}
	for i, p := range places {
		p.Below = p.Below[:min(len(p.Below), maxBelow)]
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		labels[labelFolder+strconv.Itoa(i)] = string(text)
	}
	ctx = named(ctx)
	record, err := c.record(ctx)
	if err != nil {
		return err
	}
	if _, err := record.SetLabels(ctx, labels); err != nil {
		return fmt.Errorf("record the places of the folders of %s: %w", c.ID(), err)
	}
	return nil
}

// places returns the recorded places in their order.
func (c *container) places(ctx context.Context) ([]mount.Place, error) {
	ctx = named(ctx)
	record, err := c.record(ctx)
	if err != nil {
		return nil, err
	}
	labels, err := record.Labels(ctx)
	if err != nil {
		return nil, fmt.Errorf("labels of %s: %w", c.ID(), err)
	}
	n := 0
	for key := range labels {
		if strings.HasPrefix(key, labelFolder) {
			n++
		}
	}
	list := make([]mount.Place, n)
	for i := range list {
		if err := json.Unmarshal([]byte(labels[labelFolder+strconv.Itoa(i)]), &list[i]); err != nil {
			return nil, fmt.Errorf("places of folders of %s: %w", c.ID(), err)
		}
	}
	return list, nil
}

// Remount implements runtime.Container.
func (c *container) Remount(ctx context.Context, changes []mount.Change) error {
	places, err := c.places(ctx)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	state, err := c.State(ctx)
	if err != nil || state.Phase == runtime.Exited || state.Phase == runtime.Gone {
		return err
	}
	t, err := c.task(ctx)
	if err != nil {
		return err
	}
	if err := c.wake(ctx, t); err != nil { // a killed agent may have left it paused
		return err
	}
	after, err := mount.Apply(state.PID, places, changes)
	if errdefs.IsUnavailable(err) {
		// A process moves mounts during the search.
		if err := t.Pause(named(ctx)); err != nil {
			return fmt.Errorf("hold %s still: %w", c.ID(), err)
		}
		after, err = mount.Apply(state.PID, after, changes)
		if err := c.wake(ctx, t); err != nil {
			return err
		}
	}
	if errdefs.IsUnavailable(err) { // paused processes cannot exit
		after, err = mount.Apply(state.PID, after, changes)
	}
	if noted := c.notePlaces(ctx, after); err == nil {
		err = noted
	}
	if err != nil {
		return fmt.Errorf("folders of %s: %w", c.ID(), err)
	}
	return nil
}

// wake resumes a container's processes, also if the context was cancelled.
func (c *container) wake(ctx context.Context, t client.Task) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(named(ctx)), stepTimeout)
	defer cancel()
	status, err := t.Status(ctx)
	if err == nil && (status.Status == client.Paused || status.Status == client.Pausing) {
		err = t.Resume(ctx)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("resume %s: %w", c.ID(), err)
	}
	return nil
}
