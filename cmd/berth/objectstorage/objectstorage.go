// Package objectstorage has the commands about object storages.
package objectstorage

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Command returns the command "berth objectstorage".
func Command(a *cli.App) *cobra.Command {
	cmd := cli.Alias(cli.Group("objectstorage", "Manage object storages (S3) for import and export of folders",
		listCommand(a), addCommand(a), showCommand(a), setCommand(a), testCommand(a), browseCommand(a), removeCommand(a)),
		"object-storage", "s3")
	cmd.Long = `Manage object storages (S3): buckets for berth folder import and berth folder
export. An object storage is your own, or your domain's if an administrator added
it with --for-domain.`
	return cmd
}

func listCommand(a *cli.App) *cobra.Command {
	return a.List("List object storages: yours and those of your domain", func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.ObjectStorages(ctx, "")
		if err != nil {
			return err
		}
		return a.Table(list, func() *output.Table { return storageTable(list...) })
	})
}

func storageTable(list ...client.ObjectStorage) *output.Table {
	t := output.NewTable("NAME", "BUCKET", "PREFIX", "ENDPOINT", "REGION", "ACCESS KEY", "FOR", "MAY").Spare("ENDPOINT")
	for _, s := range list {
		may := "read, write"
		if s.ReadOnly {
			may = "read"
		}
		t.Row(s.Name, s.Bucket, s.Prefix, s.Endpoint, s.Region, s.AccessKeyID, cli.HolderText(s.Domain, nil, s.Owner, "-"), may)
	}
	return t
}

// Find finds an object storage by ID or name.
func Find(ctx context.Context, c *client.Client, ref string) (*client.ObjectStorage, error) {
	name := ref
	if cli.IsID(ref) {
		name = ""
	}
	all, err := c.ObjectStorages(ctx, name)
	if cli.IsID(ref) {
		return cli.Pick(ctx, c, "object storage", ref, all, err, func(s client.ObjectStorage) (id, name string) { return s.ID, s.Name })
	}
	return cli.One(ctx, c, "object storage", ref, all, err, func(s client.ObjectStorage) (id, owner string) {
		if s.Owner != nil {
			owner = s.Owner.ID
		}
		return s.ID, owner
	})
}

func findStorageID(ctx context.Context, c *client.Client, ref string) (string, error) {
	return cli.IDOr(ref, func() (*client.ObjectStorage, error) { return Find(ctx, c, ref) }, func(s *client.ObjectStorage) string { return s.ID })
}

// storageFlags are the flags for the settings of an object storage.
type storageFlags struct {
	in    client.UpdateObjectStorageInput
	stdin bool
}

func (f *storageFlags) add(cmd *cobra.Command) {
	cli.OptionalText(cmd, &f.in.Endpoint, "endpoint", "`URL` of the server, as https://s3.eu-central-1.amazonaws.com")
	cli.OptionalText(cmd, &f.in.Bucket, "bucket", "`name` of the bucket")
	cli.OptionalText(cmd, &f.in.Prefix, "prefix", "`path` in the bucket below which everything is")
	cli.OptionalText(cmd, &f.in.Region, "region", "`region`, as eu-central-1 (default: the server is asked)")
	cli.ParsedFlag(cmd, &f.in.Addressing, "addressing", "`how` the bucket is named: path or virtual (default: path)", cli.Choice("path", "virtual"))
	cli.OptionalText(cmd, &f.in.AccessKeyID, "access-key", "`ID` of the access key; none for anonymous access")
	cli.OptionalBool(cmd, &f.in.ReadOnly, "read-only", "export nothing to there (=false: exports may)")
	cmd.Flags().BoolVar(&f.stdin, "secret-stdin", false, "read the secret of the access key from standard input")
	cli.SetsField(cmd, "access-key", "accessKeyId", "accessKeyID")
	cli.SetsField(cmd, "read-only", "readOnly")
	cli.SetsField(cmd, "secret-stdin", "secret")
}

