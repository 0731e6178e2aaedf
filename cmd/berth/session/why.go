package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

func whyCommand(a *cli.App) *cobra.Command {
	return onDetail(a, &cobra.Command{
		Use:   "why SESSION",
		Short: "Explain why a session is pending, or how it ended",
		Args:  cli.Args(1, 1),
	}, func(ctx context.Context, c *client.Client, d *client.SessionDetail) (err error) {
		var r *client.Advice
		cluster := &client.ClusterState{Led: true}
		if !d.Ended() {
			if r, cluster, err = c.Why(ctx, d.ID); err != nil {
				return err
			}
		}
		p := a.Printer()
		type why struct {
			ID                string              `json:"id"`
			Name              string              `json:"name"`
			Status            client.Enum         `json:"status"`
			StatusMessage     string              `json:"statusMessage"`
			TerminationReason *client.Enum        `json:"terminationReason"`
			StartsAt          *time.Time          `json:"startsAt"`
			DependsOn         []client.Dependency `json:"dependsOn"`
			Pending           *client.Advice      `json:"pending"`
			Led               bool                `json:"led"`
		}
		return p.Print(why{d.ID, d.Name, d.Status, d.StatusMessage, d.TerminationReason, d.StartsAt, d.DependsOn, r, cluster.Led}, func() error {
			if !cluster.Led {
				fmt.Fprintln(a.Out, leaderless)
			} else if cluster.Recovery != nil {
				fmt.Fprintln(a.Out, recovering)
			}
			return explain(a, d, r)
		})
	})
}

// leaderless is shown when no session can change its state.
const leaderless = "No manager leads the cluster: no session starts, ends or moves until one does."

// recovering is shown when no session can start.
const recovering = "The cluster is in recovery mode: no session starts until an administrator turns it off."

func explain(a *cli.App, d *client.SessionDetail, r *client.Advice) error {
	if r == nil {
		text := fmt.Sprintf("%s does not wait: it is %s", d.Name, d.Status)
		if d.Status == "PENDING" {
			text = d.Name + " waits, and no manager has planned it yet"
		}
		if d.TerminationReason != nil {
			text += " (" + d.TerminationReason.String() + ")"
		}
		if d.StatusMessage != "" {
			text += ": " + d.StatusMessage
		}
		fmt.Fprintln(a.Out, output.Clean(text))
		s := a.Sheet()
		ailing(s, d)
		return nil
	}
	s := a.Sheet()
	head(s, r, d.ResourceGroup.Title())
	dependencies(s, d)
	s.Fact("Agents", wantedAgents(d))
	s.Fact("Asked for", output.Slots(d.Slots))
	findings(s, &r.PendingReport)
	s.Fact("Decided", a.Moment(&r.DecidedAt))
	suggestions(s, r.Suggestions, func(x client.Suggestion) string { return applies(d.Name, x) })
	return nil
}

// head shows the reason why a session waits, and its position in the queue.
func head(s cli.Sheet, r *client.Advice, group string) {
	fmt.Fprintf(s.W, "%s\n\n", output.Clean(r.Summary))
	s.Fact("Waits for", stageWords[r.Stage.String()])
	if r.Position > 0 { // a member that its array delays has no position
		s.Fact("Position", inQueue(r.Position, group))
	}
	for _, e := range r.Ahead {
		s.Fact("Before it", entryText(e))
	}
	if r.Holds > 0 {
		s.Fact("Held for it", strconv.Itoa(r.Holds)+" agents")
	}
	if r.Order != nil {
		s.Fact("Order", orderWords[r.Order.Order.String()])
		for _, l := range r.Order.Levels {
			s.Fact("Standing", fmt.Sprintf("the %s: factor %.3g, usage %.3g, weight %.3g", l.Scope, l.Factor, l.Usage, l.Weight))
		}
	}
	switch {
	case r.EstimatedStart != nil:
		s.Fact("Starts", "by "+cli.Clock(*r.EstimatedStart)+", unless something goes before it")
	case r.Until != nil:
		s.Fact("Starts", "not before "+cli.Clock(*r.Until))
	default:
		s.Fact("Starts", "unknown")
	}
}

// entryText describes a session that is ahead in the queue. Sessions of other users have no name.
func entryText(e client.QueueEntry) string {
	text := "a session of another user"
	if e.Session != nil {
		text = e.Session.Name
		if !e.Mine && e.Session.Owner != nil {
			text += " of " + e.Session.Owner.Email
		}
	}
	text = fmt.Sprintf("%d. %s, priority %d", e.Position, text, e.Priority)
	if e.Holds > 0 {
		text += fmt.Sprintf(", for which %d agents are held", e.Holds)
	}
	return text
}

