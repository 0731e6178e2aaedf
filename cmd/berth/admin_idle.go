package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/spf13/cobra"
)

func (a *app) idleCommand() *cobra.Command {
	cmd := group("idle", "Manage idle checkers, which end sessions that are no longer used",
		a.idleList(), a.idleShow(), a.idleCreate(), a.idleUpdate(), a.idleDelete(), a.idleBind(true), a.idleBind(false),
		a.idleDryRun(), a.idleExempt())
	cmd.Long = `Manage idle checkers, which end sessions that are no longer used. A checker
applies where it is bound: to a domain, a project, a resource group or to all
sessions. Every checker that applies to a session checks it, and the owner is
warned before the first of them ends it. Use dry-run before you bind a checker.`
	return cmd
}

func (a *app) idleList() *cobra.Command {
	return a.list("List idle checkers", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.IdleCheckers(ctx, "")
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table { return idleTable(list...) })
	})
}

func idleTable(list ...client.IdleChecker) *output.Table {
	t := output.NewTable("NAME", "KIND", "TIMEOUT", "THRESHOLDS", "WARNING", "OF", "IN FORCE", "BINDS").Spare("OF", "WARNING")
	for _, ic := range list {
		t.Row(ic.Name, ic.Kind, seconds(ic.Timeout), thresholdsText(ic), seconds(ic.Warning), strings.Join(ic.SessionTypes, ", "),
			activity(ic.Enabled), strings.Join(boundTo(ic), ", "))
	}
	return t
}

func thresholdsText(ic client.IdleChecker) string {
	var all []string
	for _, one := range ic.Thresholds {
		all = append(all, one.Slot+" "+number(one.Percent)+" %")
	}
	return strings.Join(all, map[string]string{"any": " or ", "all": " and "}[ic.Match])
}

// boundTo lists where a checker is in force.
func boundTo(ic client.IdleChecker) []string {
	var all []string
	for _, b := range ic.Bindings {
		switch {
		case b.Everywhere:
			all = append(all, "everything")
		case b.ResourceGroup != nil:
			all = append(all, "group "+b.ResourceGroup.Name)
		default:
			all = append(all, holderText(b.Domain, b.Project, nil, "something out of sight"))
		}
	}
	return all
}

func (a *app) idleShow() *cobra.Command {
	return a.verb("show CHECKER", "Show an idle checker", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		ic, err := findIdleChecker(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.print().Print(ic, func() error {
			s := a.sheet()
			s.fact("Name", ic.Name)
			s.fact("ID", ic.ID)
			s.fact("Description", ic.Description)
			s.fact("Kind", ic.Kind)
			s.fact("In force", yesNo(ic.Enabled))
			s.fact("Timeout", seconds(ic.Timeout))
			s.fact("Thresholds", thresholdsText(*ic))
			s.fact("Grace", seconds(ic.Grace)+" for new sessions, "+seconds(ic.NewUserGrace)+" for new users")
			s.fact("Warning", seconds(ic.Warning)+" before the end")
			s.fact("Sessions", strings.Join(ic.SessionTypes, ", "))
			for _, at := range boundTo(*ic) {
				s.fact("Binds", at)
			}
			s.fact("Created", a.moment(&ic.CreatedAt))
			return nil
		})
	})
}

