package image

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// settings are the flags that creating and changing a registry share.
type settings struct {
	proxy, caFile *string
	repositories  []string
	projects      []string
	every         *time.Duration
	policy        *client.Enum
}

func (s *settings) flags(cmd *cobra.Command) {
	cli.OptionalText(cmd, &s.proxy, "proxy", "`URL` of the proxy to the registry, for managers and agents; empty: that of their environment")
	cli.OptionalText(cmd, &s.caFile, "ca-file", "`file` with certificates in PEM that are trusted for the registry; empty: none")
	cli.WordsFlag(cmd, &s.repositories, "repositories", "repositories that scans read, `names` or patterns with *, with commas between; all: what the registry lists")
	cli.WordsFlag(cmd, &s.projects, "projects", "projects whose members can use its images, `names` with commas between; all: no restriction")
	cli.OptionalFlag(cmd, &s.every, "scan-every", "`time` between scans, such as 6h; 0: no scan by itself", time.ParseDuration)
	cli.OptionalFlag(cmd, &s.policy, "tag-policy", "what images do when their tag moves: pinned or follow", cli.Choice("pinned", "follow"))
}

// read returns the certificates, the repositories and the ids of the projects; nil: unchanged.
func (s *settings) read(ctx context.Context, c *client.Client) (certificates *string, repositories, projects []string, every *int, err error) {
	if s.caFile != nil {
		text := []byte{}
		if *s.caFile != "" {
			if text, err = os.ReadFile(*s.caFile); err != nil {
				return nil, nil, nil, nil, fmt.Errorf("read certificates: %w", err)
			}
		}
		certificates = cli.Ptr(string(text))
	}
	if s.every != nil {
		every = cli.Ptr(int(s.every.Seconds()))
	}
	repositories = listed(s.repositories)
	names := listed(s.projects)
	if len(names) == 0 {
		return certificates, repositories, names, every, nil
	}
	all, err := c.Projects(ctx, "")
	if err != nil {
		return nil, nil, nil, nil, err
	}
	refs := make([]client.Ref, 0, len(all))
	for _, p := range all {
		refs = append(refs, client.Ref{ID: p.ID, Name: p.Name})
	}
	for _, name := range names {
		id, err := cli.FindRef("project", name, refs)
		if err != nil {
			return nil, nil, nil, nil, err
		}
		projects = append(projects, id)
	}
	return certificates, repositories, projects, every, nil
}

// listed returns the values of a flag: none for the word all, nil without the flag.
func listed(values []string) []string {
	if len(values) == 1 && values[0] == "all" {
		return []string{}
	}
	return values
}

func (s *settings) create(ctx context.Context, c *client.Client, in *client.CreateRegistryInput) error {
	certificates, repositories, projects, every, err := s.read(ctx, c)
	if err != nil {
		return err
	}
	in.Repositories, in.Projects = repositories, projects
	if certificates != nil {
		in.Certificates = *certificates
	}
	if s.proxy != nil {
		in.Proxy = *s.proxy
	}
	in.ScanEvery = every
	if s.policy != nil {
		in.TagPolicy = *s.policy
	}
	return nil
}

func (s *settings) update(ctx context.Context, c *client.Client, in *client.UpdateRegistryInput) (err error) {
	in.Proxy = s.proxy
	in.Certificates, in.Repositories, in.Projects, in.ScanEvery, err = s.read(ctx, c)
	if s.policy != nil {
		in.TagPolicy = *s.policy
	}
	return err
}

func registryTest(a *cli.App) *cobra.Command {
	return a.Verb("test REGISTRY", "Try to reach a registry, to log in and to list", cli.Args(1, 1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := findRegistry(ctx, c, args[0])
			if err != nil {
				return err
			}
			checks, err := c.TestRegistry(ctx, r.ID)
			if err != nil {
				return err
			}
			err = a.Table(checks, func() *output.Table {
				t := output.NewTable("CHECK", "WORKS", "RESULT")
				for _, x := range checks {
					works := output.Cell{Text: "yes", Color: output.Green}
					if !x.Works {
						works = output.Cell{Text: "no", Color: output.Red}
					}
					t.Row(x.Step.String(), works, x.Text)
				}
				return t
			})
			for _, x := range checks {
				if err == nil && !x.Works {
					return fmt.Errorf("registry %s: %s", r.Name, x.Text)
				}
			}
			return err
		})
}
