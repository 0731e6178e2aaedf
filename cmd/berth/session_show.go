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

	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/client"
	"github.com/spf13/cobra"
)

func (a *app) sessionShow() *cobra.Command {
	return a.onSession(&cobra.Command{
		Use:   "show SESSION",
		Short: "Show everything about a session",
		Args:  count(1, 1),
	}, func(ctx context.Context, c *client.Client, s *client.Session, _ []string) error {
		d, err := c.Session(ctx, s.ID)
		if err != nil {
			return err
		}
		p := a.print()
		return p.Print(d, func() error { return a.describeSession(p, d) })
	})
}

// sheet is a list of named facts, empty ones left out.
type sheet struct {
	w io.Writer
}

func (s sheet) fact(name, value string) {
	if value != "" {
		fmt.Fprintf(s.w, "%-12s %s\n", name+":", output.Clean(value))
	}
}

// gap sets off what follows.
func (s sheet) gap() { fmt.Fprintln(s.w) }

func (a *app) describeSession(p output.Printer, d *client.SessionDetail) error {
	s := sheet{a.out}
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
	s.fact("Owner", d.Owner.Title())
	s.fact("Project", d.Project.Title()+" (domain "+d.Domain.Title()+")")
	s.fact("Group", d.ResourceGroup.Title()+", priority "+strconv.Itoa(d.Priority))
	s.fact("Agents", wantedAgents(d))
	s.fact("Created", a.moment(&d.CreatedAt))
	if d.StartsAt != nil {
		s.fact("Not before", d.StartsAt.Local().Format("2006-01-02 15:04:05"))
	}
	s.fact("Started", a.moment(d.StartedAt))
	s.fact("Ended", a.moment(d.TerminatedAt))
	s.fact("Idle", a.idleText(d))
	for _, k := range slices.Sorted(maps.Keys(d.Environment)) {
		s.fact("Environment", k+"="+d.Environment[k])
	}
	for _, m := range d.Mounts {
		s.fact("Mount", mountText(m))
	}
	for _, u := range d.Usage {
		hours, unit := output.SlotHours(u.Slot, u.SlotSeconds)
		s.fact("Charged", hours+" "+unit)
	}
	s.dependencies(d)
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
		how := "out of sight or gone"
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

func mountText(m client.Mount) string {
	text := "(a folder out of sight)"
	if m.Vfolder != nil {
		text = m.Vfolder.Name
	}
	if m.Subpath != "" {
		text += "/" + m.Subpath
	}
	text += " at " + m.Target
	if m.ReadOnly {
		text += ", read-only"
	}
	return text
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
	for _, k := range kernels {
		agent := ""
		if k.Agent != nil {
			agent = k.Agent.Name
		}
		t.Row(k.Hostname, k.Status, agent, devicesText(k.Allocations), metricsText(k.Stats.Metrics))
	}
	return t
}

func devicesText(allocations []client.Allocation) string {
	var parts []string
	for _, al := range allocations {
		if al.Device == nil || al.FreedAt != nil || al.Slot == "cpu" || al.Slot == "mem" {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s of %s", al.Amount, al.Device.DeviceID))
	}
	return strings.Join(parts, ", ")
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

func (a *app) sessionWhy() *cobra.Command {
	return a.onSession(&cobra.Command{
		Use:   "why SESSION",
		Short: "Say why a session waits, or how it ended",
		Args:  count(1, 1),
	}, func(ctx context.Context, c *client.Client, s *client.Session, _ []string) error {
		d, err := c.Session(ctx, s.ID)
		if err != nil {
			return err
		}
		p := a.print()
		type why struct {
			ID                string                `json:"id"`
			Name              string                `json:"name"`
			Status            string                `json:"status"`
			StatusMessage     string                `json:"statusMessage"`
			TerminationReason *string               `json:"terminationReason"`
			StartsAt          *time.Time            `json:"startsAt"`
			DependsOn         []client.Dependency   `json:"dependsOn"`
			Pending           *client.PendingReport `json:"pending"`
		}
		return p.Print(why{d.ID, d.Name, d.Status, d.StatusMessage, d.TerminationReason, d.StartsAt, d.DependsOn, d.Pending}, func() error {
			return a.explain(d)
		})
	})
}

func (a *app) explain(d *client.SessionDetail) error {
	r := d.Pending
	if r == nil {
		text := fmt.Sprintf("%s does not wait: it is %s", d.Name, d.Status)
		if d.TerminationReason != nil {
			text += " (" + *d.TerminationReason + ")"
		}
		if d.StatusMessage != "" {
			text += ": " + d.StatusMessage
		}
		_, err := fmt.Fprintln(a.out, output.Clean(text))
		return err
	}
	fmt.Fprintf(a.out, "%s\n\n", output.Clean(r.Summary))
	s := sheet{a.out}
	s.fact("Position", inQueue(r.Position, d.ResourceGroup.Title()))
	if r.Order != nil {
		s.fact("Order", orderWords[r.Order.Order])
		for _, l := range r.Order.Levels {
			s.fact("Standing", fmt.Sprintf("the %s: factor %.3g, usage %.3g, weight %.3g", l.Scope, l.Factor, l.Usage, l.Weight))
		}
	}
	s.dependencies(d)
	s.fact("Agents", wantedAgents(d))
	s.fact("Asked for", output.Slots(d.Slots))
	for _, l := range r.Limits {
		amount := func(text string) string { return limitAmount(l.What, text) }
		s.fact("Limit", fmt.Sprintf("%s of %s: %s used, %s more asked for, %s allowed (policy %s)", l.What, limitOf(l.Scope, l.Holder, l.WithinProject, l.ResourceGroup),
			amount(l.Used), amount(l.Requested), amount(l.Limit), l.Policy))
	}
	s.fact("Looked at", strconv.Itoa(r.Agents)+" agents")
	for _, dropped := range r.Dropped {
		s.fact("Dropped", fmt.Sprintf("%d: %s", dropped.Count, droppedBy(dropped.Check, dropped.Slot)))
	}
	if n := r.Nearest; n != nil {
		s.fact("Nearest", fmt.Sprintf("%s has %s %s free, %s asked for", n.Agent, n.Free, n.Slot, n.Requested))
	}
	s.fact("Decided", a.moment(&r.DecidedAt))
	return nil
}

// inQueue is a position in a queue; who is ahead is nobody's business.
func inQueue(position int, group string) string {
	ahead := "nobody waits before it"
	switch {
	case position == 2:
		ahead = "one session waits before it"
	case position > 2:
		ahead = fmt.Sprintf("%d sessions wait before it", position-1)
	}
	return fmt.Sprintf("%d in resource group %s: %s", position, group, ahead)
}

// orderWords say how a queue is ordered where that is not by age.
var orderWords = map[string]string{
	"lifo":       "the newest first",
	"drf":        "whose user holds the smallest share goes first",
	"fair_share": "who has used least lately goes first",
}

// checkWords say what agents lack that a check dropped.
var checkWords = map[string]string{
	"not_asked_for":   "not among the agents asked for",
	"not_schedulable": "closed or out of reach",
	"architecture":    "of another architecture",
	"volume_missing":  "without a folder's volume",
	"slot_missing":    "without %s",
	"cpu":             "too few cores free",
	"mem":             "too little memory free",
	"counters":        "%s only on hardware that others use",
	"topology":        "enough %s free, but too far from each other",
	"slot_total":      "too little %s free",
	"slot_contiguity": "enough %s free, but in pieces on several devices",
	"reserved":        "room, but held for a session that has waited longer",
}

func droppedBy(check, slot string) string {
	words, known := checkWords[check]
	switch {
	case !known:
		return strings.TrimSpace(check + " " + slot)
	case strings.Contains(words, "%s"):
		return fmt.Sprintf(words, slot)
	}
	return words
}
