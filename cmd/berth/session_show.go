package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

func (a *app) sessionShow() *cobra.Command {
	return a.onDetail(&cobra.Command{
		Use:   "show SESSION",
		Short: "Show everything about a session",
		Args:  count(1, 1),
	}, func(_ context.Context, _ *client.Client, d *client.SessionDetail) error {
		p := a.print()
		return p.Print(d, func() error { return a.describeSession(p, d) })
	})
}

// sheet is a list of named facts, empty ones left out.
type sheet struct {
	w io.Writer
}

func (a *app) sheet() sheet { return sheet{a.out} }

func (s sheet) fact(name, value string) {
	if value != "" {
		fmt.Fprintf(s.w, "%-12s %s\n", name+":", output.Clean(value))
	}
}

// gap sets off what follows.
func (s sheet) gap() { fmt.Fprintln(s.w) }

func (a *app) describeSession(p output.Printer, d *client.SessionDetail) error {
	s := a.sheet()
	s.fact("Name", d.Name)
	s.fact("ID", d.ID)
	s.fact("Status", d.Status)
	if d.ExitCode != nil {
		s.fact("Exit code", strconv.Itoa(*d.ExitCode))
	}
	if d.TerminationReason != nil {
		s.fact("Ended by", *d.TerminationReason)
	}
	s.fact("Message", d.StatusMessage)
	s.fact("Type", d.Type)
	s.fact("Image", d.Image.Reference)
	s.fact("Command", quote(d.Command))
	s.fact("Resources", output.Slots(d.Slots))
	s.fact("Disk", diskText(d))
	s.fact("Owner", d.Owner.Title())
	s.fact("Project", d.Project.Title()+" (domain "+d.Domain.Title()+")")
	s.fact("Group", d.ResourceGroup.Title()+", priority "+strconv.Itoa(d.Priority))
	if d.SessionGroup != nil {
		s.fact("Placed with", "session group "+d.SessionGroup.Name)
	}
	s.fact("Agents", wantedAgents(d))
	s.fact("Created", a.moment(&d.CreatedAt))
	if d.StartsAt != nil {
		s.fact("Not before", d.StartsAt.Local().Format("2006-01-02 15:04:05"))
	}
	s.fact("Started", a.moment(d.StartedAt))
	switch {
	case d.EndsAt != nil && !d.Ended():
		s.fact("Ends", d.EndsAt.Local().Format("2006-01-02 15:04:05"))
	case d.Lifetime != nil:
		s.fact("Lifetime", seconds(*d.Lifetime))
	}
	if d.Preemptible {
		s.fact("Preemptible", "yes")
	}
	s.fact("Ended", a.moment(d.TerminatedAt))
	s.fact("Idle", a.idleText(d))
	for _, k := range slices.Sorted(maps.Keys(d.Environment)) {
		s.fact("Environment", k+"="+d.Environment[k])
	}
	for _, m := range d.Mounts {
		s.fact("Mount", mountText(m, d.History))
	}
	for _, u := range d.Usage {
		hours, unit := output.SlotHours(u.Slot, u.SlotSeconds)
		s.fact("Charged", hours+" "+unit)
	}
	s.dependencies(d)
	s.ailing(d)
	if d.Pending != nil {
		s.fact("Waits", d.Pending.Summary)
	}
	fmt.Fprintln(a.out)
	if err := p.Write(kernelTable(d.Kernels)); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	return p.Write(a.historyTable(d.History))
}

// diskText is what the containers may write, and what each has written.
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
		return "only some out of sight"
	case d.StrictAgents:
		return "only " + text
	case text != "":
		return text + ", if they have room"
	}
	return ""
}

// dependencies are what a session starts after, and what starts after it.
func (s sheet) dependencies(d *client.SessionDetail) {
	for _, on := range d.DependsOn {
		how := "hidden or deleted"
		if on.Needed != nil {
			how = on.Needed.Status
		}
		if on.Satisfied {
			how = "succeeded"
		}
		s.fact("After", on.Name+" ("+how+")")
	}
	for _, by := range d.Dependents {
		if by.Session != nil {
			s.fact("Before", by.Session.Name+" ("+by.Session.Status+")")
		}
	}
}

func mountText(m client.Mount, history []client.SessionEvent) string {
	text := "(a folder out of sight)"
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

// lossText is what a session's history tells of why a folder was taken away.
func lossText(m client.Mount, history []client.SessionEvent) string {
	for _, e := range slices.Backward(history) {
		why, after, _ := strings.Cut(e.Message, ": ")
		if e.Code == "folder_revoked" && (strings.HasPrefix(after, m.Target+" ") || strings.HasSuffix(after, " "+m.Target)) {
			return ": " + why
		}
	}
	return ""
}

// idleText says what would end a session for being of no use.
func (a *app) idleText(d *client.SessionDetail) string {
	switch {
	case d.IdleExempt:
		return "exempt from idle checks"
	case d.Idle == nil:
		return ""
	}
	return fmt.Sprintf("%s ends it at %s, in %s: %s", d.Idle.Checker, clock(d.Idle.EndsAt), output.Duration(d.Idle.EndsAt.Sub(a.now())), d.Idle.Reason)
}

func (a *app) moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", t.Local().Format("2006-01-02 15:04:05"), output.Age(a.now(), *t))
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
		if m.Quality == "unavailable" || len(parts) == 4 {
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

func (a *app) historyTable(history []client.SessionEvent) *output.Table {
	t := output.NewTable("TIME", "PHASE", "RESULT", "STATUS", "MESSAGE")
	for _, e := range history {
		message := e.Message
		if e.Code != "" {
			message = strings.TrimSpace(e.Code + ": " + message)
		}
		status := ""
		if e.ToStatus != nil {
			status = *e.ToStatus
		}
		t.Row(e.At.Local().Format("15:04:05.000"), e.Phase, e.Result, status, strings.TrimSuffix(message, ": "))
	}
	return t
}
