package policy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// bindingFlags name the object that a policy is attached to.
type bindingFlags struct {
	cli.HolderFlags
	group, within string
}

func (f *bindingFlags) register(cmd *cobra.Command) {
	f.Add(cmd, true)
	cmd.Flags().StringVar(&f.group, "group", "", "only for sessions of this resource group")
	cmd.Flags().StringVar(&f.within, "within-project", "", "with --user: only for their sessions in this project")
}

// text names the object of the flags, for messages.
func (f *bindingFlags) text() string { return f.Domain + f.Project + f.User + f.Keypair }

func (f *bindingFlags) input(ctx context.Context, c *client.Client) (in client.AttachResourcePolicyInput, err error) {
	h, err := f.Holder(ctx, c)
	if err != nil {
		return in, err
	}
	in.Domain, in.Project, in.User, in.Keypair = h.Domain, h.Project, h.User, h.Keypair
	if in.ResourceGroup, err = cli.FindGroupID(ctx, c, f.group); err != nil {
		return in, err
	}
	in.WithinProject, err = cli.FindProjectID(ctx, c, f.within)
	return in, err
}

func policyAttach(a *cli.App) *cobra.Command {
	var f bindingFlags
	cmd := a.Verb("attach POLICY", "Apply a policy to a domain, project, user or keypair", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			in, err := f.input(ctx, c)
			if err != nil {
				return err
			}
			if in.Policy, err = cli.FindPolicyID(ctx, c, args[0]); err != nil {
				return err
			}
			at, err := c.AttachPolicy(ctx, in)
			if err != nil {
				return err
			}
			return a.Table(at, func() *output.Table {
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

func policyDetach(a *cli.App) *cobra.Command {
	var f bindingFlags
	cmd := a.Verb("detach [ID]", "Detach a policy from a domain, project, user or keypair", cli.Args(0, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if len(args) == 1 {
				if !cli.IsID(args[0]) || f.Given() > 0 {
					return cli.Usagef("name the attachment by its id, or by the flags of its holder")
				}
				return a.Removed(args[0], c.DetachPolicy(ctx, args[0]))
			}
			in, err := f.input(ctx, c)
			if err != nil {
				return err
			}
			_, err = c.AttachPolicy(ctx, in)
			return a.Removed(f.text(), err)
		})
	cmd.Long = `Detach a policy from a domain, project, user or keypair: the policy attached there
with the same --group and --within-project, or the attachment with the given ID.`
	f.register(cmd)
	return cmd
}
