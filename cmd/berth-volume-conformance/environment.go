package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/conformance"
	"github.com/berthhq/berth/internal/simulator"
	"github.com/berthhq/berth/internal/simulator/efs"
	"github.com/berthhq/berth/internal/simulator/exascaler"
	"github.com/berthhq/berth/internal/simulator/hammerspace"
	"github.com/berthhq/berth/internal/simulator/hdfs"
	"github.com/berthhq/berth/internal/simulator/image"
	"github.com/berthhq/berth/internal/simulator/netapp"
	"github.com/berthhq/berth/internal/simulator/powerscale"
	"github.com/berthhq/berth/internal/simulator/purestorage"
	"github.com/berthhq/berth/internal/simulator/spectrumscale"
	"github.com/berthhq/berth/internal/simulator/vast"
	"github.com/berthhq/berth/internal/simulator/weka"
	cephvm "github.com/berthhq/berth/internal/testvm/ceph"
	glustervm "github.com/berthhq/berth/internal/testvm/gluster"
	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume/volumetest"
)

// stand is an environment in which one plugin of the tree is checked.
type stand struct {
	plugin, env string
	// up starts the product and returns the path where it is mounted, the plugin's options, and a
	// function that stops it. An Unavailable error says why this machine cannot run it.
	up func(ctx context.Context) (mount, options string, down func() error, err error)
	// check replaces up where the suite has to run inside a test VM.
	check func(ctx context.Context, binary string, only []string, report func(suite.Result)) error
}

// onSimulator names the environment of simulated products.
const onSimulator = "simulator"

// Names of the environments of real products.
const (
	oneCeph    = "ceph, one node"
	oneGluster = "gluster, one node"
)

// stands returns all environments. A plugin can have several.
func stands() []stand {
	return []stand{
		{plugin: "vfs", env: "directory", up: directory(`{"usage_max_age_s": 0}`)},
		{plugin: "btrfs", env: "loop, full quotas", up: loop(`{"quota": "full"}`)},
		{plugin: "btrfs", env: "loop, simple quotas", up: loop(`{"quota": "simple"}`)},
		{plugin: "netapp", env: onSimulator, up: simulated(netapp.New)},
		{plugin: "powerscale", env: onSimulator, up: simulated(powerscale.New)},
		{plugin: "purestorage", env: onSimulator, up: simulated(purestorage.New)},
		{plugin: "exascaler", env: onSimulator, up: simulated(exascaler.New)},
		{plugin: "weka", env: onSimulator, up: simulated(weka.New)},
		{plugin: "vast", env: onSimulator, up: simulated(vast.New)},
		{plugin: "hammerspace", env: onSimulator, up: simulated(hammerspace.New)},
		{plugin: "spectrumscale", env: onSimulator, up: simulated(spectrumscale.New)},
		{plugin: "hdfs", env: onSimulator, up: simulated(hdfs.New)},
		{plugin: "efs", env: onSimulator, up: simulated(efs.New)},
		{plugin: "xfs", env: "user-mode Linux", check: booted("xfs")},
		{plugin: "ext4", env: "user-mode Linux", check: booted("ext4")},
		{plugin: "nfs", env: "user-mode Linux", check: booted("nfs")},
		{plugin: "smb", env: "user-mode Linux", check: booted("smb")},
		{plugin: "cephfs", env: oneCeph, up: ceph},
		{plugin: "glusterfs", env: oneGluster, up: gluster},
	}
}

type up = func(context.Context) (string, string, func() error, error)

// directory is a new directory for each check.
func directory(options string) up {
	return func(context.Context) (string, string, func() error, error) {
		return "", options, func() error { return nil }, nil
	}
}

// loop is btrfs on a loop device.
func loop(options string) up {
	return func(ctx context.Context) (string, string, func() error, error) {
		i, err := image.Make(ctx)
		if err != nil {
			return "", "", nil, err
		}
		return i.Mount, options, i.Close, nil
	}
}

func ceph(ctx context.Context) (string, string, func() error, error) {
	c, err := cephvm.Make(ctx)
	if err != nil {
		return "", "", nil, err
	}
	return c.Mount, "", c.Close, nil
}

func gluster(ctx context.Context) (string, string, func() error, error) {
	c, err := glustervm.Make(ctx)
	if err != nil {
		return "", "", nil, err
	}
	options := fmt.Sprintf(`{"gluster": %q, "usage_max_age_s": 0}`, c.Gluster)
	return c.Mount, options, c.Close, nil
}

// simulated is a simulated product that keeps its files on real btrfs.
func simulated(product simulator.Factory) up {
	return func(ctx context.Context) (string, string, func() error, error) {
		a, err := simulator.Start(ctx, product, simulator.Options{})
		if err != nil {
			return "", "", nil, err
		}
		return a.Mount(), a.PluginOptions(), a.Close, nil
	}
}

// elsewhere is an environment that this machine cannot provide.
func elsewhere(why string) up {
	return func(context.Context) (string, string, func() error, error) {
		return "", "", nil, fmt.Errorf("%s: %w", why, errdefs.ErrUnavailable)
	}
}

// columns returns a column for each plugin of a directory in each of its environments.
func columns(dir string) ([]conformance.Column, error) {
	names, err := conformance.Programs(dir)
	if err != nil {
		return nil, err
	}
	for _, s := range stands() {
		if !slices.Contains(names, s.plugin) {
			return nil, fmt.Errorf("the environment %s is for the plugin %s, which is not in %s", s.env, s.plugin, dir)
		}
	}
	var out []conformance.Column
	for _, name := range names {
		c := conformance.Column{Plugin: name}
		for _, s := range stands() {
			if s.plugin == name {
				c.Environments = append(c.Environments, s.run(filepath.Join(dir, name)))
			}
		}
		if len(c.Environments) == 0 {
			bare := stand{plugin: name, env: "no product", up: elsewhere("no product is made for it")}
			c.Environments = append(c.Environments, bare.run(filepath.Join(dir, name)))
		}
		out = append(out, c)
	}
	return out, nil
}

// run runs the suite on a stand. If the stand is not available on this machine, it runs the checks
// that need no product and skips the others with the reason.
func (s stand) run(binary string) conformance.Environment {
	return conformance.Environment{Name: s.env, Run: func(ctx context.Context, only []string, report func(suite.Result)) (err error) {
		if s.check != nil {
			err := s.check(ctx, binary, only, report)
			if errdefs.IsUnavailable(err) {
				return absent(ctx, binary, err, only, report)
			}
			return err
		}
		mount, options, down, err := s.up(ctx)
		if errdefs.IsUnavailable(err) {
			return absent(ctx, binary, err, only, report)
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, down()) }()
		p := volumetest.Plugin{Path: binary, Mount: mount, Options: options, Environment: volumetest.Environment{NoInodes: s.env == onSimulator, Names: s.env == oneGluster}}
		if s.env == oneCeph { // its usage is up to a second old
			p.Environment.Pause = 500 * time.Millisecond
		}
		return volumetest.Run(ctx, p, only, report)
	}}
}

func absent(ctx context.Context, binary string, why error, only []string, report func(suite.Result)) error {
	for _, c := range volumetest.Checks() {
		switch {
		case len(only) > 0 && !slices.Contains(only, c.Name):
		case c.Bare():
			if err := volumetest.Run(ctx, volumetest.Plugin{Path: binary}, []string{c.Name}, report); err != nil {
				return err
			}
		default:
			report(suite.Result{Check: suite.Check{Name: c.Name, Want: c.Want}, Outcome: suite.Skipped, Detail: why.Error()})
		}
	}
	return nil
}
