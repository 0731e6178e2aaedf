package image

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
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
	lazyStart     *bool
	keysFile      *string
	sweepEvery    *time.Duration
	retention     []string
	mirrors       []string
	logins        string
}

func (s *settings) flags(cmd *cobra.Command) {
	cli.WordsFlag(cmd, &s.mirrors, "mirrors", "`servers` that agents ask for images before the registry, in this order: HOST:PORT, or http://HOST:PORT for one without encryption, with commas between; none: no mirror")
	cmd.Flags().StringVar(&s.logins, "mirror-logins", "", "`file` with a line HOST:PORT USERNAME PASSWORD for each of the mirrors that requires a login; other mirrors keep theirs")
	cli.SetsField(cmd, "mirror-logins", "username", "password")
	cli.OptionalText(cmd, &s.proxy, "proxy", "`URL` of the proxy to the registry, for managers and agents; empty: that of their environment")
	cli.OptionalText(cmd, &s.caFile, "ca-file", "`file` with certificates in PEM that are trusted for the registry; empty: none")
	cli.WordsFlag(cmd, &s.repositories, "repositories", "repositories that scans read, `names` or patterns with *, with commas between; all: what the registry lists")
	cli.WordsFlag(cmd, &s.projects, "projects", "projects whose members can use its images, `names` with commas between; all: no restriction")
	cli.OptionalFlag(cmd, &s.every, "scan-every", "`time` between scans, such as 6h; 0: no scan by itself", time.ParseDuration)
	cli.OptionalFlag(cmd, &s.policy, "tag-policy", "what images do when their tag moves: pinned or follow", cli.Choice("pinned", "follow"))
	cli.OptionalBool(cmd, &s.lazyStart, "lazy-start", "sessions start before their image is complete, where its format and the agent allow it")
	cli.OptionalText(cmd, &s.keysFile, "signature-keys", "`file` with public keys of cosign or certificates for Notation in PEM, one of which must have signed each image; empty: none must")
	cli.OptionalFlag(cmd, &s.sweepEvery, "sweep-every", "`time` between sweeps of the registry for images of sessions; 0: no sweep by itself", time.ParseDuration)
	cli.WordsFlag(cmd, &s.retention, "retention", "how long versions without a tag stay, `rules` PREFIX=DAYS or PREFIX=DAYS:VERSIONS with commas between, such as users/=30:5; none: 7 days")
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

// keys returns the public keys; nil: unchanged.
func (s *settings) keys() (*string, error) {
	if s.keysFile == nil || *s.keysFile == "" {
		return s.keysFile, nil
	}
	text, err := os.ReadFile(*s.keysFile)
	if err != nil {
		return nil, fmt.Errorf("read keys of signatures: %w", err)
	}
	return cli.Ptr(string(text)), nil
}

// mirrorInputs returns the mirrors; nil: unchanged.
func (s *settings) mirrorInputs() ([]client.RegistryMirrorInput, error) {
	if s.mirrors == nil && s.logins != "" {
		return nil, cli.Usagef("--mirror-logins belongs to --mirrors")
	}
	if s.mirrors == nil {
		return nil, nil
	}
	if len(s.mirrors) == 1 && s.mirrors[0] == "none" {
		return []client.RegistryMirrorInput{}, nil
	}
	logins := map[string][]string{}
	if s.logins != "" {
		text, err := os.ReadFile(s.logins)
		if err != nil {
			return nil, fmt.Errorf("read the logins of mirrors: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) != 0 && len(f) != 3 {
				return nil, fmt.Errorf("--mirror-logins: a line has %d words, not HOST:PORT USERNAME PASSWORD: %w", len(f), errdefs.ErrInvalidArgument)
			}
			if len(f) == 3 {
				logins[f[0]] = f[1:]
			}
		}
	}
	out := make([]client.RegistryMirrorInput, 0, len(s.mirrors))
	for _, m := range s.mirrors {
		host, plain := strings.CutPrefix(m, "http://")
		in := client.RegistryMirrorInput{Host: strings.TrimPrefix(host, "https://"), PlainHTTP: plain}
		if l := logins[in.Host]; l != nil {
			in.Username, in.Password = l[0], l[1]
			delete(logins, in.Host)
		}
		out = append(out, in)
	}
	for host := range logins {
		return nil, fmt.Errorf("--mirror-logins has %s, which is not one of the mirrors: %w", host, errdefs.ErrInvalidArgument)
	}
	return out, nil
}

// rules returns the rules of retention; nil: unchanged.
func (s *settings) rules() ([]client.RetentionRuleInput, error) {
	if len(s.retention) == 1 && s.retention[0] == "none" {
		return []client.RetentionRuleInput{}, nil
	}
	var out []client.RetentionRuleInput
	for _, text := range s.retention {
		prefix, amounts, ok := strings.Cut(text, "=")
		days, versions, limited := strings.Cut(amounts, ":")
		rule := client.RetentionRuleInput{Prefix: prefix}
		var err error
		if rule.UntaggedDays, err = strconv.Atoi(days); err != nil || !ok {
			return nil, fmt.Errorf("--retention %q is not PREFIX=DAYS or PREFIX=DAYS:VERSIONS: %w", text, errdefs.ErrInvalidArgument)
		}
		if limited {
			n, err := strconv.Atoi(versions)
			if err != nil {
				return nil, fmt.Errorf("--retention %q: %q is not a number of versions: %w", text, versions, errdefs.ErrInvalidArgument)
			}
			rule.Versions = &n
		}
		out = append(out, rule)
	}
	return out, nil
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
	keys, err := s.keys()
	if err != nil {
		return err
	}
	if keys != nil {
		in.SignatureKeys = *keys
	}
	if s.sweepEvery != nil {
		in.SweepEvery = cli.Ptr(int(s.sweepEvery.Seconds()))
	}
	if in.Retention, err = s.rules(); err != nil {
		return err
	}
	if in.Mirrors, err = s.mirrorInputs(); err != nil {
		return err
	}
	if s.policy != nil {
		in.TagPolicy = *s.policy
	}
	if s.lazyStart != nil {
		in.LazyStart = *s.lazyStart
	}
	return nil
}

func (s *settings) update(ctx context.Context, c *client.Client, in *client.UpdateRegistryInput) (err error) {
	in.Proxy, in.LazyStart = s.proxy, s.lazyStart
	if in.SignatureKeys, err = s.keys(); err != nil {
		return err
	}
	if s.sweepEvery != nil {
		in.SweepEvery = cli.Ptr(int(s.sweepEvery.Seconds()))
	}
	if in.Retention, err = s.rules(); err != nil {
		return err
	}
	if in.Mirrors, err = s.mirrorInputs(); err != nil {
		return err
	}
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
