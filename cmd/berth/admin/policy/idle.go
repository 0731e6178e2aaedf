package policy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/lifecycle"
)

// IdleCommand returns the command "berth admin idle".
func IdleCommand(a *cli.App) *cobra.Command {
	cmd := cli.Group("idle", "Manage idle checkers, which end sessions that are no longer used",
		idleList(a), idleShow(a), idleCreate(a), idleUpdate(a), idleDelete(a), idleBind(a, true), idleBind(a, false),
		idleDryRun(a), idleExempt(a))
	cmd.Long = `Manage idle checkers, which end sessions that are no longer used. A checker
applies where it is bound: to a domain, a project, a resource group or to all
sessions. Every checker that applies to a session checks it, and the owner is
warned before the first of them ends it. Use dry-run before you bind a checker.`
	return cmd
}

func idleList(a *cli.App) *cobra.Command {
	return a.List("List idle checkers", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.IdleCheckers(ctx, "")
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return idleTable(list...) })
	})
}

func idleTable(list ...client.IdleChecker) *output.Table {
	t := output.NewTable("NAME", "KIND", "TIMEOUT", "THRESHOLDS", "WARNING", "OF", "IN FORCE", "BINDS").Spare("OF", "WARNING")
	for _, ic := range list {
		t.Row(ic.Name, ic.Kind, cli.Seconds(ic.Timeout), thresholdsText(ic), cli.Seconds(ic.Warning), strings.Join(cli.EnumTexts(ic.SessionTypes), ", "),
			cli.ActiveCell(ic.Enabled), strings.Join(boundTo(ic), ", "))
	}
	return t
}

func thresholdsText(ic client.IdleChecker) string {
	var all []string
	for _, one := range ic.Thresholds {
		all = append(all, one.Slot+" "+number(one.Percent)+" %")
	}
	return strings.Join(all, map[string]string{"any": " or ", "all": " and "}[ic.Match.String()])
}

// boundTo lists the objects that a checker applies to.
func boundTo(ic client.IdleChecker) []string {
	var all []string
	for _, b := range ic.Bindings {
		switch {
		case b.Everywhere:
			all = append(all, "everything")
		case b.ResourceGroup != nil:
			all = append(all, "group "+b.ResourceGroup.Name)
		default:
			all = append(all, cli.HolderText(b.Domain, b.Project, nil, "something that you cannot see"))
		}
	}
	return all
}

func idleShow(a *cli.App) *cobra.Command {
	return a.Verb("show CHECKER", "Show an idle checker", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		ic, err := findIdleChecker(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.Printer().Print(ic, func() error {
			s := a.Sheet()
			s.Fact("Name", ic.Name)
			s.Fact("ID", ic.ID)
			s.Fact("Description", ic.Description)
			s.Fact("Kind", ic.Kind.String())
			s.Fact("In force", cli.YesNo(ic.Enabled))
			s.Fact("Timeout", cli.Seconds(ic.Timeout))
			s.Fact("Thresholds", thresholdsText(*ic))
			s.Fact("Grace", cli.Seconds(ic.Grace)+" for new sessions, "+cli.Seconds(ic.NewUserGrace)+" for new users")
			s.Fact("Warning", cli.Seconds(ic.Warning)+" before the end")
			s.Fact("Ignored apps", strings.Join(ic.IgnoredApps, ", "))
			s.Fact("Sessions", strings.Join(cli.EnumTexts(ic.SessionTypes), ", "))
			for _, at := range boundTo(*ic) {
				s.Fact("Binds", at)
			}
			s.Fact("Created", a.Moment(&ic.CreatedAt))
			return nil
		})
	})
}

