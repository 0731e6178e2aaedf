package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/agent"
	"github.com/berthhq/berth/agent/condition"
	"github.com/berthhq/berth/agent/device"
	"github.com/berthhq/berth/agent/kernel"
	"github.com/berthhq/berth/agent/layers"
	"github.com/berthhq/berth/agent/runtime/containerd"
	"github.com/berthhq/berth/agent/runtime/containerd/daemon"
	"github.com/berthhq/berth/internal/confine"
	"github.com/berthhq/berth/internal/netlist"
	"github.com/berthhq/berth/internal/opsserver"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/scopemount"
	"github.com/berthhq/berth/storage"
	"github.com/berthhq/berth/storage/volume"
)

// nodeOptions are the flags that agents and storage proxies share.
type nodeOptions struct {
	name, dir, bin, fingerprint string
	token                       secret
	managers                    []string
	level                       string
	asJSON                      bool
}

func (o *nodeOptions) flags(cmd *cobra.Command, dir string) {
	host, _ := os.Hostname()
	exe, _ := os.Executable()
	f := cmd.Flags()
	f.StringVar(&o.name, "name", host, "name of this node, unique in the cluster")
	pathFlag(cmd, &o.dir, "data", dir, "directory of all state")
	pathFlag(cmd, &o.bin, "bin", filepath.Dir(exe), "directory of the other programs")
	f.StringSliceVar(&o.managers, "manager", nil, "addresses of the managers' cluster port")
	secretFlag(cmd, &o.token, "join-token", "BERTHD_JOIN_TOKEN", "one-time token, for the first start")
	f.StringVar(&o.fingerprint, "ca-fingerprint", "", "fingerprint of the cluster's CA, for the first start")
	logFlags(cmd, &o.level, &o.asJSON, "info")
}

func agentCommand() *cobra.Command {
	var (
		o       nodeOptions
		volumes []string
		scopes  []string
		plugins []string
		file    string
		group   string
		zone    string
		bundle  string
		overlay string
		lists   networkLists
		keep    bool
		ended   endedOptions
		images  agent.ImageConfig
		floors  floorOptions
		ops     string
	)
	cmd := &cobra.Command{
		Use: "agent", Short: "Run the agent of one worker machine", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(o.level, o.asJSON)
			if err != nil {
				return err
			}
			token, err := o.token.read()
			if err != nil {
				return err
			}
			cfg := agent.Config{
				Name: o.name, Dir: o.dir, Version: version, Managers: o.managers, JoinToken: token, CAFingerprint: o.fingerprint,
				Volumes: map[string]string{}, ScopeMounts: map[string]scopemount.Rule{}, ResourceGroup: group, Zone: zone, Overlay: overlay, KeepSessions: keep, Logger: log,
				EndedKernels: ended.kernels, EndedLogBytes: ended.logMiB << 20, Images: images, CABundle: bundle,
				ShimPath: filepath.Join(o.bin, "containerd-shim-runc-v2"), RuncPath: filepath.Join(o.bin, "runc"),
				RunnerPath: filepath.Join(o.bin, "berth-runner"), BuilderPath: filepath.Join(o.bin, "berth-builder"), Registry: opsserver.NewRegistry(version, "agent"),
			}
			if err := lists.set(&cfg); err != nil {
				return err
			}
			if cfg.Conditions, err = floors.limits(); err != nil {
				return err
			}
			for _, v := range volumes {
				name, path, ok := strings.Cut(v, "=")
				if !ok || !filepath.IsAbs(path) {
					return fmt.Errorf("--volume %q: want name=/absolute/path", v)
				}
				cfg.Volumes[name] = path
			}
			for _, v := range scopes {
				name, rule, _ := strings.Cut(v, "=")
				if cfg.ScopeMounts[name], err = scopemount.ParseRule(rule); err != nil {
					return fmt.Errorf("--scope-mount %q: %w", v, err)
				}
			}
			for _, p := range plugins {
				if p, err = absolute(p); err != nil {
					return fmt.Errorf("--plugin: %w", err)
				}
				cfg.Plugins = append(cfg.Plugins, agent.PluginConfig{Path: p})
			}
			if file != "" {
				more, err := device.ReadPlugins(file)
				if err != nil {
					return fmt.Errorf("--plugin-file: %w", err)
				}
				cfg.Plugins = append(cfg.Plugins, more...)
			}
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			own := daemon.Config{Dir: filepath.Join(o.dir, "containerd")}
			d, err := daemon.Start(cmd.Context(), own, []string{exe, "containerd", "--dir", own.Dir}, log)
			if err != nil {
				return err
			}
			defer func() { _ = d.Stop(cmd.Context()) }()
			cfg.ContainerdSocket, cfg.LazyCommand = own.Address(), []string{exe, "lazy"}
			a, err := agent.New(cfg)
			if err != nil {
				return err
			}
			opsAt, err := listenAt("metrics", ops, filepath.Join(o.dir, "metrics.port"))
			if err != nil {
				return err
			}
			g, ctx := errgroup.WithContext(cmd.Context())
			stop, cancel := context.WithCancel(ctx)
			g.Go(func() error {
				defer cancel()
				return a.Run(ctx)
			})
			if opsAt != nil {
				g.Go(func() error { return opsserver.New(opsAt, cfg.Registry, a.Checks(), log).Run(stop) })
			}
			return g.Wait()
		},
	}
	o.flags(cmd, "/var/lib/berth/agent")
	f := cmd.Flags()
	f.StringSliceVar(&volumes, "volume", nil, "name=/path of a mounted volume")
	f.StringArrayVar(&scopes, "scope-mount", nil, "name=TYPE,SOURCE[,OPTION...] with {scope} in it: how to mount the scopes of a volume, if each is a separate mount")
	f.StringSliceVar(&plugins, "plugin", nil, "accelerator plugin programs")
	pathFlag(cmd, &file, "plugin-file", "", "YAML file of further accelerator plugins, with their settings, roots and permissions")
	zoneFlag(cmd, &zone)
	f.StringVar(&group, "resource-group", "", "resource group at the first registration")
	f.StringVar(&overlay, "overlay", "", "address at which agents of other machines reach this one, for sessions over several agents: an IPv4 address, :UDP-port or both (default: the address on the route to the managers, and :4789), or off")
	imageFlags(cmd, &images)
	caFlag(cmd, &bundle)
	lists.flags(cmd)
	floors.flags(cmd)
	f.StringVar(&ops, "metrics", "", metricsHelp)
	f.BoolVar(&keep, "keep-sessions", true, "leave sessions running when stopping")
	ended.flags(cmd)
	return cmd
}

