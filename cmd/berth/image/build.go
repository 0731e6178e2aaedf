package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// buildFlags are the options of a build.
type buildFlags struct {
	file, base, description, project, group, target string
	cpu, mem                                        string
	args, secrets                                   []string
	share, noCache, detach                          bool
	remote                                          bool // the build fetches the Git repository
	gitUser, gitSecret                              string
	archive                                         *os.File // of files that are sent in parts; nil: none
}

func buildCommand(a *cli.App) *cobra.Command {
	f := &buildFlags{}
	cmd := &cobra.Command{
		Use:   "build NAME[:TAG] [SOURCE]",
		Short: "Build an image of a Dockerfile, a recipe or a list of packages",
		Long: `Build an image in a session of its own, and print the output of its steps.

SOURCE is a directory (the default is the present one), a file, or the address of
a Git repository, such as https://example.org/repo.git#branch:directory, which
git clones on your machine; with --remote the build fetches it, over https and
inside the session. In a directory, the description is the first of
berth.yaml, Dockerfile, Containerfile, .devcontainer/devcontainer.json,
devcontainer.json, environment.yml and requirements.txt that exists; -f names
another one. A requirements.txt and an environment.yml need --base.

The files of the directory are sent, except .git; those that a manager has from
an earlier build are not sent again. Base images must be registered:
"berth image ls" lists those that you can use. The same steps of any member of
the project run only once. Ctrl-C cancels the build.`,
		Example: "  berth image build torch-env\n  berth image build torch-env:2 requirements.txt --base python:1 --share\n  berth image build tool -f docker/Dockerfile --arg VERSION=3 --secret token=token.txt\n  berth image build tool https://example.org/tool.git#main:docker --remote --secret t=token.txt --git-secret t",
		Args:    cli.Args(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			in, err := f.input(cmd.Context(), a, c, args)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), a, c, in)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.file, "file", "f", "", "the description: a `file` below the source")
	fs.StringVar(&f.base, "base", "", "`image` that a requirements.txt or an environment.yml is installed on")
	fs.StringVar(&f.description, "description", "", "`text` for people, at most 1000 characters")
	fs.StringVar(&f.project, "project", "", "`project` of the build, by name or id")
	fs.BoolVar(&f.share, "share", false, "let the members of the project use the image")
	fs.StringVar(&f.group, "group", "", "resource `group` of the build")
	fs.StringVar(&f.target, "target", "", "`stage` of the Dockerfile")
	fs.StringVar(&f.cpu, "cpu", "", "processor `cores` of the build (default 1)")
	fs.StringVar(&f.mem, "mem", "", "`memory` of the build (default 2g)")
	fs.StringArrayVar(&f.args, "arg", nil, "value of an ARG instruction, as `NAME=VALUE`; can be repeated")
	fs.StringArrayVar(&f.secrets, "secret", nil, "file for RUN --mount=type=secret, as `ID=FILE`; can be repeated")
	fs.BoolVar(&f.remote, "remote", false, "let the build fetch the Git repository")
	fs.StringVar(&f.gitSecret, "git-secret", "", "`id` of the --secret with the token for --remote")
	fs.StringVar(&f.gitUser, "git-user", "", "user `name` for --git-secret (default git)")
	fs.BoolVar(&f.noCache, "no-cache", false, "run every step again")
	fs.BoolVar(&f.detach, "detach", false, "return at once, and print the id of the build")
	return cmd
}

// run starts a build and follows it to its end.
func (f *buildFlags) run(ctx context.Context, a *cli.App, c *client.Client, in client.BuildImageInput) error {
	b, err := c.BuildImage(ctx, in)
	if err != nil {
		return err
	}
	if !f.detach {
		if b, err = follow(ctx, a, c, b); err != nil {
			return err
		}
	}
	return a.Printer().Print(b, func() error {
		_, err := fmt.Fprintln(a.Out, summary(b))
		return err
	})
}

// summary describes a build in one line.
func summary(b *client.ImageBuild) string {
	if b.Image == nil {
		return fmt.Sprintf("%s: build %s is %s", b.Name, b.ID, strings.ToLower(string(b.Status)))
	}
	text := fmt.Sprintf("%s (steps: %d, from the cache: %d, new: %s)", b.Image.Reference, b.Steps, b.CachedSteps, output.Bytes(b.LayerBytes))
	if b.GitCommit != "" {
		text += " of commit " + b.GitCommit
	}
	return text
}

// settled is the time between two looks at a build.
const settled = time.Second

// follow prints the output of a build until it has ended, and cancels it if ctx ends.
func follow(ctx context.Context, a *cli.App, c *client.Client, b *client.ImageBuild) (*client.ImageBuild, error) {
	logs := make(chan error, 1)
	reading, stop := context.WithCancel(ctx)
	defer stop()
	go func() { logs <- buildLog(reading, a, c, b) }()
	for b.EndedAt == nil {
		select {
		case <-ctx.Done():
			leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			_, err := c.CancelImageBuild(leaving, b.ID)
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(settled):
		}
		list, err := c.ImageBuilds(ctx, client.Where{"id": b.ID}, 1)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("build %s no longer exists", b.ID)
		}
		b = &list[0]
	}
	select {
	case <-logs:
	case <-time.After(5 * time.Second): // the session of the build is ending
	}
	if b.Status != "SUCCEEDED" {
		if b.FailedStep != "" {
			return nil, fmt.Errorf("the step %s failed: %s", b.FailedStep, b.Message)
		}
		return nil, fmt.Errorf("build %s: %s: %s", b.ID, strings.ToLower(string(b.Status)), b.Message)
	}
	return b, nil
}

// buildLog prints the log of the build's session.
func buildLog(ctx context.Context, a *cli.App, c *client.Client, b *client.ImageBuild) error {
	if b.Session == nil {
		return nil
	}
	status := a.StatusLine(false)
	var kernel string
	err := c.WatchSession(ctx, b.Session.ID, nil, func(state client.SessionState) bool {
		kernel = state.MainKernel()
		ready := state.Ended() || state.Started() && kernel != ""
		if !ready {
			status.Session(b.Session.Name, state)
		}
		return !ready
	})
	status.Clear()
	if err != nil || kernel == "" {
		return err
	}
	log := client.LogStream{Kernel: kernel, Follow: true}
	return log.CopyTo(ctx, c, cli.Calm(a.Err, false))
}

func buildsCommand(a *cli.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "builds",
		Short: "List builds of images",
		Args:  cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			list, err := c.ImageBuilds(cmd.Context(), nil, limit)
			if err != nil {
				return err
			}
			return a.Table(list, func() *output.Table {
				t := output.NewTable("NAME", "STATUS", "KIND", "STEPS", "CACHED", "NEW", "AGE", "OWNER", "SESSION", "ID", "MESSAGE").Spare("MESSAGE")
				for _, b := range list {
					session := ""
					if b.Session != nil {
						session = b.Session.Name
					}
					t.Row(b.Name, strings.ToLower(string(b.Status)), strings.ToLower(string(b.Kind)), strconv.Itoa(b.Steps), strconv.Itoa(b.CachedSteps), output.Bytes(b.LayerBytes),
						output.Age(a.Now(), b.CreatedAt), b.Owner.Username, session, b.ID, cli.OneLine(errors.New(b.Message)))
				}
				return t
			})
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "only the last so many builds; 0 = all")
	return cmd
}

func cancelCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel BUILD",
		Short: "Cancel a build, by its id",
		Args:  cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Client()
			if err != nil {
				return err
			}
			_, err = c.CancelImageBuild(cmd.Context(), args[0])
			return err
		},
	}
}
