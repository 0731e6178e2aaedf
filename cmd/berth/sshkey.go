package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"
)

func (a *app) sshKeyCommand() *cobra.Command {
	return alias(group("ssh-key", "Manage SSH keys for your sessions and SFTP",
		a.sshKeyList(), a.sshKeyShow(), a.sshKeyGenerate(), a.sshKeyUpload(), a.sshKeyDownload(), a.sshKeyDelete()), "ssh-keys")
}

func (a *app) sshKeyList() *cobra.Command {
	return a.list("List your SSH keys", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.SSHKeys(ctx)
		if err != nil {
			return err
		}
		return a.table(list, func() *output.Table { return a.sshKeyTable(list...) })
	})
}

func (a *app) sshKeyTable(list ...client.SSHKey) *output.Table {
	t := output.NewTable("NAME", "TYPE", "FINGERPRINT", "STATUS", "EXPIRES", "AGE", "ID").Spare("ID", "AGE")
	for _, k := range list {
		kind, _, _ := strings.Cut(k.PublicKey, " ")
		t.Row(k.Name, kind, k.Fingerprint, credentialStatus(k.Status), a.expiry(k.ExpiresAt), output.Age(a.now(), k.CreatedAt), k.ID)
	}
	return t
}

func (a *app) sshKeyShow() *cobra.Command {
	return a.verb("show KEY", "Show an SSH key, by name, fingerprint or id", count(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		k, err := findSSHKey(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.print().Print(k, func() error {
			s := a.sheet()
			s.fact("Name", k.Name)
			s.fact("ID", k.ID)
			s.fact("Fingerprint", k.Fingerprint)
			s.fact("Created", a.moment(&k.CreatedAt))
			s.fact("Status", sentence(k.Status))
			s.fact("Expires", a.expiry(k.ExpiresAt).Text)
			s.fact("Public key", k.PublicKey)
			return nil
		})
	})
}

func findSSHKey(ctx context.Context, c *client.Client, ref string) (*client.SSHKey, error) {
	list, err := c.SSHKeys(ctx)
	return pick(ctx, c, "SSH key", ref, list, err, func(k client.SSHKey) (id, name string) {
		if k.Fingerprint == ref {
			return k.ID, ref
		}
		return k.ID, k.Name
	})
}

func (a *app) sshKeyGenerate() *cobra.Command {
	var own lasting
	cmd := a.verb("generate NAME FILE", "Create an SSH key and store its private key in a file", count(2, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			return a.lasting(ctx, c, own, func(c *client.Client) error {
				made, err := keepKey(args[1], func() (*client.NewSSHKey, error) { return c.CreateSSHKey(ctx, args[0]) })
				if err != nil {
					return err
				}
				a.note("The private key is in %s, the public one in %s.pub.", args[1], args[1])
				a.noteMaker(made.SSHKey.MakerID, made.SSHKey.ExpiresAt)
				return a.table(made.SSHKey, func() *output.Table { return a.sshKeyTable(made.SSHKey) })
			})
		})
	own.flags(cmd)
	cmd.Long = `Create an SSH key. The private key is written to FILE, which only you can read,
and the public key to FILE.pub. Existing files are not overwritten. The server
does not keep the private key. A key that is created with the token of this
context ends with the token; with --login it does not.`
	cmd.Example = "  berth ssh-key generate laptop ~/.ssh/berth"
	return alias(cmd, "create")
}

// keepKey makes a key and writes its halves to path and path.pub. It makes
// none when it could not keep it.
func keepKey(path string, create func() (*client.NewSSHKey, error)) (made *client.NewSSHKey, err error) {
	private, err := newFile(path, 0o600)
	if err != nil {
		return nil, err
	}
	defer discard(private, &err)
	public, err := newFile(path+".pub", 0o644)
	if err != nil {
		return nil, err
	}
	defer discard(public, &err)
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

// newFile makes a file that is not there yet.
func newFile(path string, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is there already; it is not overwritten: %w", path, errdefs.ErrAlreadyExists)
	}
	return f, err
}

// discard removes a file that holds nothing of use after an error.
func discard(f *os.File, err *error) {
	if *err != nil {
		f.Close()
		os.Remove(f.Name())
	}
}

func (a *app) sshKeyUpload() *cobra.Command {
	var own lasting
	cmd := alias(a.verb("upload NAME FILE", "Add a public key of yours, from a file or - for standard input", count(2, 2),
		func(ctx context.Context, c *client.Client, args []string) error {
			text, err := a.readFile(args[1])
			if err != nil {
				return err
			}
			if strings.Contains(text, "PRIVATE KEY") {
				return usagef("%s is a private key, which must stay secret; upload the public key, usually %s.pub", args[1], args[1])
			}
			return a.lasting(ctx, c, own, func(c *client.Client) error {
				k, err := c.AddSSHKey(ctx, args[0], strings.TrimSpace(text))
				if err != nil {
					return err
				}
				a.noteMaker(k.MakerID, k.ExpiresAt)
				return a.table(k, func() *output.Table { return a.sshKeyTable(*k) })
			})
		}), "add")
	own.flags(cmd)
	return cmd
}

func (a *app) sshKeyDownload() *cobra.Command {
	cmd := a.verb("download KEY [FILE]", "Write the public key of an SSH key to a file or to standard output", count(1, 2),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			k, err := findSSHKey(ctx, c, args[0])
			if err != nil {
				return err
			}
			if len(args) == 1 || args[1] == "-" {
				_, err = fmt.Fprintln(a.out, output.Clean(k.PublicKey))
				return err
			}
			f, err := newFile(args[1], 0o644)
			if err != nil {
				return err
			}
			defer discard(f, &err)
			_, err = f.WriteString(k.PublicKey + "\n")
			return errors.Join(err, f.Close())
		})
	cmd.Long = `Write the public key of an SSH key to a file or to standard output. The server
does not have the private key.`
	return cmd
}

func (a *app) sshKeyDelete() *cobra.Command {
	find := func(ctx context.Context, c *client.Client, ref string) (string, error) {
		return idOr(ref, func() (*client.SSHKey, error) { return findSSHKey(ctx, c, ref) }, func(k *client.SSHKey) string { return k.ID })
	}
	return alias(a.onEach("delete KEY", "Remove SSH keys, by name, fingerprint or id", find,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteSSHKey(ctx, id) }), "rm")
}
