// Package volume has the commands about volumes, their grants, orphans and quotas.
package volume

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func listCommand(a *cli.App) *cobra.Command {
	cmd := a.List("List volumes, their usage, health and quotas", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.VolumeDetails(ctx)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table {
			t := output.NewTable("NAME", "HEALTH", "USED", "OF", "FILES", "BACKEND", "PROXY", "LIMITS", "READS", "WRITES", "MESSAGE").
				Spare("PROXY", "READS", "WRITES", "FILES")
			for _, v := range list {
				reads, writes := "", ""
				if p := v.Performance; p != nil {
					reads, writes = pace(p.ReadOpsPerSecond, p.ReadBytesPerSecond, nil), pace(p.WriteOpsPerSecond, p.WriteBytesPerSecond, nil)
				}
				t.Row(v.Name, volumeHealth(v.Volume), output.Bytes(v.UsedBytes), volumeTotal(v), cli.Amount(v.UsedInodes, cli.Decimal), v.Backend, v.Proxy, v.Enforcement,
					reads, writes, v.HealthMessage)
			}
			return t
		})
	})
	cmd.Example = "  berth admin volume ls\n  berth admin volume ls -o json"
	return cmd
}

func volumeHealth(v client.Volume) output.Cell {
	color := map[string]output.Color{"healthy": output.Green, "degraded": output.Yellow}[v.Health.String()]
	if color == output.Plain {
		color = output.Red
	}
	return output.Cell{Text: v.Health.String(), Color: color}
}

func volumeTotal(v client.VolumeDetails) string {
	switch {
	case v.Elastic:
		return "grows"
	case v.TotalBytes == 0:
		return "-"
	}
	return output.Bytes(v.TotalBytes)
}

func showCommand(a *cli.App) *cobra.Command {
	cmd := a.Verb("show VOLUME", "Show a volume's capabilities, state, speed and grants", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			all, err := c.VolumeDetails(ctx)
			if err != nil {
				return err
			}
			v, err := cli.Pick(ctx, c, "volume", args[0], all, nil, func(v client.VolumeDetails) (id, name string) { return v.ID, v.Name })
			if err != nil {
				return err
			}
			return a.Printer().Print(v, func() error { return describeVolume(a, v) })
		})
	cmd.Example = "  berth admin volume show fast"
	return cmd
}

func describeVolume(a *cli.App, v *client.VolumeDetails) error {
	s := a.Sheet()
	s.Fact("Name", v.Name)
	s.Fact("ID", v.ID)
	s.Fact("Backend", v.Backend)
	s.Fact("Proxy", v.Proxy)
	s.Fact("Health", strings.TrimSuffix(v.Health.String()+": "+v.HealthMessage, ": "))
	s.Fact("Capacity", output.Bytes(v.UsedBytes)+" of "+volumeTotal(*v))
	if v.UsedInodes != nil {
		s.Fact("Files", strings.TrimSuffix(cli.Decimal(*v.UsedInodes)+" of "+cli.Amount(v.TotalInodes, cli.Decimal), " of -"))
	}
	s.Fact("Limits", v.Enforcement.String())
	s.Fact("Can", strings.Join(v.Capabilities, ", "))
	s.Fact("You may", strings.ReplaceAll(strings.Join(cli.EnumTexts(v.MyPermissions), ", "), "_", "-"))
	describePace(a, s, v.Performance)
	s.Gap()
	return a.Printer().Write(volumeGrantTable(v.Grants...))
}

func describePace(a *cli.App, s cli.Sheet, p *client.VolumePerformance) {
	if p == nil {
		return
	}
	of := ""
	if p.WholeCluster {
		of = ", of all the product's volumes together"
	}
	at := p.At
	s.Fact("Measured", fmt.Sprintf("over %.0f s at %s%s", p.WindowSeconds, a.Moment(&at), of))
	s.Fact("Reads", pace(p.ReadOpsPerSecond, p.ReadBytesPerSecond, p.ReadLatencyMicros))
	s.Fact("Writes", pace(p.WriteOpsPerSecond, p.WriteBytesPerSecond, p.WriteLatencyMicros))
}

// pace shows the known rates of one direction.
func pace(ops, bytes, micros *float64) string {
	var all []string
	if ops != nil {
		all = append(all, fmt.Sprintf("%.0f/s", *ops))
	}
	if bytes != nil {
		all = append(all, output.Bytes(int64(*bytes))+"/s")
	}
	if micros != nil {
		all = append(all, fmt.Sprintf("%.2f ms", *micros/1000))
	}
	return strings.Join(all, ", ")
}
