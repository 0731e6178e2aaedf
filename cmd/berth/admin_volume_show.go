package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) volumeList() *cobra.Command {
	cmd := a.list("List volumes, their usage, health and quotas", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.VolumeDetails(ctx)
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table {
			t := output.NewTable("NAME", "HEALTH", "USED", "OF", "FILES", "BACKEND", "PROXY", "LIMITS", "READS", "WRITES", "MESSAGE").
				Spare("PROXY", "READS", "WRITES", "FILES")
			for _, v := range list {
				reads, writes := "", ""
				if p := v.Performance; p != nil {
					reads, writes = pace(p.ReadOpsPerSecond, p.ReadBytesPerSecond, nil), pace(p.WriteOpsPerSecond, p.WriteBytesPerSecond, nil)
				}
				t.Row(v.Name, volumeHealth(v.Volume), output.Bytes(v.UsedBytes), volumeTotal(v), amount(v.UsedInodes, decimal), v.Backend, v.Proxy, v.Enforcement,
					reads, writes, v.HealthMessage)
			}
			return t
		})
	})
	cmd.Example = "  berth admin volume ls\n  berth admin volume ls -o json"
	return cmd
}

func volumeHealth(v client.Volume) output.Cell {
	color := map[string]output.Color{"healthy": output.Green, "degraded": output.Yellow}[v.Health]
	if color == output.Plain {
		color = output.Red
	}
	return output.Cell{Text: v.Health, Color: color}
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

func (a *app) volumeShow() *cobra.Command {
	cmd := a.verb("show VOLUME", "Show a volume's capabilities, state, speed and grants", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			all, err := c.VolumeDetails(ctx)
			if err != nil {
				return err
			}
			v, err := pick(ctx, c, "volume", args[0], all, nil, func(v client.VolumeDetails) (id, name string) { return v.ID, v.Name })
			if err != nil {
				return err
			}
			return a.print().Print(v, func() error { return a.describeVolume(v) })
		})
	cmd.Example = "  berth admin volume show fast"
	return cmd
}

func (a *app) describeVolume(v *client.VolumeDetails) error {
	s := a.sheet()
	s.fact("Name", v.Name)
	s.fact("ID", v.ID)
	s.fact("Backend", v.Backend)
	s.fact("Proxy", v.Proxy)
	s.fact("Health", strings.TrimSuffix(v.Health+": "+v.HealthMessage, ": "))
	s.fact("Capacity", output.Bytes(v.UsedBytes)+" of "+volumeTotal(*v))
	if v.UsedInodes != nil {
		s.fact("Files", strings.TrimSuffix(decimal(*v.UsedInodes)+" of "+amount(v.TotalInodes, decimal), " of -"))
	}
	s.fact("Limits", v.Enforcement)
	s.fact("Can", strings.Join(v.Capabilities, ", "))
	s.fact("You may", strings.ReplaceAll(strings.Join(v.MyPermissions, ", "), "_", "-"))
	a.describePace(s, v.Performance)
	s.gap()
	return a.print().Write(volumeGrantTable(v.Grants...))
}

func (a *app) describePace(s sheet, p *client.VolumePerformance) {
	if p == nil {
		return
	}
	of := ""
	if p.WholeCluster {
		of = ", of all the product's volumes together"
	}
	at := p.At
	s.fact("Measured", fmt.Sprintf("over %.0f s at %s%s", p.WindowSeconds, a.moment(&at), of))
	s.fact("Reads", pace(p.ReadOpsPerSecond, p.ReadBytesPerSecond, p.ReadLatencyMicros))
	s.fact("Writes", pace(p.WriteOpsPerSecond, p.WriteBytesPerSecond, p.WriteLatencyMicros))
}

// pace tells of one direction what is known.
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