// idleFlags are the terms of a checker.
func idleFlags(cmd *cobra.Command, in *client.UpdateIdleCheckerInput) {
	givenText(cmd, &in.Description, "description", "its purpose")
	givenBool(cmd, &in.Enabled, "enabled", "in force where it is bound; --enabled=false lets it rest")
	given(cmd, &in.Timeout, "timeout", "`time` of life, without traffic, or the window that is looked at: 1m to 365d", parseSeconds)
	given(cmd, &in.Grace, "grace", "`time` that a new session is left alone", parseSeconds)
	given(cmd, &in.NewUserGrace, "new-user-grace", "`time` that the sessions of a new user are left alone", parseSeconds)
	given(cmd, &in.Warning, "warning", "`time` between the warning and the end (default 5m, or half of a short timeout)", parseSeconds)
	parsed(cmd, &in.Match, "match", "`which` thresholds must hold: all or any (default all)", choice("all", "any"))
	parsed(cmd, &in.Thresholds, "threshold", "highest use in percent, by `kind of slot`, such as cpu=5,cuda=1", parseThresholds)
	givenList(cmd, &in.SessionTypes, "session-types", "`types` of sessions: interactive, batch (default interactive)", choices(lifecycle.SessionTypes...))
	for flag, field := range map[string]string{
		"description": "description", "timeout": "timeout", "grace": "grace", "new-user-grace": "newUserGrace", "warning": "warning",
		"threshold": "thresholds", "session-types": "sessionTypes",
	} {
		sets(cmd, flag, field)
	}
}

// parseThresholds reads percentages by kind of slot: cpu=5,cuda=1.
func parseThresholds(text string) ([]client.IdleThresholdInput, error) {
	var all []client.IdleThresholdInput
	for _, one := range words(text) {
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

func (a *app) idleCreate() *cobra.Command {
	var terms client.UpdateIdleCheckerInput
	var kind string
	cmd := a.verb("create NAME", "Create an idle checker; bind it to apply it", count(1, 1),
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
			return a.table(ic, func() *output.Table { return idleTable(*ic) })
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
	parsed(cmd, &kind, "kind", "`kind` of checker: "+idleKinds, choice("lifetime", "network", "utilization", "memory"))
	idleFlags(cmd, &terms)
	return cmd
}

// wholeChecker refuses a new checker without a kind and a timeout.
func wholeChecker(terms client.UpdateIdleCheckerInput, kind string) (client.CreateIdleCheckerInput, error) {
	in := as[client.CreateIdleCheckerInput](terms)
	if kind == "" || terms.Timeout == nil {
		return in, usagef("name its --kind and --timeout")
	}
	in.Kind = kind
	return in, nil
}

func (a *app) idleUpdate() *cobra.Command {
	var in client.UpdateIdleCheckerInput
	cmd := a.verb("update CHECKER", "Change an idle checker for everything it applies to", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := changes(in); err != nil {
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
			return a.table(ic, func() *output.Table { return idleTable(*ic) })
		})
	givenText(cmd, &in.Name, "name", "another `name`")
	sets(cmd, "name", "name")
	idleFlags(cmd, &in)
	return cmd
}

func (a *app) idleDelete() *cobra.Command {
	return alias(a.onEach("delete CHECKER", "Remove idle checkers", findIdleCheckerID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteIdleChecker(ctx, id) }), "rm")
}

// idlePlaceFlags name at most one place.
type idlePlaceFlags struct{ domain, project, group string }

func (f *idlePlaceFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.domain, "domain", "", "the sessions of a domain, by name or id")
	flags.StringVar(&f.project, "project", "", "the sessions of a project, by name, domain/name or id")
	flags.StringVar(&f.group, "group", "", "the sessions on a resource group, by name or id")
}

func (f *idlePlaceFlags) place(ctx context.Context, c *client.Client) (at client.IdlePlace, err error) {
	if howMany(f.domain, f.project, f.group) > 1 {
		return at, usagef("name one of --domain, --project and --group")
	}
	if at.Domain, err = findDomainID(ctx, c, f.domain); err != nil {
		return at, err
	}
	if at.Project, err = findProjectID(ctx, c, f.project); err != nil {
		return at, err
	}
	at.ResourceGroup, err = findGroupID(ctx, c, f.group)
	return at, err
}

func (a *app) idleBind(bind bool) *cobra.Command {
	use, short := "bind CHECKER", "Apply an idle checker to a domain, project, resource group or to all sessions"
	if !bind {
		use, short = "unbind CHECKER", "Stop applying an idle checker to a domain, project or resource group"
	}
	var f idlePlaceFlags
	var everything bool
	cmd := a.verb(use, short, count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		if (howMany(f.domain, f.project, f.group) > 0) == everything {
			return usagef("name one of --domain, --project, --group and --everything")
		}
		id, err := findIdleCheckerID(ctx, c, args[0])
		if err != nil {
			return err
		}
		at, err := f.place(ctx, c)
		if err != nil {
			return err
		}
		in := client.BindIdleCheckerInput{Checker: id, Domain: at.Domain, Project: at.Project, ResourceGroup: at.ResourceGroup}
		do := c.BindIdleChecker
		if !bind {
			do = func(ctx context.Context, in client.BindIdleCheckerInput) (*client.IdleChecker, error) {
				return c.UnbindIdleChecker(ctx, client.UnbindIdleCheckerInput(in))
			}
		}
		ic, err := do(ctx, in)
		if err != nil {
			return err
		}
		return a.table(ic, func() *output.Table { return idleTable(*ic) })
	})
	f.add(cmd)
	cmd.Flags().BoolVar(&everything, "everything", false, "all sessions")
	return cmd
}

