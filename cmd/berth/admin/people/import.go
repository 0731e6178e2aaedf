package people

import (
	"context"
	"fmt"
	"strconv"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func userImport(a *cli.App) *cobra.Command {
	var in client.ImportUsersInput
	var domain string
	var projects []string
	var passwords *client.Enum
	cmd := a.Verb("import FILE.csv", "Create users from a CSV file, or from standard input (-)", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			if in.CSV, err = a.ReadFile(args[0]); err != nil {
				return err
			}
			if passwords != nil {
				in.Passwords = *passwords
			}
			if in.Domain, err = cli.DomainOrMine(ctx, c, domain); err != nil {
				return err
			}
			if in.Projects, err = cli.FindProjectIDs(ctx, c, projects); err != nil {
				return err
			}
			got, err := c.ImportUsers(ctx, in)
			if err != nil {
				return err
			}
			return imported(a, got, in.DryRun)
		})
	cmd.Long = `Create users from a CSV file. Its first line names the columns: email, username,
full_name, role, projects (names separated by ;), password and policy; only email
is required. Existing users are skipped, and a wrong line does not stop the
others: correct the file and import it again. If a line was wrong, the exit code
is 6. Generated passwords are shown only once.`
	cmd.Example = `  berth admin user import lab.csv --domain vision --project thesis --dry-run
  berth admin user import lab.csv --domain vision --project thesis --passwords generated`
	flags := cmd.Flags()
	flags.StringVar(&domain, "domain", "", "domain of the users (default: yours)")
	flags.StringSliceVar(&projects, "project", nil, "projects that all of them become members of")
	flags.BoolVar(&in.DryRun, "dry-run", false, "only show the changes")
	cli.OptionalFlag(cmd, &passwords, "passwords", "where passwords come from, `how`: given in the file (default), or generated where the file has none", cli.Choice("given", "generated"))
	return cmd
}

// imported prints the result of each line.
func imported(a *cli.App, got *client.Import, dry bool) error {
	err := a.Table(got, func() *output.Table { return importTable(got) })
	if err != nil {
		return err
	}
	verb := "created"
	if dry {
		verb = "would be created"
	}
	a.Note("%d %s, %d skipped, %d wrong.", got.Created, verb, got.Skipped, got.Failed)
	if got.Failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d lines are wrong: %w", got.Failed, len(got.Results), errdefs.ErrInvalidArgument)
}

func importTable(got *client.Import) *output.Table {
	head, secrets := []string{"LINE", "EMAIL", "RESULT", "WHY"}, false
	for _, r := range got.Results {
		secrets = secrets || r.Password != nil
	}
	if secrets {
		head = append(head, "PASSWORD")
	}
	t := output.NewTable(head...)
	for _, r := range got.Results {
		result := output.Cell{Text: cli.Sentence(r.Status.String()), Color: output.Green}
		switch r.Status {
		case "FAILED":
			result.Color = output.Red
		case "SKIPPED":
			result.Color = output.Yellow
		}
		row := []any{strconv.Itoa(r.Row), r.Email, result, client.Clause(r.Field, r.Error)}
		if secrets {
			password := ""
			if r.Password != nil {
				password = *r.Password
			}
			row = append(row, password)
		}
		t.Row(row...)
	}
	return t
}
