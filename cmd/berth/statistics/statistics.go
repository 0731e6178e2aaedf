// Package statistics has the commands about waits, starts, capacity and waste.
package statistics

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// usual is the period of a report without --since.
const usual = 7 * 24 * time.Hour

// Command returns the command "berth stats".
func Command(a *cli.App) *cobra.Command {
	return cli.Group("stats", "Show how long sessions wait, and how the cluster is used", waitsCommand(a), startsCommand(a), capacityCommand(a))
}

// dimensions are the values of --by of reports about waits.
var dimensions = []string{"user", "project", "domain", "group", "agent", "image", "type", "reason", "path", "hour", "day", "week", "month"}

// enums returns the dimensions of values of --by.
func enums(by, allowed []string) (out []client.Enum, err error) {
	for _, one := range by {
		found := false
		for _, d := range allowed {
			found = found || d == one
		}
		if !found {
			return nil, cli.Usagef("--by: %q is not one of %s", one, strings.Join(allowed, ", "))
		}
		out = append(out, client.Enum(strings.NewReplacer("GROUP", "RESOURCE_GROUP", "TYPE", "SESSION_TYPE").Replace(strings.ToUpper(one))))
	}
	return out, nil
}

// waitFlags select starts.
type waitFlags struct {
	period                             cli.PeriodFlags
	by                                 []string
	zone, user, project, domain, group string
	everyone                           bool
}

func (f *waitFlags) register(cmd *cobra.Command) {
	f.period.Register(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&f.by, "by", nil, "group by these, in this order: "+strings.Join(dimensions, ", "))
	flags.StringVar(&f.zone, "time-zone", "", "in which days, weeks and months begin, such as Europe/Berlin (default UTC)")
	flags.StringVar(&f.user, "user", "", "only this user's, by e-mail or id")
	flags.StringVar(&f.project, "project", "", "only this project's, by name or id")
	flags.StringVar(&f.domain, "domain", "", "only this domain's, by name or id")
	flags.StringVar(&f.group, "group", "", "only on this resource group, by name or id")
	flags.BoolVar(&f.everyone, "everyone", false, "the sessions of all users on --group, in numbers that show no single user")
}

func (f *waitFlags) input(ctx context.Context, a *cli.App, c *client.Client) (in client.WaitReportInput, err error) {
	in = client.WaitReportInput{TimeZone: f.zone, Everyone: f.everyone}
	var to time.Time
	if in.From, to, err = f.period.Read(a); err != nil {
		return in, err
	}
	if in.From.IsZero() {
		in.From = a.Now().Add(-usual)
	}
	if !to.IsZero() {
		in.To = &to
	}
	if in.By, err = enums(f.by, dimensions); err != nil {
		return in, err
	}
	if in.User, err = cli.FindUserID(ctx, c, f.user); err != nil {
		return in, err
	}
	if in.Project, err = cli.FindProjectID(ctx, c, f.project); err != nil {
		return in, err
	}
	if in.Domain, err = cli.FindDomainID(ctx, c, f.domain); err != nil {
		return in, err
	}
	in.ResourceGroup, err = cli.FindGroupID(ctx, c, f.group)
	return in, err
}

func waitsCommand(a *cli.App) *cobra.Command {
	var f waitFlags
	cmd := a.Verb("waits", "Show how long sessions waited until they ran, and for what", cli.Args(0, 0), func(ctx context.Context, c *client.Client, _ []string) error {
		in, err := f.input(ctx, a, c)
		if err != nil {
			return err
		}
		rows, err := c.WaitReport(ctx, in)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			a.Note("No session started in this period.")
		}
		return a.Table(rows, func() *output.Table { return waitTable(f.by, rows) })
	})
	cmd.Long = `Show percentiles of the time from a session's place in the queue until it ran,
over the sessions that you can see, or with --everyone over all of a group.
A reason is what a session waited for most of the time.`
	cmd.Example = "  berth stats waits --since 30d --by reason\n  berth stats waits --everyone --group gpu --by day"
	f.register(cmd)
	return cmd
}

// stages are the parts of a start.
var stages = []client.Enum{"QUEUE", "PULL", "CREATE", "WAIT"}

// stage is the rows of one part.
type stage struct {
	Stage string
	Rows  []client.WaitRow
}

func startsCommand(a *cli.App) *cobra.Command {
	var f waitFlags
	cmd := a.Verb("starts", "Show how long the stages of starts took: queue, pull of the image, create, and all together", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			in, err := f.input(ctx, a, c)
			if err != nil {
				return err
			}
			var all []stage
			for _, s := range stages {
				in.Stage = s
				rows, err := c.WaitReport(ctx, in)
				if err != nil {
					return err
				}
				all = append(all, stage{strings.ToLower(string(s)), rows})
			}
			return a.Table(all, func() *output.Table {
				t := output.NewTable(append([]string{"STAGE"}, heads(f.by)...)...)
				for _, s := range all {
					for _, r := range s.Rows {
						t.Row(append([]any{s.Stage}, cells(r)...)...)
					}
				}
				return t
			})
		})
	cmd.Example = "  berth stats starts --by image\n  berth stats starts --by agent,path --since 24h"
	f.register(cmd)
	return cmd
}

func waitTable(by []string, rows []client.WaitRow) *output.Table {
	t := output.NewTable(heads(by)...)
	for _, r := range rows {
		t.Row(cells(r)...)
	}
	return t
}

func heads(by []string) (out []string) {
	for _, b := range by {
		out = append(out, strings.ToUpper(b))
	}
	return append(out, "STARTS", "P50", "P90", "P99", "LONGEST")
}

func cells(r client.WaitRow) (out []any) {
	for _, k := range r.Keys {
		out = append(out, text(k.Label, k.Value))
	}
	out = append(out, strconv.Itoa(r.Count))
	for _, v := range []*float64{r.P50, r.P90, r.P99, r.Max} {
		out = append(out, seconds(v))
	}
	return out
}

// text shows the name of what a row is about, or its id.
func text(label, value string) string {
	switch {
	case label != "":
		if label == strings.ToUpper(label) { // a reason or a path
			return strings.ToLower(label)
		}
		return label
	case value != "":
		return value
	default:
		return "-"
	}
}

// seconds shows a time with three digits; "-" is not shown or unknown.
func seconds(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v < 100:
		return strconv.FormatFloat(*v, 'g', 3, 64) + "s"
	default:
		return output.Duration(time.Duration(*v * float64(time.Second)))
	}
}