// findings lists the causes of the wait.
func findings(s cli.Sheet, r *client.PendingReport) {
	for _, l := range r.Limits {
		amount := func(text string) string { return cli.LimitAmount(l.What, text) }
		s.Fact("Limit", fmt.Sprintf("%s of %s: %s used, %s more requested, %s allowed (policy %s)", l.What, cli.LimitOf(l.Scope.String(), l.Holder, l.WithinProject, l.ResourceGroup),
			amount(l.Used), amount(l.Requested), amount(l.Limit), l.Policy))
	}
	s.Fact("Checked", strconv.Itoa(r.Agents)+" agents")
	for _, dropped := range r.Dropped {
		s.Fact("Dropped", fmt.Sprintf("%d: %s", dropped.Count, droppedBy(dropped.Check, dropped.Slot)))
	}
	if n := r.Nearest; n != nil {
		s.Fact("Nearest", fmt.Sprintf("%s has %s %s free, %s requested", n.Agent, n.Free, n.Slot, n.Requested))
	}
}

// suggestions lists the changes that would let the session start, each with its command.
func suggestions(s cli.Sheet, list []client.Suggestion, how func(client.Suggestion) string) {
	if len(list) == 0 {
		return
	}
	s.Gap()
	for _, x := range list {
		fmt.Fprintln(s.W, output.Clean(x.Text))
		if how := how(x); how != "" {
			fmt.Fprintln(s.W, "  "+output.Clean(how))
		}
	}
}

// applies returns the command that applies a suggestion.
func applies(session string, x client.Suggestion) string {
	switch {
	case x.Kind == "SLOTS":
		text := "berth session change " + session
		for _, name := range slices.Sorted(maps.Keys(x.Slots)) {
			if x.Field == "slots" || x.Field == "slots."+name {
				text += " -r " + name + "=" + x.Slots[name]
			}
		}
		return text
	case x.Kind == "RESOURCE_GROUP" && x.ResourceGroup != nil:
		return "berth session change " + session + " --group " + *x.ResourceGroup
	case x.Kind == "ANY_AGENT":
		return "berth session change " + session + " --any-agent"
	case x.Kind == "END_SESSION" && x.Session != nil:
		return "berth session rm " + *x.Session
	}
	return ""
}

// stageWords describe the stages at which a session waits.
var stageWords = map[string]string{
	"group":  "its resource group, which is deleted or not active",
	"held":   "its start time, or other sessions",
	"limits": "a limit of a policy",
	"room":   "free capacity on a machine",
	"order":  "its turn: machines are reserved for a session ahead of it",
}

// inQueue is a position in a queue.
func inQueue(position int, group string) string {
	ahead := "no session is ahead of it"
	switch {
	case position == 2:
		ahead = "one session waits before it"
	case position > 2:
		ahead = fmt.Sprintf("%d sessions wait before it", position-1)
	}
	return fmt.Sprintf("%d in resource group %s: %s", position, group, ahead)
}

// orderWords describe the orders of a queue other than by age.
var orderWords = map[string]string{
	"lifo":       "the newest first",
	"drf":        "whose user holds the smallest share goes first",
	"fair_share": "users with the least recent usage first",
}

// checkWords describe the checks that rule out agents.
var checkWords = map[string]string{
	"not_asked_for":   "not among the requested machines",
	"cordoned":        "cordoned: nothing new starts there",
	"draining":        "draining: nothing new starts there, and running sessions end",
	"lost":            "unreachable",
	"unfit":           "a condition keeps new sessions away (see: berth agent show)",
	"architecture":    "another processor architecture",
	"volume_missing":  "no access to a volume that the session mounts",
	"network":         "room for some of the containers, but no network between them and the others",
	"slot_missing":    "no %s",
	"slot_counts":     "offers %s in other amounts only",
	"cpu":             "not enough free CPU cores",
	"mem":             "not enough free memory",
	"group":           "excluded by the session group",
	"counters":        "free %s only on hardware that others use",
	"topology":        "enough free %s, but too far from each other",
	"slot_total":      "not enough free %s",
	"slot_contiguity": "enough free %s in total, but not on one device",
	"reserved":        "reserved for an earlier session",
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