// idleFlags adds the flags for the settings of a checker.
func idleFlags(cmd *cobra.Command, in *client.UpdateIdleCheckerInput) {
	cli.OptionalText(cmd, &in.Description, "description", "its purpose")
	cli.OptionalBool(cmd, &in.Enabled, "enabled", "in force where it is bound; --enabled=false lets it rest")
	cli.OptionalFlag(cmd, &in.Timeout, "timeout", "`time` of life, without traffic, or the window that is looked at: 1m to 365d", cli.ParseSeconds)
	cli.OptionalFlag(cmd, &in.Grace, "grace", "`time` that a new session is left alone", cli.ParseSeconds)
	cli.OptionalFlag(cmd, &in.NewUserGrace, "new-user-grace", "`time` that the sessions of a new user are left alone", cli.ParseSeconds)
	cli.OptionalFlag(cmd, &in.Warning, "warning", "`time` between the warning and the end (default 5m, or half of a short timeout)", cli.ParseSeconds)
	cli.ParsedFlag(cmd, &in.Match, "match", "`which` thresholds must hold: all or any (default all)", cli.Choice("all", "any"))
	cli.ParsedFlag(cmd, &in.Thresholds, "threshold", "highest use in percent, by `kind of slot`, such as cpu=5,cuda=1", parseThresholds)
	cli.ListFlag(cmd, &in.SessionTypes, "session-types", "`types` of sessions: interactive, batch (default interactive)", cli.Choices(lifecycle.UserTypes...))
	cli.ListFlag(cmd, &in.IgnoredApps, "ignore-apps", "`apps` by name or port whose traffic does not count as use, such as tensorboard; for the kind network", func(text string) ([]string, error) { return cli.Words(text), nil })
	for flag, field := range map[string]string{
		"description": "description", "timeout": "timeout", "grace": "grace", "new-user-grace": "newUserGrace", "warning": "warning",
		"threshold": "thresholds", "session-types": "sessionTypes", "ignore-apps": "ignoredApps",
	} {
		cli.SetsField(cmd, flag, field)
	}
}

// parseThresholds reads percentages by kind of slot: cpu=5,cuda=1.
func parseThresholds(text string) ([]client.IdleThresholdInput, error) {
	var all []client.IdleThresholdInput
	for _, one := range cli.Words(text) {
		slot, amount, ok := strings.Cut(one, "=")
		p, err := strconv.ParseFloat(strings.TrimSuffix(amount, "%"), 64)
		if !ok || slot == "" || err != nil {
			return nil, fmt.Errorf("%q: write slot=percent, for example cpu=5,cuda=1", one)
		}
		all = append(all, client.IdleThresholdInput{Slot: slot, Percent: p})
	}
	if len(all) == 0 {
		return nil, errors.New("name a kind of slot, for example cuda=1")
	}
	return all, nil
}

const idleKinds = "lifetime, network, utilization or memory"

func idleCreate(a *cli.App) *cobra.Command {
	var terms client.UpdateIdleCheckerInput
	var kind client.Enum
	cmd := a.Verb("create NAME", "Create an idle checker; bind it to apply it", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			in, err := wholeChecker(terms, kind)
			if err != nil {
				return err
			}
			in.Name = args[0]
			ic, err := c.CreateIdleChecker(ctx, in)
			if err != nil {
				return err
			}
			return a.Table(ic, func() *output.Table { return idleTable(*ic) })
		})
	cmd.Long = `Create an idle checker of one of these kinds:
  lifetime      a session runs for longer than the timeout
  network       no terminal was open, no command ran and its ports had no traffic
                during the timeout
  utilization   its average use during the timeout was not above the thresholds
  memory        the memory of its accelerators stayed at or below the thresholds
                during the timeout`
	cmd.Example = `  berth admin idle create unused --kind network --timeout 2h --grace 30m
  berth admin idle create lazy --kind utilization --timeout 3h --threshold cpu=5,cuda=3`
	cli.ParsedFlag(cmd, &kind, "kind", "`kind` of checker: "+idleKinds, cli.Choice("lifetime", "network", "utilization", "memory"))
	idleFlags(cmd, &terms)
	return cmd
}

// wholeChecker returns an error if a new checker has no kind or no timeout.
func wholeChecker(terms client.UpdateIdleCheckerInput, kind client.Enum) (client.CreateIdleCheckerInput, error) {
	in := cli.Convert[client.CreateIdleCheckerInput](terms)
	if kind == "" || terms.Timeout == nil {
		return in, cli.Usagef("name its --kind and --timeout")
	}
	in.Kind = kind
	return in, nil
}

func idleUpdate(a *cli.App) *cobra.Command {
	var in client.UpdateIdleCheckerInput
	cmd := a.Verb("update CHECKER", "Change an idle checker for everything it applies to", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := cli.RequireChanges(in); err != nil {
				return err
			}
			id, err := findIdleCheckerID(ctx, c, args[0])
			if err != nil {
				return err
			}
			in.ID = id
			ic, err := c.UpdateIdleChecker(ctx, in)
			if err != nil {
				return err
			}
			return a.Table(ic, func() *output.Table { return idleTable(*ic) })
		})
	cli.OptionalText(cmd, &in.Name, "name", "another `name`")
	cli.SetsField(cmd, "name", "name")
	idleFlags(cmd, &in)
	return cmd
}

