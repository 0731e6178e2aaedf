package deploy

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/cmd/berth/session"
)

func scaleCommand(a *cli.App) *cobra.Command {
	var f settingsFlags
	cmd := &cobra.Command{
		Use: "scale DEPLOYMENT [N]", Short: "Change the number of replicas, or what changes it", Args: cli.Args(1, 2),
		Long: `Change the number of replicas, or what changes it.

A target is a metric and what one replica can take of it: requests (in flight),
waiting (requests that wait for a replica), requestRate and tokenRate (in a
second), a metric of the engine, such as vllm:gpu_cache_usage_perc=0.8, or promql:
with an expression over the metrics of the engines. With /sum behind the number,
a metric of the engine is summed over all replicas.

A schedule is the fewest replicas at a time of the day, as
[days/]HH:MM-HH:MM=n[@zone]; the zone is UTC if you leave it out.

The targets and schedules that you give replace the old ones; none removes them.`,
		Example: `  berth deploy scale llama 3
  berth deploy scale llama --min 0 --max 8 --zero-after 15m --target requests=8
  berth deploy scale llama --max 8 --target 'promql:sum(rate(vllm:generation_tokens_total[1m]))=900/sum'
  berth deploy scale llama --schedule mon-fri/08:00-18:00=4@Europe/Berlin`,
	}
	f.scale(cmd)
	return onDeployment(a, cmd, func(cmd *cobra.Command, c *client.Client, d *client.Deployment, args []string) error {
		in := f.input("")
		if len(args) > 0 {
			n, err := strconv.Atoi(args[0])
			if err != nil || in.Replicas != nil {
				return cli.Usagef("usage: %s", cmd.UseLine())
			}
			in.Replicas = &n
		}
		if err := cli.RequireChanges(in); err != nil {
			return err
		}
		in.ID = d.ID
		now, err := c.UpdateDeployment(cmd.Context(), in)
		if err != nil {
			return err
		}
		return changed(a, now)
	})
}

func rollbackCommand(a *cli.App) *cobra.Command {
	var to *int
	cmd := &cobra.Command{Use: "rollback DEPLOYMENT", Short: "Give up a change, or change to an older revision", Args: cli.Args(1, 1)}
	cli.OptionalCount(cmd, &to, "to", "number of the `revision` (default: during a change the current one, otherwise the one before)")
	cli.SetsField(cmd, "to", "revision")
	return onDeployment(a, cmd, func(cmd *cobra.Command, c *client.Client, d *client.Deployment, _ []string) error {
		now, err := c.RollBackDeployment(cmd.Context(), d.ID, to)
		if err != nil {
			return err
		}
		return changed(a, now)
	})
}

func promoteCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{Use: "promote DEPLOYMENT", Short: "Move all requests to the new revision now", Args: cli.Args(1, 1)}
	return onDeployment(a, cmd, func(cmd *cobra.Command, c *client.Client, d *client.Deployment, _ []string) error {
		now, err := c.PromoteDeployment(cmd.Context(), d.ID)
		if err != nil {
			return err
		}
		return changed(a, now)
	})
}

func removeCommand(a *cli.App) *cobra.Command {
	var force, wait bool
	cmd := a.OnEach("rm DEPLOYMENT", "End deployments, after the requests that their replicas have", findID, func(ctx context.Context, c *client.Client, id string) error {
		if _, err := c.DeleteDeployment(ctx, id, force); err != nil || !wait {
			return err
		}
		return poll(ctx, a, c, id, func(d *client.DeploymentDetail) (bool, error) { return d.Ended(), nil })
	})
	cmd.ValidArgsFunction = a.CompleteDeployment
	cmd.Flags().BoolVarP(&force, "force", "f", false, "cut the requests")
	cmd.Flags().BoolVarP(&wait, "wait", "w", false, "wait until they have ended")
	return cli.Alias(cmd, "delete")
}

// maxFailures is how many replicas can fail while a command waits.
const maxFailures = 3

func waitCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "wait DEPLOYMENT", Short: "Wait until a deployment serves with all wanted replicas", Args: cli.Args(1, 1),
		Long: `Wait until a deployment serves with all wanted replicas and no change is in
progress. A line on standard error says what it waits for. The command fails when
the deployment ends, when its change is rolled back, and when three replicas have
failed since the command began without a change that can be rolled back.`,
	}
	return onDeployment(a, cmd, func(cmd *cobra.Command, c *client.Client, d *client.Deployment, _ []string) error {
		return waitFor(cmd.Context(), a, c, d.ID)
	})
}

