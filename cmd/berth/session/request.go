package session

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/preset"
	"github.com/berthhq/berth/internal/resource"
)

// RequestFlags are the flags of a request that new sessions and the replicas of deployments have in common.
type RequestFlags struct {
	slotFlags
	mounts, env          []string
	group                string
	priority, kernels    int
	bootstrap, shm, disk string
	preset               string
	agents               []string
	only, preemptible    bool
	tags                 []string

	// Partial reports whether the request is based on another one, which supplies what no flag sets.
	Partial bool
}

// Register adds the flags to a command.
func (f *RequestFlags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.cpu, "cpu", "1", "CPU cores; fractions allowed")
	flags.StringVar(&f.mem, "mem", "1g", "memory")
	flags.StringVar(&f.gpu, "gpu", "", "accelerators of the only kind that the cluster has; fractions where shared")
	flags.StringArrayVarP(&f.more, "resource", "r", nil, "any slot, as slot=amount (repeatable)")
	flags.StringArrayVarP(&f.mounts, "volume", "v", nil, "mount a folder: folder[/subpath][:path[:ro]] (repeatable)")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "environment: NAME=value, or NAME for its value here (repeatable)")
	flags.StringVar(&f.group, "group", "", "resource group (default: the first one open to the project)")
	flags.IntVar(&f.priority, "priority", 10, "0 to 100, higher first")
	flags.StringVar(&f.bootstrap, "bootstrap", "", "file with a shell script that runs before the command")
	flags.StringVar(&f.shm, "shm", "", "size of /dev/shm, for example 1g")
	flags.StringVar(&f.disk, "disk", "", "size that each container may write on its machine, folders not counted, for example 10g (default 20g, or less by policy)")
	flags.IntVar(&f.kernels, "kernels", 0, "containers of the session, each with all of the above, that start together (default 1)")
	flags.StringVar(&f.preset, "preset", "", "preset whose amounts and --shm apply unless a flag sets them (see: berth preset ls)")
	flags.StringArrayVar(&f.agents, "agent", nil, "prefer this agent, by `name` or id (repeatable)")
	flags.BoolVar(&f.only, "only-agents", false, "run on an agent named with --agent or wait for one; for administrators")
	flags.BoolVar(&f.preemptible, "preemptible", false, "it may be ended for a session of a higher priority, where the resource group does that")
	flags.StringArrayVar(&f.tags, "tag", nil, "label of the session (repeatable)")
	for flag, field := range map[string]string{
		"tag": "tags", "agent": "agents", "only-agents": "strictAgents", "volume": "mounts", "env": "environment", "resource": "slots",
		"group": "resourceGroup", "shm": "shmBytes", "disk": "diskBytes", "bootstrap": "bootstrapScript",
	} {
		cli.SetsField(cmd, flag, field)
	}
}

// Fill sets the fields of a request that the flags set.
func (f *RequestFlags) Fill(ctx context.Context, a *cli.App, cmd *cobra.Command, c *client.Client, in *client.CreateSessionInput) error {
	in.Tags, in.StrictAgents, in.Preemptible = f.tags, f.only, f.preemptible
	for _, text := range f.mounts {
		m, err := parseMount(text)
		if err != nil {
			return err
		}
		in.Mounts = append(in.Mounts, m)
	}
	var err error
	if in.Environment, err = parseEnv(f.env, a.Env); err != nil {
		return err
	}
	if f.kernels != 0 {
		in.Kernels = &f.kernels
	}
	if cmd.Flags().Changed("priority") {
		in.Priority = &f.priority
	}
	if err := f.sizes(in); err != nil {
		return err
	}
	if f.bootstrap != "" {
		script, err := os.ReadFile(f.bootstrap)
		if err != nil {
			return fmt.Errorf("--bootstrap: %w", err)
		}
		in.BootstrapScript = string(script)
	}
	for _, ref := range f.agents {
		agent, err := cli.FindAgent(ctx, c, ref)
		if err != nil {
			return err
		}
		in.Agents = append(in.Agents, agent.ID)
	}
	if err := f.fromPreset(ctx, cmd, c, in); err != nil {
		return err
	}
	slots, err := f.amounts(ctx, cmd, c)
	if err != nil {
		return err
	}
	in.Slots = slots.Strings()
	if f.group == "" {
		return nil
	}
	who, err := c.Viewer(ctx)
	if err != nil {
		return err
	}
	in.ResourceGroup, err = cli.FindRef("resource group", f.group, who.ResourceGroups)
	return err
}

// sizes reads the sizes of /dev/shm and of the disk.
func (f *RequestFlags) sizes(in *client.CreateSessionInput) error {
	if f.shm != "" {
		n, err := resource.Parse(resource.Mem, f.shm)
		if err != nil {
			return cli.Usagef("--shm %s: not a size such as 512m", f.shm)
		}
		in.ShmBytes = &n
	}
	if f.disk != "" {
		n, err := resource.Parse(resource.Mem, f.disk)
		if err != nil {
			return cli.Usagef("--disk %s: not a size such as 10g", f.disk)
		}
		in.DiskBytes = &n
	}
	return nil
}

// amounts returns the requested slots: all of them or, if the request is based on another one, only
// those of the flags.
func (f *RequestFlags) amounts(ctx context.Context, cmd *cobra.Command, c *client.Client) (resource.Slots, error) {
	if !f.Partial {
		return f.slots(ctx, c)
	}
	given, err := f.named()
	if err != nil {
		return nil, err
	}
	others := f.slotFlags
	others.more = nil
	slots, err := others.slots(ctx, c)
	if err != nil {
		return nil, err
	}
	for slot, flag := range map[string]string{resource.CPU: "cpu", resource.Mem: "mem"} {
		if !cmd.Flags().Changed(flag) {
			delete(slots, slot)
		}
	}
	maps.Copy(slots, given)
	return slots, nil
}

// fromPreset fills in the fields that no flag sets.
func (f *RequestFlags) fromPreset(ctx context.Context, cmd *cobra.Command, c *client.Client, in *client.CreateSessionInput) error {
	if f.preset == "" {
		return nil
	}
	p, err := preset.Find(ctx, c, f.preset, f.group)
	if err != nil {
		return err
	}
	if f.shm == "" {
		in.ShmBytes = &p.ShmBytes
	}
	for slot, amount := range p.Slots {
		switch {
		case slices.ContainsFunc(f.more, func(r string) bool { return strings.HasPrefix(r, slot+"=") }):
		case slot == resource.CPU && cmd.Flags().Changed("cpu"), slot == resource.Mem && cmd.Flags().Changed("mem"):
		case slot == resource.CPU && !f.Partial:
			f.cpu = amount
		case slot == resource.Mem && !f.Partial:
			f.mem = amount
		default:
			f.more = append(f.more, slot+"="+amount)
		}
	}
	return nil
}
