package deploy

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// shown is a deployment with what belongs to it.
type shown struct {
	Deployment *client.DeploymentDetail    `json:"deployment"`
	Address    string                      `json:"address"`
	Replicas   []client.DeploymentReplica  `json:"replicas"`
	Revisions  []client.DeploymentRevision `json:"revisions"`
	Events     []client.DeploymentEvent    `json:"events"`
	Currency   string                      `json:"currency,omitempty"` // of the prices, if there are any
}

// lastEvents is how many events show prints.
const lastEvents = 8

func showCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show DEPLOYMENT", Short: "Show replicas, revisions, traffic, load, the last events and the address of a deployment", Args: cli.Args(1, 1),
	}
	return onDeployment(a, cmd, func(cmd *cobra.Command, c *client.Client, d *client.Deployment, _ []string) error {
		x, err := read(cmd.Context(), c, d.ID)
		if err != nil {
			return err
		}
		p := a.Printer()
		return p.Print(x, func() error {
			if err := x.describe(a, p); err != nil {
				return err
			}
			a.NotePage("/serving/" + d.ID)
			return nil
		})
	})
}

func read(ctx context.Context, c *client.Client, id string) (x shown, err error) {
	if x.Deployment, err = c.Deployment(ctx, id); err != nil {
		return x, err
	}
	if x.Deployment.TokenPrices != nil {
		if x.Currency, err = c.Currency(ctx); err != nil {
			return x, err
		}
	}
	if x.Address, err = c.ModelsURL(ctx); err != nil {
		return x, err
	}
	if x.Replicas, err = c.DeploymentReplicas(ctx, id); err != nil {
		return x, err
	}
	if x.Revisions, err = c.DeploymentRevisions(ctx, id); err != nil {
		return x, err
	}
	x.Events, err = c.DeploymentEvents(ctx, id)
	return x, err
}

func (x shown) describe(a *cli.App, p output.Printer) error {
	d := x.Deployment
	s := a.Sheet()
	s.Fact("Name", d.Name)
	s.Fact("ID", d.ID)
	s.Fact("Description", d.Description)
	s.Fact("Status", d.Status.String())
	s.Fact("Message", d.Message)
	s.Fact("Project", d.Project.Name+", owner "+d.Owner.Email)
	s.Fact("Access", accessText(&d.Deployment))
	s.Fact("Replicas", replicasText(d))
	for _, t := range d.Scaling.Targets {
		s.Fact("Target", fmt.Sprintf("%s %g for each replica", t.Metric, t.PerReplica))
	}
	for _, one := range d.Scaling.Schedules {
		s.Fact("Schedule", scheduleText(one))
	}
	s.Fact("Strategy", strategyText(d.Strategy))
	s.Fact("Traffic", trafficText(d))
	loadFacts(s, d.Load)
	s.Fact("Prices", pricesText(d.TokenPrices, x.Currency))
	s.Fact("Created", a.Moment(&d.CreatedAt))
	s.Fact("Last used", a.Moment(d.LastRequestAt))
	s.Fact("Ended", a.Moment(d.EndedAt))
	x.request(a, s)
	for _, t := range []*output.Table{x.replicaTable(a), x.revisionTable(a), eventTable(a, x.Events[:min(len(x.Events), lastEvents)])} {
		s.Gap()
		if err := p.Write(t); err != nil {
			return err
		}
	}
	return nil
}

func accessText(d *client.Deployment) string {
	text := "its owner"
	if d.Shared {
		text = "members of the project"
	}
	if d.Open {
		text += "; requests need no key"
	} else {
		text += ", with a key"
	}
	if d.Recorded {
		text += "; requests are recorded for the owner"
	}
	return text
}

func replicasText(d *client.DeploymentDetail) string {
	text := fmt.Sprintf("%d of %d ready; %d to %d", d.Ready.TotalCount, d.Wanted, d.Scaling.Min, d.Scaling.Max)
	if d.Scaling.Min == 0 {
		text += ", none after " + cli.Seconds(d.Scaling.ZeroAfter) + " without a request"
	}
	return text
}

func scheduleText(s client.DeploymentSchedule) string {
	days := "every day"
	if len(s.Days) > 0 {
		var names []string
		for _, day := range s.Days {
			if day >= 0 && day < len(weekdays) {
				names = append(names, weekdays[day])
			}
		}
		days = strings.Join(names, ", ")
	}
	return fmt.Sprintf("at least %d from %s to %s %s, %s", s.Replicas, s.From, s.To, s.TimeZone, days)
}

func strategyText(s client.DeploymentStrategy) string {
	text := cli.Sentence(s.Kind.String())
	switch s.Kind {
	case "BLUE_GREEN":
		if !s.AutoPromote {
			return text + ", promoted by hand"
		}
		return text + ", promoted after " + cli.Seconds(s.PromoteAfter)
	case "CANARY":
		steps := make([]string, len(s.Steps))
		for i, n := range s.Steps {
			steps[i] = fmt.Sprintf("%d%%", n)
		}
		return text + ", steps " + strings.Join(steps, ", ") + " of at least " + cli.Seconds(s.StepTime)
	}
	return fmt.Sprintf("%s, at most %d more and %d fewer replicas", text, s.MaxSurge, s.MaxUnavailable)
}

func trafficText(d *client.DeploymentDetail) string {
	var parts []string
	for _, t := range d.Traffic {
		parts = append(parts, fmt.Sprintf("revision %d: %d%%", t.Revision, t.Percent))
	}
	text := strings.Join(parts, ", ")
	if d.Target != d.Current {
		text += fmt.Sprintf(" (changing from revision %d to %d)", d.Current, d.Target)
	}
	return text
}

