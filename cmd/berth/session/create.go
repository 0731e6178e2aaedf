package session

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/preset"
	"github.com/berthhq/berth/internal/resource"
)

// createFlags describe a new session.
type createFlags struct {
	slotFlags
	mounts, env          []string
	name, project, group string
	priority, kernels    int
	bootstrap, shm, disk string
	preset               string
	start                string
	after, agents        []string
	only                 bool
	lifetime             *int
	preemptible          bool
	groupOf              string
	apps                 []client.AppInput
	tags                 []string
	template             string
	from                 string // id of the session to clone
}

func (f *createFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.cpu, "cpu", "1", "CPU cores; fractions allowed")
	flags.StringVar(&f.mem, "mem", "1g", "memory")
	flags.StringVar(&f.gpu, "gpu", "", "accelerators of the only kind that the cluster has; fractions where shared")
	flags.StringArrayVarP(&f.more, "resource", "r", nil, "any slot, as slot=amount (repeatable)")
	flags.StringArrayVarP(&f.mounts, "volume", "v", nil, "mount a folder: folder[/subpath][:path[:ro]] (repeatable)")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "environment: NAME=value, or NAME for its value here (repeatable)")
	flags.StringVar(&f.name, "name", "", "name of the session (default: generated)")
	flags.StringVar(&f.project, "project", "", "project (default: your only one)")
	flags.StringVar(&f.group, "group", "", "resource group (default: the first one open to the project)")
	flags.IntVar(&f.priority, "priority", 10, "0 to 100, higher first")
	flags.StringVar(&f.bootstrap, "bootstrap", "", "file with a shell script that runs before the command")
	flags.StringVar(&f.shm, "shm", "", "size of /dev/shm, for example 1g")
	flags.StringVar(&f.disk, "disk", "", "size that each container may write on its machine, folders not counted, for example 10g (default 20g, or less by policy)")
	flags.IntVar(&f.kernels, "kernels", 0, "containers of the session, each with all of the above, that start together (default 1)")
	flags.StringVar(&f.preset, "preset", "", "preset whose amounts and --shm apply unless a flag sets them (see: berth preset ls)")
	flags.StringVar(&f.start, "start", "", "start a batch session not before a `time`: 2026-01-31T08:00, or a duration from now, such as 2h30m")
	flags.StringArrayVar(&f.after, "after", nil, "start only after this `session` or array has succeeded, by name or id (repeatable)")
	flags.StringArrayVar(&f.agents, "agent", nil, "prefer this agent, by `name` or id (repeatable)")
	flags.BoolVar(&f.only, "only-agents", false, "run on an agent named with --agent or wait for one; for administrators")
	cli.OptionalFlag(cmd, &f.lifetime, "lifetime", "end it after this `duration`, such as 2h; it may then start before others that need more room", cli.ParseSeconds)
	flags.BoolVar(&f.preemptible, "preemptible", false, "it may be ended for a session of a higher priority, where the resource group does that")
	flags.StringVar(&f.groupOf, "group-of", "", "session `group` with which it is placed, by name or id (see: berth session-group)")
	cli.ListFlag(cmd, &f.apps, "app", "app beside those of the image: `name=port`, or name=port:command with the shell command that starts it (repeatable)", parseApp)
	flags.StringArrayVar(&f.tags, "tag", nil, "label of the session (repeatable)")
	cli.SetsField(cmd, "tag", "tags")
	cli.SetsField(cmd, "app", "apps")
	cli.SetsField(cmd, "group-of", "sessionGroup")
	cli.SetsField(cmd, "start", "startsAt")
	cli.SetsField(cmd, "after", "dependsOn")
	cli.SetsField(cmd, "agent", "agents")
	cli.SetsField(cmd, "only-agents", "strictAgents")
	cli.SetsField(cmd, "volume", "mounts")
	cli.SetsField(cmd, "env", "environment")
	cli.SetsField(cmd, "resource", "slots")
	cli.SetsField(cmd, "group", "resourceGroup")
	cli.SetsField(cmd, "shm", "shmBytes")
	cli.SetsField(cmd, "disk", "diskBytes")
	cli.SetsField(cmd, "bootstrap", "bootstrapScript")
}

// fromTemplate adds the flag that names a template.
func (f *createFlags) fromTemplate(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.template, "template", "", "template, by `name` or id, whose request applies unless a flag changes it (see: berth template ls)")
}

// based reports whether the request is based on a template or another session, which supply what no
// flag sets.
func (f *createFlags) based() bool { return f.template != "" || f.from != "" }

// image returns the image from the arguments before the command. A request that is based on another
// one does not need it.
func (f *createFlags) image(cmd *cobra.Command, before []string) (string, error) {
	switch {
	case len(before) == 1:
		return before[0], nil
	case len(before) == 0 && f.template != "":
		return "", nil
	}
	return "", cli.Usagef("usage: %s", cmd.UseLine())
}