func idleDelete(a *cli.App) *cobra.Command {
	return cli.Alias(a.OnEach("delete CHECKER", "Remove idle checkers", findIdleCheckerID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteIdleChecker(ctx, id) }), "rm")
}

// idlePlaceFlags name at most one domain, project or resource group.
type idlePlaceFlags struct{ domain, project, group string }

func (f *idlePlaceFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.domain, "domain", "", "the sessions of a domain, by name or id")
	flags.StringVar(&f.project, "project", "", "the sessions of a project, by name, domain/name or id")
	flags.StringVar(&f.group, "group", "", "the sessions on a resource group, by name or id")
}

func (f *idlePlaceFlags) place(ctx context.Context, c *client.Client) (at client.IdlePlace, err error) {
	if cli.CountSet(f.domain, f.project, f.group) > 1 {
		return at, cli.Usagef("name one of --domain, --project and --group")
	}
	if at.Domain, err = cli.FindDomainID(ctx, c, f.domain); err != nil {
		return at, err
	}
	if at.Project, err = cli.FindProjectID(ctx, c, f.project); err != nil {
		return at, err
	}
	at.ResourceGroup, err = cli.FindGroupID(ctx, c, f.group)
	return at, err
}

func idleBind(a *cli.App, bind bool) *cobra.Command {
	use, short := "bind CHECKER", "Apply an idle checker to a domain, project, resource group or to all sessions"
	if !bind {
		use, short = "unbind CHECKER", "Stop applying an idle checker to a domain, project or resource group"
	}
	var f idlePlaceFlags
	var everything bool
	cmd := a.Verb(use, short, cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if (cli.CountSet(f.domain, f.project, f.group) > 0) == everything {
			return cli.Usagef("name one of --domain, --project, --group and --everything")
		}
		id, err := findIdleCheckerID(ctx, c, args[0])
		if err != nil {
			return err
		}
		at, err := f.place(ctx, c)
		if err != nil {
			return err
		}
		in := client.AttachIdleCheckerInput{Checker: id, Domain: at.Domain, Project: at.Project, ResourceGroup: at.ResourceGroup}
		do := c.AttachIdleChecker
		if !bind {
			do = func(ctx context.Context, in client.AttachIdleCheckerInput) (*client.IdleChecker, error) {
				return c.DetachIdleChecker(ctx, client.DetachIdleCheckerInput(in))
			}
		}
		ic, err := do(ctx, in)
		if err != nil {
			return err
		}
		return a.Table(ic, func() *output.Table { return idleTable(*ic) })
	})
	f.add(cmd)
	cmd.Flags().BoolVar(&everything, "everything", false, "all sessions")
	return cmd
}

func idleExempt(a *cli.App) *cobra.Command {
	var off bool
	cmd := a.OnEach("exempt SESSION", "Exempt sessions from idle checks; --off ends the exemption",
		func(ctx context.Context, c *client.Client, ref string) (string, error) {
			s, err := cli.FindSession(ctx, c, ref)
			if err != nil {
				return "", err
			}
			return s.ID, nil
		},
		func(ctx context.Context, c *client.Client, id string) error {
			return c.SetSessionIdleExempt(ctx, id, !off)
		})
	cmd.Flags().BoolVar(&off, "off", false, "idle checks look at them again")
	return cmd
}

func findIdleChecker(ctx context.Context, c *client.Client, ref string) (*client.IdleChecker, error) {
	if !cli.IsID(ref) {
		found, err := c.IdleCheckerByName(ctx, ref)
		return cli.ByName("idle checker", ref, found, err)
	}
	all, err := c.IdleCheckers(ctx, "")
	return cli.Pick(ctx, c, "idle checker", ref, all, err, func(ic client.IdleChecker) (id, name string) { return ic.ID, ic.Name })
}

func findIdleCheckerID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return cli.IDOr(ref, func() (*client.IdleChecker, error) { return findIdleChecker(ctx, c, ref) }, func(ic *client.IdleChecker) string { return ic.ID })
}
