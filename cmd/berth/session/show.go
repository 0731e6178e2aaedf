package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func showCommand(a *cli.App) *cobra.Command {
	var variables bool
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show everything about a session",
		Args:  cli.Args(1, 1),
	}
	cmd.Flags().BoolVar(&variables, "variables", false, "also the variables for programs over several containers or accelerators")
	return onDetail(a, cmd, func(_ context.Context, _ *client.Client, d *client.SessionDetail) error {
		p := a.Printer()
		return p.Print(d, func() error {
			if err := describeSession(a, p, d); err != nil {
				return err
			}
			a.NotePage("/sessions/" + d.ID)
			if !variables {
				return nil
			}
			fmt.Fprintln(a.Out)
			return p.Write(variableTable(d.Kernels))
		})
	})
}

func describeSession(a *cli.App, p output.Printer, d *client.SessionDetail) error {
	s := a.Sheet()
	s.Fact("Name", d.Name)
	s.Fact("ID", d.ID)
	s.Fact("Status", d.Status.String())
	if d.ExitCode != nil {
		s.Fact("Exit code", strconv.Itoa(*d.ExitCode))
	}
	if d.TerminationReason != nil {
		s.Fact("Ended by", d.TerminationReason.String())
	}
	s.Fact("Message", d.StatusMessage)
	s.Fact("Type", d.Type.String())
	s.Fact("Image", d.Image.Reference)
	s.Fact("Command", quote(d.Command))
	s.Fact("Resources", output.Slots(d.Slots))
	s.Fact("Disk", diskText(d))
	s.Fact("Owner", d.Owner.Title())
	s.Fact("Project", d.Project.Title()+" (domain "+d.Domain.Title()+")")
	s.Fact("Group", d.ResourceGroup.Title()+", priority "+strconv.Itoa(d.Priority))
	if d.SessionGroup != nil {
		s.Fact("Placed with", "session group "+d.SessionGroup.Name)
	}
	s.Fact("Tags", strings.Join(d.Tags, ", "))
	if d.Array != nil && d.ArrayIndex != nil {
		s.Fact("Array", fmt.Sprintf("%s, index %d", d.Array.Name, *d.ArrayIndex))
	}
	if d.RestartOf != nil {
		s.Fact("Restart of", d.RestartOf.ID)
	}
	for _, r := range d.Restarts {
		s.Fact("Restarted as", r.ID)
	}
	s.Fact("Agents", wantedAgents(d))
	s.Fact("Created", a.Moment(&d.CreatedAt))
	if d.StartsAt != nil {
		s.Fact("Not before", d.StartsAt.Local().Format("2006-01-02 15:04:05"))
	}
	s.Fact("Started", a.Moment(d.StartedAt))
	switch {
	case d.EndsAt != nil && !d.Ended():
		s.Fact("Ends", d.EndsAt.Local().Format("2006-01-02 15:04:05"))
	case d.Lifetime != nil:
		s.Fact("Lifetime", cli.Seconds(*d.Lifetime))
	}
	if d.Preemptible {
		s.Fact("Preemptible", "yes")
	}
	s.Fact("Ended", a.Moment(d.TerminatedAt))
	s.Fact("Idle", idleText(a, d))
	for _, k := range slices.Sorted(maps.Keys(d.Environment)) {
		s.Fact("Environment", k+"="+d.Environment[k])
	}
	gpuDirect(s, d.Kernels)
	for _, m := range d.Mounts {
		s.Fact("Mount", mountText(m, d.History))
	}
	for _, u := range d.Use {
		s.Fact("Used "+u.Metric, useText(u))
	}
	if d.SuggestedSlots != nil {
		s.Fact("Suggested", output.Slots(d.SuggestedSlots))
	}
	for _, u := range d.Usage {
		hours, unit := output.SlotHours(u.Slot, u.SlotSeconds)
		s.Fact("Charged", hours+" "+unit)
	}
	dependencies(s, d)
	ailing(s, d)
	if d.Pending != nil {
		s.Fact("Waits", d.Pending.Summary)
	}
	fmt.Fprintln(a.Out)
	if err := p.Write(kernelTable(d.Kernels)); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	return p.Write(historyTable(a, d.History))
}

// gpuDirect shows whether GPUDirect works. Kernels with the same answer share a line.
func gpuDirect(s cli.Sheet, kernels []client.Kernel) {
	var texts []string
	names := map[string][]string{}
	for _, k := range kernels {
		for _, g := range k.GpuDirect {
			what := map[client.Enum]string{"RDMA": "RDMA", "STORAGE": "Storage"}[g.Feature]
			answer := "no"
			if g.Available {
				answer = "yes"
			}
			text := fmt.Sprintf("%s %s: %s", what, answer, g.Reason)
			if names[text] == nil {
				texts = append(texts, text)
			}
			names[text] = append(names[text], k.Hostname)
		}
	}
	for _, text := range texts {
		if len(names[text]) < len(kernels) {
			text += " (" + strings.Join(names[text], ", ") + ")"
		}
		s.Fact("GPUDirect", text)
	}
}