// secret reads the secret if there is an access key, and removes it if the key is "none".
func (f *storageFlags) secret(ctx context.Context, a *cli.App) error {
	if f.in.AccessKeyID != nil && *f.in.AccessKeyID == "none" {
		*f.in.AccessKeyID = ""
		return nil
	}
	secret, err := "", error(nil)
	switch {
	case f.stdin:
		secret, err = cli.ReadLine(a.In)
	case a.Env("BERTH_S3_SECRET") != "":
		secret = a.Env("BERTH_S3_SECRET")
	case f.in.AccessKeyID != nil:
		secret, err = a.AskSecret(ctx, "Secret of the access key: ", "--secret-stdin or BERTH_S3_SECRET")
	default:
		return nil
	}
	f.in.Secret = &secret
	return err
}

const secretHelp = `The secret of the access key comes from standard input with --secret-stdin, else
from $BERTH_S3_SECRET, else from a prompt; it is kept sealed and never shown.`

func addCommand(a *cli.App) *cobra.Command {
	var flags storageFlags
	var domain string
	var all bool
	cmd := a.Verb("add NAME", "Add an object storage of your own, or of a domain", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			if flags.in.Endpoint == nil || flags.in.Bucket == nil {
				return cli.Usagef("--endpoint and --bucket are needed")
			}
			if all || domain != "" {
				if domain, err = cli.DomainOrMine(ctx, c, domain); err != nil {
					return err
				}
			}
			if err := flags.secret(ctx, a); err != nil {
				return err
			}
			in := cli.Convert[client.CreateObjectStorageInput](flags.in)
			in.Name, in.Domain = args[0], domain
			s, err := c.CreateObjectStorage(ctx, in)
			if err != nil {
				return err
			}
			if err := a.Table(s, func() *output.Table { return storageTable(*s) }); err != nil {
				return err
			}
			return tellTest(ctx, a, c, s)
		})
	cmd.Long = "Add an object storage of your own, or of a domain, and test the connection.\n" + secretHelp
	cmd.Example = "  berth objectstorage add lake --endpoint https://s3.example.org --bucket lake --access-key AKIA123 --prefix team"
	flags.add(cmd)
	cmd.Flags().StringVar(&domain, "domain", "", "for the members of this domain, as its administrator")
	cmd.Flags().BoolVar(&all, "for-domain", false, "for the members of your domain, as its administrator")
	return cli.Alias(cmd, "create")
}

// tellTest reads a page of a storage and prints a note if that fails.
func tellTest(ctx context.Context, a *cli.App, c *client.Client, s *client.ObjectStorage) error {
	r, err := c.TestObjectStorage(ctx, s.ID)
	if err != nil {
		return err
	}
	if !r.OK {
		a.Note("It is kept, but does not answer as it should: %s", tested(r))
	}
	return nil
}

func tested(r *client.ObjectStorageTest) string {
	words := "no reason was given"
	if r.Message != nil {
		words = *r.Message
	}
	if r.Field != nil {
		words = *r.Field + ": " + words
	}
	return words
}

func showCommand(a *cli.App) *cobra.Command {
	return a.Verb("show STORAGE", "Show an object storage; its secret is never shown", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		s, err := Find(ctx, c, args[0])
		if err != nil {
			return err
		}
		return a.Table(s, func() *output.Table {
			t := output.NewTable("FIELD", "VALUE")
			for _, row := range [][2]string{
				{"name", s.Name}, {"id", s.ID}, {"endpoint", s.Endpoint}, {"region", s.Region}, {"bucket", s.Bucket}, {"prefix", s.Prefix},
				{"addressing", s.Addressing.String()}, {"access key", s.AccessKeyID}, {"read only", fmt.Sprint(s.ReadOnly)},
				{"for", cli.HolderText(s.Domain, nil, s.Owner, "-")},
			} {
				t.Row(row[0], row[1])
			}
			return t
		})
	})
}