func (a *app) idleDryRun() *cobra.Command {
	var terms client.UpdateIdleCheckerInput
	var kind string
	var f idlePlaceFlags
	cmd := a.verb("dry-run [CHECKER]", "Show what an idle checker, existing or new, would end now", count(0, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			at, err := f.place(ctx, c)
			if err != nil {
				return err
			}
			id, made := "", (*client.CreateIdleCheckerInput)(nil)
			if len(args) > 0 {
				if changes(terms) == nil || kind != "" {
					return usagef("name a checker, or with flags one to be made")
				}
				id, err = findIdleCheckerID(ctx, c, args[0])
			} else {
				made = new(client.CreateIdleCheckerInput)
				*made, err = wholeChecker(terms, kind)
			}
			if err != nil {
				return err
			}
			run, err := c.IdleDryRun(ctx, id, made, at)
			if err != nil {
				return err
			}
			return a.printIdleDryRun(run)
		})
	cmd.Example = `  berth admin idle dry-run lazy
  berth admin idle dry-run --kind network --timeout 1h --group gpu`
	parsed(cmd, &kind, "kind", "`kind` of checker: "+idleKinds, choice("lifetime", "network", "utilization", "memory"))
	idleFlags(cmd, &terms)
	f.add(cmd)
	return cmd
}

func (a *app) printIdleDryRun(run *client.IdleDryRun) error {
	p := a.print()
	return p.Print(run, func() error {
		fmt.Fprintf(a.out, "Would end %d of %d sessions now.", run.Ending, run.Examined)
		if run.Unknown > 0 {
			fmt.Fprintf(a.out, " %d were not measured for long enough to tell.", run.Unknown)
		}
		if run.Exempt > 0 {
			fmt.Fprintf(a.out, " %d are exempt.", run.Exempt)
		}
		fmt.Fprintln(a.out)
		if len(run.Sessions) == 0 {
			return nil
		}
		fmt.Fprintln(a.out)
		t := output.NewTable("SESSION", "OWNER", "ENDS", "WHY").Spare("OWNER")
		for _, one := range run.Sessions {
			ends := output.Cell{Text: clock(one.EndsAt)}
			if one.Now {
				ends = output.Cell{Text: "now", Color: output.Red}
			}
			t.Row(one.Session.Name, one.Session.Owner.Title(), ends, one.Reason)
		}
		return p.Write(t)
	})
}

func (a *app) idleExempt() *cobra.Command {
	var off bool
	cmd := a.onEach("exempt SESSION", "Exempt sessions from idle checks; --off ends the exemption",
		func(ctx context.Context, c *client.Client, ref string) (string, error) {
			s, err := findSession(ctx, c, ref)
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
	all, err := c.IdleCheckers(ctx, nameOrAll(ref))
	return pick(ctx, c, "idle checker", ref, all, err, func(ic client.IdleChecker) (id, name string) { return ic.ID, ic.Name })
}

func findIdleCheckerID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return idOr(ref, func() (*client.IdleChecker, error) { return findIdleChecker(ctx, c, ref) }, func(ic *client.IdleChecker) string { return ic.ID })
}