// variableTable lists the environment variables of kernels. A variable with the same value in all
// of them has one row.
func variableTable(kernels []client.Kernel) *output.Table {
	t := output.NewTable("VARIABLE", "VALUE", "CONTAINER")
	values := map[string]map[string][]string{} // name, value, kernels
	for _, k := range kernels {
		for name, value := range k.Variables {
			if values[name] == nil {
				values[name] = map[string][]string{}
			}
			values[name][value] = append(values[name][value], k.Hostname)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range slices.Sorted(maps.Keys(values[name])) {
			where := values[name][value]
			if len(where) == len(kernels) {
				where = []string{"all"}
			}
			t.Row(name, value, strings.Join(where, ", "))
		}
	}
	return t
}

// diskText shows the disk limit of the containers, and the usage of each.
func diskText(d *client.SessionDetail) string {
	if d.DiskBytes == 0 {
		return ""
	}
	text := output.Bytes(d.DiskBytes)
	var used []string
	for _, k := range d.Kernels {
		for _, m := range k.Stats.Metrics {
			if m.Name == "disk_used" {
				used = append(used, output.Bytes(int64(m.Value)))
			}
		}
	}
	if len(used) > 0 {
		text += ", " + strings.Join(used, ", ") + " used"
	}
	return text
}

func wantedAgents(d *client.SessionDetail) string {
	var names []string
	for _, g := range d.Agents {
		names = append(names, g.Name)
	}
	text := strings.Join(names, ", ")
	switch {
	case d.StrictAgents && text == "":
		return "only sessions that you cannot see"
	case d.StrictAgents:
		return "only " + text
	case text != "":
		return text + ", if they have room"
	}
	return ""
}

// dependencies lists the sessions that this one starts after, and those that start after it.
func dependencies(s cli.Sheet, d *client.SessionDetail) {
	for _, on := range d.DependsOn {
		how := "hidden or deleted"
		if on.Needed != nil {
			how = on.Needed.Status.String()
		}
		if on.Satisfied {
			how = "succeeded"
		}
		s.Fact("After", on.Name+" ("+how+")")
	}
	for _, by := range d.Dependents {
		if by.Session != nil {
			s.Fact("Before", by.Session.Name+" ("+by.Session.Status.String()+")")
		}
	}
}

func mountText(m client.Mount, history []client.SessionEvent) string {
	text := "(a folder that you cannot see)"
	if m.Vfolder != nil {
		text = m.Vfolder.Name
	}
	if m.Subpath != "" {
		text += "/" + m.Subpath
	}
	text += " at " + m.Target
	switch {
	case m.RevokedAt != nil:
		text += ", taken away at " + m.RevokedAt.Local().Format("15:04:05") + lossText(m, history)
	case m.ReadOnly:
		text += ", read-only"
	}
	return text
}

// lossText returns the reason in the session's history why a folder was removed.
func lossText(m client.Mount, history []client.SessionEvent) string {
	for _, e := range slices.Backward(history) {
		why, after, _ := strings.Cut(e.Message, ": ")
		if e.Code == "folder_revoked" && (strings.HasPrefix(after, m.Target+" ") || strings.HasSuffix(after, " "+m.Target)) {
			return ": " + why
		}
	}
	return ""
}

// idleText describes the idle checkers that would end a session.
func idleText(a *cli.App, d *client.SessionDetail) string {
	switch {
	case d.IdleExempt:
		return "exempt from idle checks"
	case d.Idle == nil:
		return ""
	}
	return fmt.Sprintf("%s ends it at %s, in %s: %s", d.Idle.Checker, cli.Clock(d.Idle.EndsAt), output.Duration(d.Idle.EndsAt.Sub(a.Now())), d.Idle.Reason)
}

func kernelTable(kernels []client.Kernel) *output.Table {
	t := output.NewTable("KERNEL", "STATUS", "AGENT", "DEVICES", "NOW")
	for i := range kernels {
		k, agent := &kernels[i], ""
		if k.Agent != nil {
			agent = k.Agent.Name
		}
		t.Row(k.Hostname, k.Status, agent, devicesText(k), metricsText(k.Stats.Metrics))
	}
	return t
}

func metricsText(metrics []client.Metric) string {
	var parts []string
	for _, m := range metrics {
		if m.Quality == "UNAVAILABLE" || len(parts) == 4 {
			continue
		}
		value := strconv.FormatFloat(m.Value, 'g', 4, 64) + " " + m.Unit
		if m.Unit == "bytes" {
			value = output.Bytes(int64(m.Value))
		}
		parts = append(parts, m.Name+" "+strings.TrimSpace(value))
	}
	return strings.Join(parts, ", ")
}

func historyTable(a *cli.App, history []client.SessionEvent) *output.Table {
	t := output.NewTable("TIME", "PHASE", "RESULT", "STATUS", "MESSAGE")
	for _, e := range history {
		message := e.Message
		if e.Code != "" {
			message = strings.TrimSpace(e.Code + ": " + message)
		}
		status := ""
		if e.ToStatus != nil {
			status = e.ToStatus.String()
		}
		t.Row(e.At.Local().Format("15:04:05.000"), e.Phase, e.Result, status, strings.TrimSuffix(message, ": "))
	}
	return t
}

// useText describes what a session used of one thing. What was not measured is not 0.
func useText(u client.SessionUse) string {
	if u.Mean == nil || u.P95 == nil || u.Peak == nil {
		return "not measured"
	}
	text := func(v float64) string {
		switch u.Unit {
		case "bytes":
			return output.Bytes(int64(v))
		case "percent":
			return strconv.FormatFloat(v, 'f', 1, 64) + " %"
		}
		return strconv.FormatFloat(v, 'f', 1, 64) + " " + u.Unit
	}
	out := fmt.Sprintf("mean %s, p95 %s, peak %s", text(*u.Mean), text(*u.P95), text(*u.Peak))
	if u.Asked > 0 {
		out += " of " + text(u.Asked)
	}
	if u.Quality.String() != "measured" {
		out += " (" + u.Quality.String() + ")"
	}
	return out
}
