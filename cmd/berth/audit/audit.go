// Package audit has the commands about the audit log and about how long records are
// kept.
package audit

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth admin audit".
func Command(a *cli.App) *cobra.Command {
	return cli.Group("audit", "Read the audit log", listCommand(a), exportCommand(a))
}

// auditFlags are the filters that both the list and the export of the audit log have.
type auditFlags struct {
	cli.PeriodFlags
	actor, domain, project, entity, result string
}

func (f *auditFlags) register(cmd *cobra.Command) {
	f.PeriodFlags.Register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.actor, "actor", "", "only entries of this user")
	flags.StringVar(&f.domain, "domain", "", "only about this domain")
	flags.StringVar(&f.project, "project", "", "only about this project")
	flags.StringVar(&f.entity, "entity", "", "only about this kind of object, for example session or user")
	flags.StringVar(&f.result, "result", "", "only this result: OK, or a class such as PERMISSION_DENIED")
}

func (f *auditFlags) filter(ctx context.Context, a *cli.App, c *client.Client, into *client.AuditFilter) (err error) {
	if into.From, into.To, err = f.Read(a); err != nil {
		return err
	}
	if into.Actor, err = cli.FindUserID(ctx, c, f.actor); err != nil {
		return err
	}
	if into.Domain, err = cli.FindDomainID(ctx, c, f.domain); err != nil {
		return err
	}
	into.Project, err = cli.FindProjectID(ctx, c, f.project)
	into.Entity, into.Result = f.entity, f.result
	return err
}

func listCommand(a *cli.App) *cobra.Command {
	var flags auditFlags
	var f client.AuditFilter
	cmd := a.List("List the audit log, newest entry first", func(ctx context.Context, c *client.Client, _ []string) error {
		if err := flags.filter(ctx, a, c, &f); err != nil {
			return err
		}
		list, err := c.AuditEntries(ctx, f)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return auditTable(list) })
	})
	cmd.Example = "  berth admin audit ls --refused --since 1d\n  berth admin audit ls --actor kim@example.org --action createSession"
	flags.register(cmd)
	cmd.Flags().StringVar(&f.Action, "action", "", "only this mutation, for example createSession")
	cmd.Flags().StringVar(&f.EntityID, "object", "", "only about the object with this id")
	cmd.Flags().StringVar(&f.Request, "request", "", "only of the request with this id")
	cmd.Flags().BoolVar(&f.Refused, "refused", false, "only entries that were refused or failed")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "how many at most; 0 = all")
	return cmd
}

func exportCommand(a *cli.App) *cobra.Command {
	var flags auditFlags
	cmd := a.Verb("export [FILE]", "Export the audit log as CSV, oldest entry first", cli.Args(0, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			var f client.AuditFilter
			if err := flags.filter(ctx, a, c, &f); err != nil {
				return err
			}
			if path := cli.First(args); path != "" && path != "-" {
				return exportTo(a, path, func(w io.Writer) (int64, error) { return c.ExportAudit(ctx, f, w) })
			}
			_, err := c.ExportAudit(ctx, f, a.Out)
			return err
		})
	cmd.Long = `Export the audit log as CSV, oldest entry first, to a file or to standard output.
An existing file is not overwritten, and an incomplete file is removed.`
	cmd.Example = "  berth admin audit export --since 2026-01-01 --until 2026-02-01 january.csv"
	flags.register(cmd)
	return cmd
}

// exportTo writes a file, whole or not at all.
func exportTo(a *cli.App, path string, write func(io.Writer) (int64, error)) (err error) {
	f, err := cli.CreateFile(path, 0o600)
	if err != nil {
		return err
	}
	defer cli.RemoveOnError(f, &err)
	n, err := write(f)
	if err != nil {
		return err
	}
	if err = f.Close(); err == nil {
		a.Note("%s written to %s.", output.Bytes(n), path)
	}
	return err
}
