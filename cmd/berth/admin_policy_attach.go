package main

import (
	"context"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/spf13/cobra"
)

// bindingFlags say where a policy binds.
type bindingFlags struct {
	holderFlags
	group, within string
}

func (f *bindingFlags) register(cmd *cobra.Command) {
	f.add(cmd, true)
	cmd.Flags().StringVar(&f.group, "group", "", "only for sessions of this resource group")
	cmd.Flags().StringVar(&f.within, "within-project", "", "with --user: only for their sessions in this project")
}

// text is what the flags name, for people.
func (f *bindingFlags) text() string { return f.domain + f.project + f.user + f.keypair }

func (f *bindingFlags) input(ctx context.Context, c *client.Client) (in client.AttachResourcePolicyInput, err error) {
	h, err := f.holder(ctx, c)
	if err != nil {
		return in, err
	}
	in.Domain, in.Project, in.User, in.Keypair = h.domain, h.project, h.user, h.keypair
	if in.ResourceGroup, err = findGroupID(ctx, c, f.group); err != nil {
		return in, err
	}
	in.WithinProject, err = findProjectID(ctx, c, f.within)
	return in, err
}

func (a *app) policyAttach() *cobra.Command {
	var f bindingFlags
	cmd := a.verb("attach POLICY", "Apply a policy to a domain, project, user or keypair", count(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			in, err := f.input(ctx, c)
			if err != nil {
				return err
			}
			if in.Policy, err = findPolicyID(ctx, c, args[0]); err != nil {
				return err
			}
			at, err := c.AttachPolicy(ctx, in)
			if err != nil {
				return err
			}
			return a.table(at, func() *output.Table {
				t := output.NewTable("POLICY", "BINDS", "ID")
				t.Row(at.Policy.Name, attachedTo(*at), at.ID)
				return t
			})
		})
	cmd.Long = `Apply a policy to a domain, project, user or keypair. It replaces the policy that
is attached there with the same --group and --within-project.`
	cmd.Example = `  berth admin policy attach student --project thesis
  berth admin policy attach big --user kim@example.org --within-project thesis --group gpu`
	f.register(cmd)
	return cmd
}

func (a *app) policyDetach() *cobra.Command {
	var f bindingFlags
	cmd := a.verb("detach [ID]", "Detach a policy from a domain, project, user or keypair", count(0, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if len(args) == 1 {
				if !isID(args[0]) || f.given() > 0 {
					return usagef("name the attachment by its id, or by the flags of its holder")
				}
				return a.gone(args[0], c.DetachPolicy(ctx, args[0]))
			}
			in, err := f.input(ctx, c)
			if err != nil {
				return err
			}
			_, err = c.AttachPolicy(ctx, in)
			return a.gone(f.text(), err)
		})
	cmd.Long = `Detach a policy from a domain, project, user or keypair: the policy attached there
with the same --group and --within-project, or the attachment with the given ID.`
	f.register(cmd)
	return cmd
}