func setCommand(a *cli.App) *cobra.Command {
	var flags storageFlags
	var name *string
	cmd := a.Verb("set STORAGE", "Change an object storage", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		flags.in.Name = name
		if !flags.stdin {
			if err := cli.RequireChanges(flags.in); err != nil {
				return err
			}
		}
		s, err := Find(ctx, c, args[0])
		if err != nil {
			return err
		}
		flags.in.ID = s.ID
		if flags.stdin || flags.in.AccessKeyID != nil || flags.in.Endpoint != nil && s.AccessKeyID != "" {
			if flags.in.AccessKeyID == nil {
				flags.in.AccessKeyID = &s.AccessKeyID
			}
			if err := flags.secret(ctx, a); err != nil {
				return err
			}
		}
		if s, err = c.UpdateObjectStorage(ctx, flags.in); err != nil {
			return err
		}
		if err := a.Table(s, func() *output.Table { return storageTable(*s) }); err != nil {
			return err
		}
		return tellTest(ctx, a, c, s)
	})
	cmd.Long = "Change an object storage. A new endpoint or access key requires the secret again.\n" + secretHelp
	cli.OptionalText(cmd, &name, "name", "another `name`")
	flags.add(cmd)
	return cli.Alias(cmd, "update")
}

func testCommand(a *cli.App) *cobra.Command {
	return a.Verb("test STORAGE", "Test the connection to an object storage", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		s, err := Find(ctx, c, args[0])
		if err != nil {
			return err
		}
		r, err := c.TestObjectStorage(ctx, s.ID)
		if err != nil {
			return err
		}
		if !r.OK {
			return fmt.Errorf("object storage %s: %s: %w", s.Name, tested(r), errdefs.ErrFailedPrecondition)
		}
		return a.Printer().Print(r, func() error {
			_, err := fmt.Fprintln(a.Out, s.Name, "answers")
			return err
		})
	})
}

func browseCommand(a *cli.App) *cobra.Command {
	var limit int
	cmd := a.Verb("browse STORAGE[:PATH]", "List objects at a path of an object storage", cli.Args(1, 1), func(ctx context.Context, c *client.Client, args []string) error {
		name, path := CutPlace(args[0])
		s, err := Find(ctx, c, name)
		if err != nil {
			return err
		}
		list, err := c.Objects(ctx, s.ID, path, limit)
		if err != nil {
			return err
		}
		if err := a.Table(list, func() *output.Table { return objectTable(a, list) }); err != nil {
			return err
		}
		if limit > 0 && len(list) == limit {
			a.Note("These are the first %d; --limit 0 lists all.", limit)
		}
		return nil
	})
	cmd.Flags().IntVar(&limit, "limit", 1000, "list so many at most; 0 = all")
	return cmd
}

func objectTable(a *cli.App, list []client.StoredObject) *output.Table {
	t := output.NewTable("NAME", "SIZE", "MODIFIED")
	for _, o := range list {
		if o.Directory {
			t.Row(o.Name+"/", "", "")
			continue
		}
		modified := ""
		if o.ModifiedAt != nil {
			modified = output.Age(a.Now(), *o.ModifiedAt)
		}
		t.Row(o.Name, output.Bytes(o.Size), modified)
	}
	return t
}

// CutPlace parses STORAGE[:PATH]. A path can contain colons.
func CutPlace(text string) (storage, path string) {
	storage, path, _ = strings.Cut(text, ":")
	return storage, strings.Trim(path, "/")
}

func removeCommand(a *cli.App) *cobra.Command {
	return cli.Alias(a.OnEach("rm STORAGE", "Remove object storages; the objects in their buckets stay", findStorageID,
		func(ctx context.Context, c *client.Client, id string) error { return c.DeleteObjectStorage(ctx, id) }), "delete")
}
