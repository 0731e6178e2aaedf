// Package policy has the commands about limits and access: resource policies, resource groups, fair
// shares and idle checkers.
package policy

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/cmd/berth/usage"
)

// Command returns the command "berth admin policy".
func Command(a *cli.App) *cobra.Command {
	cmd := cli.Group("policy", "Manage resource policies, which set limits",
		policyList(a), policyShow(a), policyCreate(a), policyUpdate(a), policyDelete(a),
		policyAttach(a), policyDetach(a), usage.LimitsCommand(a))
	cmd.Long = `Manage resource policies. A policy applies where it is attached: to a domain, a
project, a user or a keypair. All attached policies apply together, and the
strictest limit decides. A lower limit does not end running sessions, except a
limit on the lifetime or the idle time.`
	return cli.Alias(cmd, "policies")
}

func policyList(a *cli.App) *cobra.Command {
	return a.List("List resource policies", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Policies(ctx, "")
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return policyTable(list...) })
	})
}

func policyTable(list ...client.Policy) *output.Table {
	t := output.NewTable("NAME", "SLOTS", "OTHER SLOTS", "LIMITS", "BINDS")
	for _, p := range list {
		t.Row(p.Name, output.Slots(p.TotalSlots), map[string]string{"zero": "none", "unlimited": "unlimited"}[p.UnlistedSlots.String()],
			strings.Join(policyLimits(p), ", "), strings.Join(bindsText(p), ", "))
	}
	return t
}

// policyLimits lists the limits of a policy other than slots.
func policyLimits(p client.Policy) []string {
	var all []string
	if len(p.MaxPendingSlots) > 0 {
		all = append(all, "pending "+output.Slots(p.MaxPendingSlots))
	}
	for _, l := range []struct {
		what string
		most *int
	}{
		{"sessions", p.MaxSessions}, {"pending sessions", p.MaxPendingSessions}, {"containers per session", p.MaxContainersPerSession},
		{"priority", p.MaxPriority}, {"folders", p.MaxVfolders},
		{"logins", p.MaxLogins}, {"own images", p.MaxCustomizedImages}, {"deployments", p.MaxDeployments},
	} {
		if l.most != nil {
			all = append(all, l.what+" "+strconv.Itoa(*l.most))
		}
	}
	if p.MaxSessionLifetime != nil {
		all = append(all, "lifetime "+cli.Seconds(*p.MaxSessionLifetime))
	}
	if p.IdleTimeout != nil {
		all = append(all, "idle "+cli.Seconds(*p.IdleTimeout))
	}
	if p.MaxPublicAppTime != nil {
		all = append(all, "public apps "+cli.Seconds(*p.MaxPublicAppTime))
	}
	if p.MaxScopeBytes != nil {
		all = append(all, "folders' size "+output.Bytes(*p.MaxScopeBytes))
	}
	return all
}

// bindsText lists where a policy is attached.
func bindsText(p client.Policy) []string {
	var all []string
	for _, at := range p.Attachments {
		all = append(all, attachedTo(at))
	}
	return all
}

func attachedTo(at client.Attachment) string {
	other := "something that you cannot see"
	if at.KeypairID != nil {
		other = "keypair " + *at.KeypairID
	}
	return cli.HolderText(at.Domain, at.Project, at.User, other) + cli.Narrowing(at.ResourceGroup, at.WithinProject)
}

func policyShow(a *cli.App) *cobra.Command {
	return a.Verb("show POLICY", "Show a resource policy", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		p, err := cli.FindPolicy(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.Printer().Print(p, func() error {
			s := a.Sheet()
			s.Fact("Name", p.Name)
			s.Fact("ID", p.ID)
			for _, slot := range slices.Sorted(maps.Keys(p.TotalSlots)) {
				s.Fact("Slot", output.Slots(client.Slots{slot: p.TotalSlots[slot]}))
			}
			s.Fact("Other slots", map[string]string{"zero": "none", "unlimited": "unlimited"}[p.UnlistedSlots.String()])
			for _, text := range policyLimits(*p) {
				s.Fact("Limit", text)
			}
			for _, at := range p.Attachments {
				s.Fact("Binds", attachedTo(at)+" ("+at.ID+")")
			}
			s.Fact("Created", a.Moment(&p.CreatedAt))
			return nil
		})
	})
}