// endedOptions limit the data that an agent keeps of ended sessions.
type endedOptions struct {
	kernels int
	logMiB  int64
}

func (o *endedOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.kernels, "keep-ended", kernel.DefaultEndedKernels, "number of ended containers whose exit code and log are kept, if no manager removes them earlier")
	f.Int64Var(&o.logMiB, "keep-ended-log-mib", kernel.DefaultEndedLogBytes>>20, "MiB of logs of ended containers that are kept; the oldest are removed first")
}

// imageFlags are the flags of an agent about how images reach it.
func imageFlags(cmd *cobra.Command, c *agent.ImageConfig) {
	f := cmd.Flags()
	f.StringVar(&c.Listen, "image-exchange", "", "address at which other agents fetch images from this one: an IP address, :TCP-port or both (default: the address on the route to the managers, and :8426), or off")
	f.IntVar(&c.Transfers, "image-transfers", containerd.DefaultTransfers, "number of image layers that are fetched at a time")
	f.IntVar(&c.Cleanup.Above, "image-cleanup-above", agent.DefaultCleanupAbove, "percentage of the images' disk in use from which on images are removed, the least recently used first; 0 = never")
	f.IntVar(&c.Cleanup.Below, "image-cleanup-below", agent.DefaultCleanupBelow, "percentage of the images' disk in use at which no more images are removed")
	f.DurationVar(&c.Cleanup.Grace, "image-cleanup-grace", agent.DefaultCleanupGrace, "time since the last use in which an image is not removed")
	f.IntVar(&c.Uploads, "image-uploads", layers.DefaultUploads, "number of parts of images that are sent to other agents at a time")
}

