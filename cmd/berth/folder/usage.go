package folder

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// usage is the JSON output of berth folder usage.
type usage struct {
	Scopes  []client.QuotaScope `json:"scopes"`
	Folders []client.Folder     `json:"folders"`
}

func usageCommand(a *cli.App) *cobra.Command {
	cmd := a.Verb("usage", "Show usage and limits of your folders and of your projects' folders", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			var u usage
			var err error
			if u.Scopes, err = c.QuotaScopes(ctx, true); err != nil {
				return err
			}
			for _, kind := range []client.Enum{"MINE", "PROJECT"} {
				some, err := c.Folders(ctx, client.FolderFilter{Kind: kind})
				if err != nil {
					return err
				}
				u.Folders = append(u.Folders, some...)
			}
			return a.Table(u, func() *output.Table { return u.table() })
		})
	cmd.Long = `Show usage and limits of your folders and of your projects' folders. The folders
of one owner on one volume share a limit of bytes, and perhaps of files. ENFORCED
is how the volume enforces it: hard (not a byte more), delayed (writes fail some
time after), cooperative (uploads are refused, writes of sessions are not) or
none.`
	cmd.Example = "  berth folder usage\n  berth folder usage -o json"
	return cmd
}

func (u usage) table() *output.Table {
	t := output.NewTable("OF", "FOLDER", "VOLUME", "USED", "LIMIT", "FILES", "MAX FILES", "ENFORCED").Spare("VOLUME", "MAX FILES", "FILES")
	for _, s := range u.Scopes {
		of := cli.HolderText(nil, s.HolderProject, nil, "you")
		t.Row(of, "all", s.Volume.Name, cli.Amount(s.UsedBytes, output.Bytes), cli.Amount(s.EffectiveLimitBytes, output.Bytes),
			cli.Amount(s.UsedInodes, cli.Decimal), cli.Amount(s.LimitInodes, cli.Decimal), s.Enforcement)
		for _, f := range u.Folders {
			if f.QuotaScope.ID == s.ID {
				t.Row(of, f.Name, s.Volume.Name, cli.Amount(f.UsedBytes, output.Bytes), "", cli.Amount(f.FileCount, cli.Decimal), "", "")
			}
		}
	}
	return t
}