// policyFlags adds a flag for each limit. Limits of an existing policy can also be removed.
func policyFlags(cmd *cobra.Command, in *client.UpdateResourcePolicyInput, there bool) {
	count, span, size, tail := cli.ParseCount, cli.ParseSeconds, cli.ParseSize, ""
	if there {
		count, span, size, tail = cli.Limited(cli.ParseCount), cli.Limited(cli.ParseSeconds), cli.Limited(cli.ParseSize), ", or none for no limit"
	}
	cli.ParsedFlag(cmd, &in.TotalSlots, "slots", "largest `amounts` held at once, such as cpu=8,mem=64g; none for no limit", cli.ParseAmounts)
	cli.ParsedFlag(cmd, &in.UnlistedSlots, "other-slots", "the limit of slots that --slots does not name: `unlimited` or zero", cli.Choice("unlimited", "zero"))
	cli.SetsField(cmd, "slots", "totalSlots")
	cli.SetsField(cmd, "other-slots", "unlistedSlots")
	cli.ParsedFlag(cmd, &in.MaxPendingSlots, "pending-slots", "largest `amounts` that waiting sessions ask for; none for no limit", cli.ParseAmounts)
	for _, f := range []struct {
		into               **int
		name, field, usage string
	}{
		{&in.MaxSessions, "sessions", "maxSessions", "`number` of sessions at once"},
		{&in.MaxPendingSessions, "pending-sessions", "maxPendingSessions", "`number` of waiting sessions"},
		{&in.MaxContainersPerSession, "containers", "maxContainersPerSession", "`number` of containers of a session"},
		{&in.MaxPriority, "priority", "maxPriority", "highest `priority` of a session"},
		{&in.MaxVfolders, "folders", "maxVfolders", "`number` of folders"},
		{&in.MaxCustomizedImages, "own-images", "maxCustomizedImages", "`number` of images that a user makes of sessions"},
		{&in.MaxDeployments, "deployments", "maxDeployments", "`number` of deployments of models"},
		{&in.MaxLogins, "logins", "maxLogins", "`number` of logins at once"},
	} {
		cli.OptionalFlag(cmd, f.into, f.name, f.usage+tail, count)
		cli.SetsField(cmd, f.name, f.field)
	}
	cli.SetsField(cmd, "pending-slots", "maxPendingSlots")
	cli.OptionalFlag(cmd, &in.MaxSessionLifetime, "lifetime", "longest `time` of a session, such as 12h or 7d"+tail, span)
	cli.OptionalFlag(cmd, &in.IdleTimeout, "idle", "longest `time` of a session without use, 1m at least, such as 1h"+tail, span)
	cli.OptionalFlag(cmd, &in.MaxPublicAppTime, "public-apps", "longest `time` for which an app can be open to everybody without a login, such as 1h; without it, no app can; 0s forbids it"+tail, span)
	cli.OptionalFlag(cmd, &in.MaxScopeBytes, "folders-size", "`size` of all folders on a volume, such as 100g"+tail, size)
	cli.OptionalFlag(cmd, &in.MaxDiskBytes, "disk", "maximum `size` that each container of a session may write on its machine, such as 50g; without it, 20g"+tail, size)
	cli.OptionalFlag(cmd, &in.MaxImageBytes, "own-images-size", "`size` that images of sessions add to public images, such as 50g"+tail, size)
	cli.SetsField(cmd, "own-images-size", "maxImageBytes")
	cli.SetsField(cmd, "disk", "maxDiskBytes")
	cli.SetsField(cmd, "lifetime", "maxSessionLifetime")
	cli.SetsField(cmd, "idle", "idleTimeout")
	cli.SetsField(cmd, "public-apps", "maxPublicAppTime")
	cli.SetsField(cmd, "folders-size", "maxScopeBytes")
}

func policyCreate(a *cli.App) *cobra.Command {
	var limits client.UpdateResourcePolicyInput
	cmd := a.Verb("create NAME", "Create a resource policy; without a flag, an amount has no limit", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			in := cli.Convert[client.CreateResourcePolicyInput](limits)
			in.Name = args[0]
			p, err := c.CreatePolicy(ctx, in)
			if err != nil {
				return err
			}
			return a.Table(p, func() *output.Table { return policyTable(*p) })
		})
	cmd.Example = "  berth admin policy create student --slots cpu=4,mem=16g --other-slots zero --sessions 2 --lifetime 12h"
	policyFlags(cmd, &limits, false)
	return cmd
}

func policyUpdate(a *cli.App) *cobra.Command {
	var in client.UpdateResourcePolicyInput
	cmd := a.Verb("update POLICY", "Change a resource policy for everyone it applies to", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := cli.RequireChanges(in); err != nil {
				return err
			}
			p, err := cli.FindPolicy(ctx, c, args[0])
			if err != nil {
				return err
			}
			in.ID = p.ID
			if p, err = c.UpdatePolicy(ctx, in); err != nil {
				return err
			}
			return a.Table(p, func() *output.Table { return policyTable(*p) })
		})
	cmd.Long = `Change a resource policy for everyone it applies to. Without its flag a limit
stays as it is; --slots replaces all amounts of slots. Running sessions continue,
unless they exceed a limit on the lifetime or the idle time.`
	cli.OptionalText(cmd, &in.Name, "name", "another `name`")
	policyFlags(cmd, &in, true)
	return cmd
}

func policyDelete(a *cli.App) *cobra.Command {
	return cli.Alias(a.OnEach("delete POLICY", "Remove resource policies that are not attached", cli.FindPolicyID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeletePolicy(ctx, id) }), "rm")
}