func storageCommand() *cobra.Command {
	var (
		o           nodeOptions
		volumes     []string
		file, sftp  string
		listen, url string
		ops         string
		origins     []string
		reach       []string
	)
	cmd := &cobra.Command{
		Use: "storage", Short: "Run a storage proxy", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(o.level, o.asJSON)
			if err != nil {
				return err
			}
			if err := confine.Directory(o.dir, 0o700); err != nil {
				return err
			}
			token, err := o.token.read()
			if err != nil {
				return err
			}
			registry := opsserver.NewRegistry(version, "storage")
			cfg := storage.Config{
				Name: o.name, Dir: o.dir, PublicURL: url, Origins: origins, ObjectStorages: reach, Managers: o.managers,
				JoinToken: token, CAFingerprint: o.fingerprint, Version: version, Logger: log, Registry: registry,
			}
			for _, v := range volumes {
				name, path, ok := strings.Cut(v, "=")
				if !ok || !filepath.IsAbs(path) {
					return fmt.Errorf("--volume %q: want name=/absolute/path", v)
				}
				cfg.Volumes = append(cfg.Volumes, storage.VolumeConfig{
					Name: name, MountPath: path, Backend: filepath.Join(o.bin, "plugins/volume/vfs"),
				})
			}
			if file != "" {
				more, err := volume.Read(file, filepath.Join(o.bin, "plugins/volume"))
				if err != nil {
					return fmt.Errorf("--volume-file: %w", err)
				}
				cfg.Volumes = append(cfg.Volumes, more...)
			}
			if cfg.SFTP, err = listenAt("sftp", sftp, filepath.Join(o.dir, "sftp.port")); err != nil {
				return err
			}
			p, err := storage.New(cfg)
			if err != nil {
				return err
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return err
			}
			opsAt, err := listenAt("metrics", ops, filepath.Join(o.dir, "metrics.port"))
			if err != nil {
				return err
			}
			srv := &http.Server{Handler: p.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
			g, ctx := errgroup.WithContext(cmd.Context())
			g.Go(func() error { return p.Run(ctx) })
			if opsAt != nil {
				g.Go(func() error { return opsserver.New(opsAt, registry, p.Checks(), log).Run(ctx) })
			}
			g.Go(func() error {
				<-ctx.Done()
				return srv.Close()
			})
			g.Go(func() error {
				if err := srv.Serve(l); err != http.ErrServerClosed {
					return err
				}
				return nil
			})
			return g.Wait()
		},
	}
	o.flags(cmd, "/var/lib/berth/storage")
	f := cmd.Flags()
	f.StringSliceVar(&volumes, "volume", nil, "name=/path of a mounted volume of the plugin vfs")
	pathFlag(cmd, &file, "volume-file", "", "YAML file of volumes with their plugins and options, see docs/storage")
	f.StringVar(&listen, "listen", "127.0.0.1:8422", "address for uploads and downloads")
	f.StringVar(&sftp, "sftp", "off", "address of folders by SFTP, such as :8423, or off")
	f.StringVar(&ops, "metrics", "", metricsHelp)
	f.StringVar(&url, "public-url", "", "base URL of --listen for people")
	f.StringSliceVar(&reach, "object-storage-network", nil, "internal hosts and networks that users can name as object storages")
	f.StringSliceVar(&origins, "origin", nil, "origins of the web page")
	return cmd
}

// floorOptions are the flags for the minimum free space; with less, an agent accepts no new
// sessions.
type floorOptions struct {
	diskPercent, inodePercent float64
	disk, memory              string
}

func (o *floorOptions) flags(cmd *cobra.Command) {
	f, d := cmd.Flags(), condition.Defaults
	f.Float64Var(&o.diskPercent, "min-free-disk-percent", d.DiskPercent, "free space of a disk, in percent, below which the machine takes no new sessions")
	f.StringVar(&o.disk, "min-free-disk", "1g", "free space of a disk below which the machine takes no new sessions; of a small disk at most a tenth")
	f.Float64Var(&o.inodePercent, "min-free-inodes-percent", d.InodePercent, "free inodes of a disk, in percent, below which the machine takes no new sessions")
	f.StringVar(&o.memory, "min-free-memory", "256m", "available memory below which the machine takes no new sessions")
}

func (o *floorOptions) limits() (l condition.Limits, err error) {
	l.DiskPercent, l.InodePercent = o.diskPercent, o.inodePercent
	for _, p := range []float64{o.diskPercent, o.inodePercent} {
		if p < 0 || p > 90 {
			return l, fmt.Errorf("--min-free-disk-percent, --min-free-inodes-percent: %g is not between 0 and 90", p)
		}
	}
	if l.DiskBytes, err = resource.Parse(resource.Mem, o.disk); err != nil {
		return l, fmt.Errorf("--min-free-disk: %w", err)
	}
	if l.MemoryBytes, err = resource.Parse(resource.Mem, o.memory); err != nil {
		return l, fmt.Errorf("--min-free-memory: %w", err)
	}
	return l, nil
}

// networkLists are the flags for networks that an agent's containers can reach.
type networkLists struct{ allow, deny []string }

func (l *networkLists) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&l.allow, "allow-network", nil, "private network that containers can reach, as CIDR or address, with :PORT for one port of TCP and UDP; repeatable (default none: 10/8, 172.16/12, 192.168/16 and 100.64/10 are denied)")
	f.StringSliceVar(&l.deny, "deny-network", nil, "further network that containers cannot reach, as CIDR or address; repeatable. Of several networks that contain an address, the narrowest decides")
}

func (l *networkLists) set(cfg *agent.Config) (err error) {
	if cfg.AllowNetworks, err = netlist.Parse(l.allow); err != nil {
		return fmt.Errorf("--allow-network: %w", err)
	}
	if cfg.DenyNetworks, err = netlist.ParseNetworks(l.deny); err != nil {
		return fmt.Errorf("--deny-network: %w", err)
	}
	return nil
}