// pricesText shows what 1,000 tokens cost; empty without prices.
func pricesText(p *client.TokenPrices, currency string) string {
	if p == nil {
		return ""
	}
	var parts []string
	for _, one := range []struct {
		what  string
		price *string
	}{{"in", p.Input}, {"cached", p.CachedInput}, {"out", p.Output}} {
		if one.price != nil {
			parts = append(parts, *one.price+" "+one.what)
		}
	}
	return strings.Join(parts, ", ") + " (" + currency + " for 1,000 tokens)"
}

func loadFacts(s cli.Sheet, l *client.DeploymentLoad) {
	if l == nil {
		s.Fact("Load", "unknown; no gateway reports it")
		return
	}
	s.Fact("Load", fmt.Sprintf("%.1f requests/s, %d in flight, %d waiting, %.1f%% errors", l.RequestsPerSecond, l.InFlight, l.Waiting, l.ErrorRate*100))
	s.Fact("Tokens", fmt.Sprintf("%.0f/s in (%.0f%% cached), %.0f/s out", l.PromptTokensPerSecond, l.CachedShare*100, l.CompletionTokensPerSecond))
	s.Fact("First byte", fmt.Sprintf("p50 %s, p95 %s", milliseconds(l.FirstByteP50), milliseconds(l.FirstByteP95)))
	s.Fact("Per token", fmt.Sprintf("p50 %s, p95 %s", milliseconds(l.PerTokenP50), milliseconds(l.PerTokenP95)))
}

// request shows the address and how a request is sent to it.
func (x shown) request(a *cli.App, s cli.Sheet) {
	d := x.Deployment
	if d.Ended() {
		return
	}
	if x.Address == "" {
		s.Fact("Address", "none; no gateway serves models")
		return
	}
	s.Fact("Address", x.Address)
	key := ` -H "Authorization: Bearer $BERTH_MODEL_KEY"`
	if d.Open {
		key = ""
	}
	fmt.Fprintf(a.Out, "\ncurl %s/chat/completions%s -H 'Content-Type: application/json' \\\n  -d '{\"model\": \"%s\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'\n",
		output.Clean(x.Address), key, output.Clean(d.Name))
}

func (x shown) replicaTable(a *cli.App) *output.Table {
	load := map[string]client.DeploymentReplicaLoad{}
	if x.Deployment.Load != nil {
		for _, l := range x.Deployment.Load.Replicas {
			load[l.Replica] = l
		}
	}
	t := output.NewTable("REPLICA", "REVISION", "PHASE", "SINCE", "IN FLIGHT", "SESSION", "MESSAGE").Spare("IN FLIGHT", "SINCE")
	for _, r := range x.Replicas {
		if r.EndedAt != nil && !r.Failed {
			continue
		}
		flight, session := "-", "-"
		if l, ok := load[r.ID]; ok {
			if flight = fmt.Sprint(l.InFlight); l.Ejected {
				flight += ", ejected"
			}
		}
		if r.Session != nil {
			session = r.Session.Name
		}
		t.Row(r.ID, fmt.Sprint(r.Revision), phase(r), output.Age(a.Now(), r.PhaseSince), flight, session, r.Message)
	}
	return t
}

func phase(r client.DeploymentReplica) output.Cell {
	switch {
	case r.Failed:
		return output.Cell{Text: "failed", Color: output.Red}
	case r.Phase == "READY":
		return output.Cell{Text: "ready", Color: output.Green}
	}
	return output.Cell{Text: r.Phase.String(), Color: output.Yellow}
}

func (x shown) revisionTable(a *cli.App) *output.Table {
	t := output.NewTable("REVISION", "VARIANT", "IMAGE", "MODEL", "RESOURCES", "AGE", "COMMENT").Spare("COMMENT", "AGE")
	for _, r := range x.Revisions {
		number := output.Cell{Text: fmt.Sprint(r.Number)}
		switch r.Number {
		case x.Deployment.Current:
			number = output.Cell{Text: number.Text + " current", Color: output.Green}
		case x.Deployment.Target:
			number = output.Cell{Text: number.Text + " next", Color: output.Yellow}
		}
		model := "-"
		if r.Vfolder != nil {
			model = strings.TrimSuffix(r.Vfolder.Name+"/"+r.Subpath, "/")
		}
		t.Row(number, r.Variant, r.Image, model, output.Slots(r.Request.Slots), output.Age(a.Now(), r.CreatedAt), r.Comment)
	}
	return t
}

func eventTable(a *cli.App, list []client.DeploymentEvent) *output.Table {
	t := output.NewTable("TIME", "EVENT", "REVISION", "DECISION", "MESSAGE").Spare("REVISION")
	for _, e := range list {
		revision := "-"
		if e.Revision != nil {
			revision = fmt.Sprint(*e.Revision)
		}
		t.Row(output.Age(a.Now(), e.CreatedAt)+" ago", cli.Sentence(e.Kind.String()), revision, decision(e), e.Message)
	}
	return t
}

// decision describes the numbers behind an event.
func decision(e client.DeploymentEvent) string {
	var parts []string
	if e.ReplicasBefore != nil && e.ReplicasAfter != nil {
		parts = append(parts, fmt.Sprintf("%d → %d", *e.ReplicasBefore, *e.ReplicasAfter))
	}
	if e.Metric != "" && e.Value != nil {
		text := fmt.Sprintf("%s %.4g", e.Metric, *e.Value)
		if e.Limit != nil {
			text += fmt.Sprintf(" (limit %.4g)", *e.Limit)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