// input converts flags and arguments to the input of the API.
func (f *createFlags) input(ctx context.Context, a *cli.App, cmd *cobra.Command, c *client.Client, kind client.Enum, image string, command []string) (client.CreateSessionInput, error) {
	in := client.CreateSessionInput{Name: f.name, Image: image, Type: kind, Command: command, IdempotencyKey: uuid.NewString(), Apps: f.apps, Tags: f.tags, From: f.from}
	var err error
	if f.template != "" {
		if in.Template, err = cli.FindTemplateID(ctx, c, f.template); err != nil {
			return in, err
		}
	}
	for _, text := range f.mounts {
		m, err := parseMount(text)
		if err != nil {
			return in, err
		}
		in.Mounts = append(in.Mounts, m)
	}
	if in.Environment, err = parseEnv(f.env, a.Env); err != nil {
		return in, err
	}
	if f.kernels != 0 {
		in.Kernels = &f.kernels
	}
	if cmd.Flags().Changed("priority") {
		in.Priority = &f.priority
	}
	if f.shm != "" {
		n, err := resource.Parse(resource.Mem, f.shm)
		if err != nil {
			return in, cli.Usagef("--shm %s: not a size such as 512m", f.shm)
		}
		in.ShmBytes = &n
	}
	if f.disk != "" {
		n, err := resource.Parse(resource.Mem, f.disk)
		if err != nil {
			return in, cli.Usagef("--disk %s: not a size such as 10g", f.disk)
		}
		in.DiskBytes = &n
	}
	if f.bootstrap != "" {
		script, err := os.ReadFile(f.bootstrap)
		if err != nil {
			return in, fmt.Errorf("--bootstrap: %w", err)
		}
		in.BootstrapScript = string(script)
	}
	if err := f.when(ctx, a, c, &in); err != nil {
		return in, err
	}
	if err := f.fromPreset(ctx, cmd, c, &in); err != nil {
		return in, err
	}
	slots, err := f.amounts(ctx, cmd, c)
	if err != nil {
		return in, err
	}
	in.Slots = slots.Strings()
	return in, f.place(ctx, c, &in)
}

// amounts returns the requested slots: all of them or, if the request is based on another one, only
// those of the flags.
func (f *createFlags) amounts(ctx context.Context, cmd *cobra.Command, c *client.Client) (resource.Slots, error) {
	if !f.based() {
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

// when looks up the dependencies of the session and the agents that it can run on.
func (f *createFlags) when(ctx context.Context, a *cli.App, c *client.Client, in *client.CreateSessionInput) error {
	if f.start != "" {
		at, err := parseStart(f.start, a.Now())
		if err != nil {
			return err
		}
		in.StartsAt = &at
	}
	for _, ref := range f.after {
		id, err := findNeeded(ctx, c, ref)
		if err != nil {
			return err
		}
		in.DependsOn = append(in.DependsOn, id)
	}
	for _, ref := range f.agents {
		agent, err := cli.FindAgent(ctx, c, ref)
		if err != nil {
			return err
		}
		in.Agents = append(in.Agents, agent.ID)
	}
	in.StrictAgents, in.Lifetime, in.Preemptible = f.only, f.lifetime, f.preemptible
	if f.groupOf == "" {
		return nil
	}
	id, err := cli.FindSessionGroupID(ctx, c, f.groupOf)
	in.SessionGroup = id
	return err
}

// findNeeded finds a session or, if there is none, an array.
func findNeeded(ctx context.Context, c *client.Client, ref string) (string, error) {
	s, err := cli.FindSession(ctx, c, ref)
	if err == nil {
		return s.ID, nil
	}
	if errdefs.IsNotFound(err) {
		if a, arrayErr := cli.FindArray(ctx, c, ref); arrayErr == nil {
			return a.ID, nil
		}
	}
	return "", err
}

// parseStart reads a local time, or a duration from now.
func parseStart(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, cli.Usagef("--start %s: not a time such as 2026-01-31T08:00, nor a duration such as 2h30m", text)
}

// fromPreset fills in the fields that no flag sets.
func (f *createFlags) fromPreset(ctx context.Context, cmd *cobra.Command, c *client.Client, in *client.CreateSessionInput) error {
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
		case slot == resource.CPU && !f.based():
			f.cpu = amount
		case slot == resource.Mem && !f.based():
			f.mem = amount
		default:
			f.more = append(f.more, slot+"="+amount)
		}
	}
	return nil
}

// place looks up the IDs of project and resource group.
func (f *createFlags) place(ctx context.Context, c *client.Client, in *client.CreateSessionInput) error {
	if f.project == "" && f.group == "" {
		return nil
	}
	who, err := c.Viewer(ctx)
	if err != nil {
		return err
	}
	if f.project != "" {
		if in.Project, err = cli.FindRef("project", f.project, who.Projects); err != nil {
			return err
		}
	}
	if f.group != "" {
		in.ResourceGroup, err = cli.FindRef("resource group", f.group, who.ResourceGroups)
	}
	return err
}
