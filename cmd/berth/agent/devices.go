package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func devicesCommand(a *cli.App) *cobra.Command {
	wide := false
	cmd := &cobra.Command{
		Use:   "devices AGENT",
		Short: "List the devices of an agent: allocations, health, and why one is not available",
		Args:  cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			found, err := cli.FindAgent(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			list, err := c.Devices(cmd.Context(), found.ID, a.Printer().Machine())
			if err != nil {
				return err
			}
			slices.SortFunc(list, byPlace)
			return a.Table(list, func() *output.Table { return deviceTable(list, wide) })
		},
	}
	cmd.Flags().BoolVar(&wide, "wide", wide, "also memory, units, the latest samples, enforcement and holders")
	return cmd
}

func deviceTable(list []client.DeviceDetail, wide bool) *output.Table {
	head := []string{"DEVICE", "MODEL", "HELD", "HEALTH", "NUMA", "PCI"}
	if wide {
		head = append(head, "MEMORY", "UNITS", "LOAD", "POWER", "TEMP", "ENFORCED", "HOLDERS")
	}
	t := output.NewTable(append(head, "WHY NOT")...)
	if !wide {
		t.Spare("NUMA", "PCI", "MODEL")
	}
	for _, d := range list {
		name, numa := d.DeviceID, ""
		if d.Parent != nil {
			name = "  " + name
		}
		if d.NUMANode != nil {
			numa = strconv.Itoa(*d.NUMANode)
		}
		row := []any{name, d.Model, output.Used(d.Occupied, d.Capacity), healthOf(d.Device), numa, d.PCIAddress}
		if wide {
			memory, units, enforcement := "", "", ""
			if d.Enforcement != nil {
				enforcement = d.Enforcement.String()
			}
			if d.MemoryBytes > 0 {
				memory = output.Bytes(d.MemoryBytes)
			}
			if d.ProcessingUnits > 0 {
				units = strconv.Itoa(d.ProcessingUnits)
			}
			row = append(row, memory, units, latest(d, "_util", "%"), latest(d, "_power", "W"), latest(d, "_temperature", "°C"), enforcement, holders(d.Device))
		}
		t.Row(append(row, whyNot(d.Device))...)
	}
	return t
}

// byPlace sorts the processor and memory first, then the devices of each plugin by their bus
// address, with partitions behind their device.
func byPlace(a, b client.DeviceDetail) int {
	return cmp.Or(cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.PCIAddress, b.PCIAddress),
		cmp.Compare(len(a.DeviceID), len(b.DeviceID)), cmp.Compare(a.DeviceID, b.DeviceID))
}

func healthOf(d client.Device) output.Cell {
	c := output.Cell{Text: d.Health.String()}
	switch {
	case d.Health == "UNHEALTHY" || d.Health == "LOST":
		c.Color = output.Red
	case !d.Allocatable:
		c.Color = output.Dim
	case d.Health == "HEALTHY":
		c.Color = output.Green
	default:
		c.Color = output.Yellow
	}
	return c
}

// whyNot returns why a device is unhealthy or cannot be allocated.
func whyNot(d client.Device) string {
	var said []string
	if d.Health != "HEALTHY" && d.HealthMessage != "" {
		said = append(said, d.HealthMessage)
	}
	if !d.Allocatable {
		for _, reason := range d.RejectReasons {
			if !slices.Contains(said, reason) {
				said = append(said, reason)
			}
		}
	}
	return strings.Join(said, "; ")
}

// latest prints a sample, and its precision if it was not measured.
func latest(d client.DeviceDetail, suffix, unit string) string {
	for _, m := range d.Metrics {
		if !strings.HasSuffix(m.Name, suffix) || m.Quality == "UNAVAILABLE" {
			continue
		}
		text := fmt.Sprintf("%.0f %s", m.Value, unit)
		if m.Quality != "MEASURED" {
			text += " " + m.Quality.String()
		}
		return text
	}
	return ""
}
