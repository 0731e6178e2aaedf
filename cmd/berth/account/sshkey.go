package account

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// SSHKeyCommand returns the command "berth ssh-key".
func SSHKeyCommand(a *cli.App) *cobra.Command {
	return cli.Alias(cli.Group("ssh-key", "Manage SSH keys for your sessions and SFTP",
		sshKeyList(a), sshKeyShow(a), sshKeyGenerate(a), sshKeyUpload(a), sshKeyDownload(a), sshKeyDelete(a)), "ssh-keys")
}

func sshKeyList(a *cli.App) *cobra.Command {
	return a.List("List your SSH keys", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.SSHKeys(ctx)
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return sshKeyTable(a, list...) })
	})
}

func sshKeyTable(a *cli.App, list ...client.SSHKey) *output.Table {
	t := output.NewTable("NAME", "TYPE", "FINGERPRINT", "STATUS", "EXPIRES", "AGE", "ID").Spare("ID", "AGE")
	for _, k := range list {
		kind, _, _ := strings.Cut(k.PublicKey, " ")
		t.Row(k.Name, kind, k.Fingerprint, credentialStatus(k.Status), expiry(a, k.ExpiresAt), output.Age(a.Now(), k.CreatedAt), k.ID)
	}
	return t
}

func sshKeyShow(a *cli.App) *cobra.Command {
	return a.Verb("show KEY", "Show an SSH key, by name, fingerprint or id", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		k, err := findSSHKey(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.Printer().Print(k, func() error {
			s := a.Sheet()
			s.Fact("Name", k.Name)
			s.Fact("ID", k.ID)
			s.Fact("Fingerprint", k.Fingerprint)
			s.Fact("Created", a.Moment(&k.CreatedAt))
			s.Fact("Status", cli.Sentence(k.Status.String()))
			s.Fact("Expires", expiry(a, k.ExpiresAt).Text)
			s.Fact("Public key", k.PublicKey)
			return nil
		})
	})
}

func findSSHKey(ctx context.Context, c *client.Client, ref string) (*client.SSHKey, error) {
	list, err := c.SSHKeys(ctx)
	return cli.Pick(ctx, c, "SSH key", ref, list, err, func(k client.SSHKey) (id, name string) {
		if k.Fingerprint == ref {
			return k.ID, ref
		}
		return k.ID, k.Name
	})
}

func sshKeyGenerate(a *cli.App) *cobra.Command {
	var own ownLogin
	cmd := a.Verb("generate NAME FILE", "Create an SSH key and store its private key in a file", cli.Args(2, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			return withOwnLogin(ctx, a, c, own, func(c *client.Client) error {
				made, err := keepKey(args[1], func() (*client.NewSSHKey, error) { return c.CreateSSHKey(ctx, args[0]) })
				if err != nil {
					return err
				}
				a.Note("The private key is in %s, the public one in %s.pub.", args[1], args[1])
				noteMaker(a, made.SSHKey.MakerID, made.SSHKey.ExpiresAt)
				return a.Table(made.SSHKey, func() *output.Table { return sshKeyTable(a, made.SSHKey) })
			})
		})
	own.flags(cmd)
	cmd.Long = `Create an SSH key. The private key is written to FILE, which only you can read,
and the public key to FILE.pub. Existing files are not overwritten. The server
does not keep the private key. A key that is created with the token of this
context ends with the token; with --login it does not.`
	cmd.Example = "  berth ssh-key generate laptop ~/.ssh/id_berth"
	return cli.Alias(cmd, "create")
}

// keepKey creates a key and writes its two halves to path and path.pub. It checks that it can write
// them before it creates the key.
func keepKey(path string, create func() (*client.NewSSHKey, error)) (made *client.NewSSHKey, err error) {
	private, err := cli.CreateFile(path, 0o600)
	if err != nil {
		return nil, err
	}
	defer cli.RemoveOnError(private, &err)
	public, err := cli.CreateFile(path+".pub", 0o644)
	if err != nil {
		return nil, err
	}
	defer cli.RemoveOnError(public, &err)
	if made, err = create(); err != nil {
		return nil, err
	}
	if made.PrivateKey == nil {
		return nil, fmt.Errorf("the server gave no private key: %w", errdefs.ErrInternal)
	}
	_, err = private.WriteString(*made.PrivateKey)
	_, publicErr := public.WriteString(made.SSHKey.PublicKey + "\n")
	return made, errors.Join(err, publicErr, private.Close(), public.Close())
}

func sshKeyUpload(a *cli.App) *cobra.Command {
	var own ownLogin
	cmd := cli.Alias(a.Verb("upload NAME FILE", "Add a public key of yours, from a file or - for standard input", cli.Args(2, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			text, err := a.ReadFile(args[1])
			if err != nil {
				return err
			}
			if strings.Contains(text, "PRIVATE KEY") {
				return cli.Usagef("%s is a private key, which must stay secret; upload the public key, usually %s.pub", args[1], args[1])
			}
			return withOwnLogin(ctx, a, c, own, func(c *client.Client) error {
				k, err := c.AddSSHKey(ctx, args[0], strings.TrimSpace(text))
				if err != nil {
					return err
				}
				noteMaker(a, k.MakerID, k.ExpiresAt)
				return a.Table(k, func() *output.Table { return sshKeyTable(a, *k) })
			})
		}), "add")
	own.flags(cmd)
	return cmd
}

func sshKeyDownload(a *cli.App) *cobra.Command {
	cmd := a.Verb("download KEY [FILE]", "Write the public key of an SSH key to a file or to standard output", cli.Args(1, 2),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			k, err := findSSHKey(ctx, c, args[0])
			if err != nil {
				return err
			}
			if len(args) == 1 || args[1] == "-" {
				_, err = fmt.Fprintln(a.Out, output.Clean(k.PublicKey))
				return err
			}
			f, err := cli.CreateFile(args[1], 0o644)
			if err != nil {
				return err
			}
			defer cli.RemoveOnError(f, &err)
			_, err = f.WriteString(k.PublicKey + "\n")
			return errors.Join(err, f.Close())
		})
	cmd.Long = `Write the public key of an SSH key to a file or to standard output. The server
does not have the private key.`
	return cmd
}

func sshKeyDelete(a *cli.App) *cobra.Command {
	find := func(ctx context.Context, c *client.Client, ref string) (string, error) {
		return cli.IDOr(ref, func() (*client.SSHKey, error) { return findSSHKey(ctx, c, ref) }, func(k *client.SSHKey) string { return k.ID })
	}
	return cli.Alias(a.OnEach("delete KEY", "Remove SSH keys, by name, fingerprint or id", find,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteSSHKey(ctx, id) }), "rm")
}
