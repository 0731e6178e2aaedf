package deploy

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// recordsFlags choose recorded requests.
type recordsFlags struct {
	period cli.PeriodFlags
	text   string
	limit  int
	failed bool
	clear  bool
	yes    bool
}

func recordsCommand(a *cli.App) *cobra.Command {
	var f recordsFlags
	cmd := &cobra.Command{
		Use: "records DEPLOYMENT", Short: "List or delete the recorded requests of a deployment, the newest first", Args: cli.Args(1, 1),
		Long: `List the recorded requests of a deployment, the newest first. Only the owner sees
them, and only a deployment with berth deploy update --recorded records them. The
table shows the beginning of each request; -o json prints requests and answers.`,
		Example: `  berth deploy update llama --recorded
  berth deploy records llama --since 1h --failed
  berth deploy records llama --since 7d -o json
  berth deploy records llama --clear`,
	}
	f.period.Register(cmd)
	cmd.Flags().StringVar(&f.text, "contains", "", "only requests that contain this `text`")
	cmd.Flags().BoolVar(&f.failed, "failed", false, "only requests that were answered with an error")
	cmd.Flags().IntVar(&f.limit, "limit", 100, "at most so many `requests`")
	cmd.Flags().BoolVar(&f.clear, "clear", false, "delete all records of the deployment")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "delete without a question")
	cli.Exclusive(cmd, "clear", "since")
	return onDeployment(a, cmd, func(cmd *cobra.Command, c *client.Client, d *client.Deployment, _ []string) error {
		if f.clear {
			return clearRecords(cmd.Context(), a, c, d, f.yes)
		}
		where, err := f.where(a)
		if err != nil {
			return err
		}
		list, err := c.PromptRecords(cmd.Context(), d.ID, where, f.limit)
		if err != nil {
			return err
		}
		if len(list) == 0 && !d.Recorded {
			fmt.Fprintf(a.Err, "%s does not record requests; see: berth deploy update --help\n", output.Clean(d.Name))
		}
		return a.Table(list, func() *output.Table { return recordTable(a, list) })
	})
}

// where returns the filter of the flags.
func (f *recordsFlags) where(a *cli.App) (client.Where, error) {
	if f.limit < 1 {
		return nil, cli.Usagef("--limit %d: at least 1", f.limit)
	}
	from, to, err := f.period.Read(a)
	if err != nil {
		return nil, err
	}
	where := client.Where{}
	if !from.IsZero() {
		where["createdAtGTE"] = from.UTC()
	}
	if !to.IsZero() {
		where["createdAtLT"] = to.UTC()
	}
	if f.text != "" {
		where["requestContainsFold"] = f.text
	}
	if f.failed {
		where["statusGTE"] = http.StatusBadRequest
	}
	return where, nil
}

func clearRecords(ctx context.Context, a *cli.App, c *client.Client, d *client.Deployment, yes bool) error {
	if err := a.ConfirmDelete(ctx, "all recorded requests of "+output.Clean(d.Name), yes); err != nil {
		return err
	}
	n, err := c.DeletePromptRecords(ctx, d.ID)
	if err != nil {
		return err
	}
	return a.Printer().Print(map[string]int{"deleted": n}, func() error {
		_, err := fmt.Fprintf(a.Out, "%s: %d records deleted\n", output.Clean(d.Name), n)
		return err
	})
}

// maxExcerpt is the length of the excerpt of a request in the table, in characters.
const maxExcerpt = 60

func recordTable(a *cli.App, list []client.PromptRecord) *output.Table {
	t := output.NewTable("TIME", "STATUS", "REVISION", "TOKENS", "TOOK", "USER", "REQUEST").Spare("REVISION", "TOOK")
	for _, r := range list {
		revision, user := "-", "-"
		if r.Revision != nil {
			revision = fmt.Sprint(*r.Revision)
		}
		if r.User != nil {
			user = r.User.Email
		}
		text := []rune(strings.Join(strings.Fields(r.Request), " "))
		if len(text) > maxExcerpt {
			text = append(text[:maxExcerpt-1], '…')
		}
		t.Row(cli.Clock(r.CreatedAt), fmt.Sprint(r.Status), revision, fmt.Sprintf("%d + %d", r.PromptTokens, r.CompletionTokens),
			milliseconds(new(float64(r.DurationMs))), user, string(text))
	}
	return t
}