// waitFor waits until a deployment serves, and prints it.
func waitFor(ctx context.Context, a *cli.App, c *client.Client, id string) error {
	var last *client.DeploymentDetail
	seen := map[string]bool{} // the events from before
	before, err := c.DeploymentEvents(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range before {
		seen[e.ID] = true
	}
	err = poll(ctx, a, c, id, func(d *client.DeploymentDetail) (bool, error) {
		last = d
		switch {
		case d.Status == "ENDED" || d.Status == "ENDING":
			return false, fmt.Errorf("deployment %s is %s: %w", d.Name, d.Status, errdefs.ErrFailedPrecondition)
		case d.Current == d.Target && (d.Status == "SERVING" || d.Status == "ASLEEP"):
			return true, rolledBack(ctx, c, d, seen)
		case d.Current != d.Target: // the manager rolls back a change whose replicas fail
			return false, rolledBack(ctx, c, d, seen)
		}
		return false, failures(ctx, c, d, seen)
	})
	if err != nil {
		return err
	}
	return changed(a, last)
}

// rolledBack returns an error if a change was rolled back after the events that were seen.
func rolledBack(ctx context.Context, c *client.Client, d *client.DeploymentDetail, seen map[string]bool) error {
	events, err := c.DeploymentEvents(ctx, d.ID)
	for _, e := range events {
		if e.Kind == "ROLLED_BACK" && !seen[e.ID] {
			return fmt.Errorf("the change of %s was rolled back: %s: %w", d.Name, e.Message, errdefs.ErrAborted)
		}
	}
	return err
}

// failures returns an error if a change was rolled back, or too many replicas of the only revision
// have failed, after the events that were seen.
func failures(ctx context.Context, c *client.Client, d *client.DeploymentDetail, seen map[string]bool) error {
	events, err := c.DeploymentEvents(ctx, d.ID)
	if err != nil {
		return err
	}
	n := 0
	for _, e := range events {
		if e.Kind == "REPLICA_FAILED" && !seen[e.ID] {
			if n++; n == maxFailures {
				return fmt.Errorf("%d replicas of %s have failed, the last because: %s; see: berth deploy logs %s: %w", n, d.Name, newest(events, e.Kind), d.Name, errdefs.ErrAborted)
			}
		}
	}
	return rolledBack(ctx, c, d, seen)
}

func newest(events []client.DeploymentEvent, kind client.Enum) string {
	for _, e := range events {
		if e.Kind == kind {
			return e.Message
		}
	}
	return ""
}

// pollEvery is the time between two looks at a deployment.
const pollEvery = time.Second

// poll reads a deployment until done reports true or returns an error, and shows its message meanwhile.
func poll(ctx context.Context, a *cli.App, c *client.Client, id string, done func(*client.DeploymentDetail) (bool, error)) error {
	status := a.StatusLine(false)
	defer status.Clear()
	for {
		var d *client.DeploymentDetail
		err := client.Retry(ctx, func(err error) { status.Pause(cli.OneLine(err)) }, func() (err error) {
			d, err = c.Deployment(ctx, id)
			return err
		})
		if err != nil {
			return err
		}
		if over, err := done(d); over || err != nil {
			return err
		}
		text := fmt.Sprintf("%s: %s, %d of %d replicas ready", d.Name, d.Status, d.Ready.TotalCount, d.Wanted)
		if d.Message != "" {
			text += ": " + d.Message
		}
		status.Set(output.Clean(text))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollEvery):
		}
	}
}

func eventsCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{Use: "events DEPLOYMENT", Short: "List the newest 100 events of a deployment, with the numbers behind each decision", Args: cli.Args(1, 1)}
	return onDeployment(a, cmd, func(cmd *cobra.Command, c *client.Client, d *client.Deployment, _ []string) error {
		list, err := c.DeploymentEvents(cmd.Context(), d.ID)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return eventTable(a, list) })
	})
}

func logsCommand(a *cli.App) *cobra.Command {
	var f session.LogFlags
	var replica string
	cmd := &cobra.Command{Use: "logs DEPLOYMENT", Short: "Print the output of the engine of a replica", Args: cli.Args(1, 1)}
	cmd.Flags().StringVar(&replica, "replica", "", "`id` of the replica, or its first characters (default: the newest that is ready, else the newest)")
	cmd.Flags().StringVar(&f.Kernel, "kernel", "", "`container` of the replica: main, sub1 and so on (default main)")
	cmd.Flags().BoolVarP(&f.Follow, "follow", "f", false, "print new output until the replica has ended")
	cmd.Flags().IntVarP(&f.Tail, "tail", "n", 0, "only the last so many lines")
	cli.RawFlag(cmd, &f.Raw)
	return onDeployment(a, cmd, func(cmd *cobra.Command, c *client.Client, d *client.Deployment, _ []string) error {
		list, err := c.DeploymentReplicas(cmd.Context(), d.ID)
		if err != nil {
			return err
		}
		r, err := choose(list, replica)
		if err != nil {
			return err
		}
		s, err := cli.FindSession(cmd.Context(), c, r.Session.ID)
		if err != nil {
			return err
		}
		return session.Logs(cmd.Context(), a, c, s, f)
	})
}

// choose returns the replica whose log is printed. The list has the newest first.
func choose(list []client.DeploymentReplica, ref string) (*client.DeploymentReplica, error) {
	var chosen *client.DeploymentReplica
	for i, r := range list {
		switch {
		case r.Session == nil || ref != "" && !strings.HasPrefix(r.ID, ref) && r.Session.Name != ref:
		case chosen == nil:
			chosen = &list[i]
		case ref != "":
			return nil, cli.Usagef("--replica %s: several replicas have ids that begin so", ref)
		case r.Phase == "READY" && chosen.Phase != "READY":
			chosen = &list[i]
		}
	}
	switch {
	case chosen != nil:
		return chosen, nil
	case ref != "":
		return nil, cli.NotFound("replica", ref, "or its session is deleted or not visible to you")
	}
	return nil, fmt.Errorf("no replica has a session whose log you can read: %w", errdefs.ErrFailedPrecondition)
}
