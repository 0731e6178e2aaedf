package deploy

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// modelPath is where the server mounts the folder of a model.
const modelPath = "/models"

func createCommand(a *cli.App) *cobra.Command {
	var f revisionFlags
	var s settingsFlags
	var project string
	var wait bool
	cmd := &cobra.Command{
		Use:   "create NAME --image IMAGE [flags] [-- COMMAND [ARG...]]",
		Short: "Create a deployment and start its replicas",
		Long: `Create a deployment: replicas of an engine that serves a model, behind one
address. NAME is the name of the model in requests.

With --variant, the engine is started with the command of the variant and the
options that you set. Without it, COMMAND is the engine; it must listen on --port.`,
		Example: `  berth deploy create llama --image vllm:0.10 --variant vllm --model llama-3-8b \
      --option maxModelLen=8192 --gpu 1 --mem 32g --shared
  berth deploy create tiny --image python:3.13 --port 8000 --health /health \
      -v code:/srv:ro -- python3 /srv/serve.py
  berth deploy create bge --image tei --variant tei --model bge-small --min 0 \
      --max 4 --target requests=16`,
		Args: func(cmd *cobra.Command, args []string) error {
			before, _ := cli.Split(cmd, args)
			return cli.Args(1, 1)(cmd, before)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			before, command := cli.Split(cmd, args)
			if f.image == "" {
				return cli.Usagef("name the image of the replicas with --image")
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			in := cli.Convert[client.CreateDeploymentInput](s.input(""))
			in.Name = before[0]
			if in.Project, err = cli.FindProjectID(cmd.Context(), c, project); err != nil {
				return err
			}
			if err := f.Fill(cmd.Context(), a, cmd, c, &in.Revision.Request); err != nil {
				return err
			}
			in.Revision.Request.Image, in.Revision.Request.Command = f.image, command
			if err := f.engine(a, &in.Revision); err != nil {
				return err
			}
			d, err := c.CreateDeployment(cmd.Context(), in)
			if err != nil {
				return err
			}
			if wait {
				return waitFor(cmd.Context(), a, c, d.ID)
			}
			return changed(a, d)
		},
	}
	f.register(cmd)
	s.register(cmd)
	cmd.Flags().StringVar(&project, "project", "", "project (default: your only one)")
	cmd.Flags().BoolVarP(&wait, "wait", "w", false, "wait until it serves")
	return cmd
}

func updateCommand(a *cli.App) *cobra.Command {
	var f revisionFlags
	var s settingsFlags
	var wait bool
	cmd := &cobra.Command{
		Use:   "update DEPLOYMENT [flags] [-- COMMAND [ARG...]]",
		Short: "Change the settings of a deployment, or start a new revision of it",
		Long: `Change the settings of a deployment, or start a new revision of it.

A flag about the replicas starts a new revision, which begins as the current one:
slots, environment variables and options that you give are added or replaced (an
amount of 0 or an empty option removes), and other flags replace what they set.
How the replicas are replaced is set by --strategy.`,
		Example: `  berth deploy update llama --model llama-3-70b --gpu 2
  berth deploy update llama --strategy canary --steps 5,25,50 --image vllm:0.11`,
		Args: func(cmd *cobra.Command, args []string) error {
			before, _ := cli.Split(cmd, args)
			return cli.Args(1, 1)(cmd, before)
		},
	}
	f.register(cmd)
	s.register(cmd)
	cmd.Flags().BoolVarP(&wait, "wait", "w", false, "wait until the change has ended")
	return onDeployment(a, cmd, func(cmd *cobra.Command, c *client.Client, d *client.Deployment, command []string) error {
		settings := s.input("")
		revision := f.given(cmd) || len(command) > 0
		if !revision {
			if err := cli.RequireChanges(settings); err != nil {
				return err
			}
		}
		settings.ID = d.ID
		var now *client.DeploymentDetail
		var err error
		in := client.AddDeploymentRevisionInput{Deployment: d.ID}
		if revision { // checked before a setting is changed
			if in.Revision, err = f.revised(cmd, a, c, d, command); err != nil {
				return err
			}
		}
		if settings != (client.UpdateDeploymentInput{ID: d.ID}) {
			if now, err = c.UpdateDeployment(cmd.Context(), settings); err != nil {
				return err
			}
		}
		if revision {
			if now, err = c.AddDeploymentRevision(cmd.Context(), in); err != nil {
				return err
			}
		}
		if wait {
			return waitFor(cmd.Context(), a, c, d.ID)
		}
		return changed(a, now)
	})
}

// revised returns the current revision of a deployment with the changes of the flags.
func (f *revisionFlags) revised(cmd *cobra.Command, a *cli.App, c *client.Client, d *client.Deployment, command []string) (in client.DeploymentRevisionInput, err error) {
	list, err := c.DeploymentRevisions(cmd.Context(), d.ID)
	if err != nil {
		return in, err
	}
	i := slices.IndexFunc(list, func(r client.DeploymentRevision) bool { return r.Number == d.Current })
	if i < 0 {
		return in, fmt.Errorf("revision %d of %s is not among its newest 100", d.Current, d.Name)
	}
	in = again(list[i], f.variant, f.definition != "")
	var over client.CreateSessionInput
	f.Partial = true
	if err := f.Fill(cmd.Context(), a, cmd, c, &over); err != nil {
		return in, err
	}
	over.Image = f.image
	if len(command) > 0 {
		over.Command = command
	}
	if err := add(&in.Request, over); err != nil {
		return in, err
	}
	return in, f.engine(a, &in)
}

// again returns the input that makes the same revision again; what another variant or a definition sets
// is left out.
func again(r client.DeploymentRevision, variant string, definition bool) client.DeploymentRevisionInput {
	in := client.DeploymentRevisionInput{Request: cli.Convert[client.CreateSessionInput](r.Request), Variant: r.Variant, Options: r.Options, Subpath: r.Subpath}
	q := &in.Request
	q.Name, q.Type, q.Project, q.StartsAt, q.DependsOn, q.Apps, q.Lifetime, q.SessionGroup = "", "", "", nil, nil, nil, nil, ""
	model := func(m client.MountInput) bool {
		return r.Vfolder != nil && m.Vfolder == r.Vfolder.ID && m.Target == modelPath
	}
	if slices.ContainsFunc(q.Mounts, model) {
		in.Model, q.Mounts = r.Vfolder.ID, slices.DeleteFunc(q.Mounts, model)
	} else { // a definition has mounted it elsewhere, as any other folder
		in.Subpath = ""
	}
	if r.Variant != "custom" || variant != "" && variant != "custom" || definition {
		q.Command = nil
	}
	e := r.Engine
	in.HealthStatus, in.Interval, in.Timeout, in.Retries, in.StartTimeout = &e.HealthStatus, &e.Interval, &e.Timeout, &e.Retries, &e.StartTimeout
	switch {
	case definition:
		in.Variant, in.Options = "", nil
	case variant != "" && variant != r.Variant:
		in.Options = nil
	default:
		in.Port, in.Health, in.Metrics = &e.Port, &e.Health, &e.Metrics
	}
	return in
}

// add sets the fields of a request that over sets. Slots and environment variables are added.
func add(request *client.CreateSessionInput, over client.CreateSessionInput) error {
	text, err := json.Marshal(over)
	if err == nil {
		err = json.Unmarshal(text, request) // adds to maps, and replaces lists
	}
	if err != nil {
		return fmt.Errorf("change the request: %w", err)
	}
	for slot, amount := range request.Slots {
		if amount == "0" {
			delete(request.Slots, slot)
		}
	}
	return nil
}
