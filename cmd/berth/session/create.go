package session

import (
	"context"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// createFlags describe a new session.
type createFlags struct {
	RequestFlags
	name, project string
	start         string
	after         []string
	lifetime      *int
	groupOf       string
	apps          []client.AppInput
	template      string
	from          string // id of the session to clone
}

func (f *createFlags) register(cmd *cobra.Command) {
	f.RequestFlags.Register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "name of the session (default: generated)")
	flags.StringVar(&f.project, "project", "", "project (default: your only one)")
	flags.StringVar(&f.start, "start", "", "start a batch session not before a `time`: 2026-01-31T08:00, or a duration from now, such as 2h30m")
	flags.StringArrayVar(&f.after, "after", nil, "start only after this `session` or array has succeeded, by name or id (repeatable)")
	cli.OptionalFlag(cmd, &f.lifetime, "lifetime", "end it after this `duration`, such as 2h; it may then start before others that need more room", cli.ParseSeconds)
	flags.StringVar(&f.groupOf, "group-of", "", "session `group` with which it is placed, by name or id (see: berth session-group)")
	cli.ListFlag(cmd, &f.apps, "app", "app beside those of the image: `name=port`, or name=port:command with the shell command that starts it (repeatable)", parseApp)
	cli.SetsField(cmd, "app", "apps")
	cli.SetsField(cmd, "group-of", "sessionGroup")
	cli.SetsField(cmd, "start", "startsAt")
	cli.SetsField(cmd, "after", "dependsOn")
}

// fromTemplate adds the flag that names a template.
func (f *createFlags) fromTemplate(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.template, "template", "", "template, by `name` or id, whose request applies unless a flag changes it (see: berth template ls)")
}

// based reports whether the request is based on a template or another session, which supply what no
// flag sets.
func (f *createFlags) based() bool { return f.template != "" || f.from != "" }

// image returns the image from the arguments before the command. A request that is based on another
// one does not need it.
func (f *createFlags) image(cmd *cobra.Command, before []string) (string, error) {
	switch {
	case len(before) == 1:
		return before[0], nil
	case len(before) == 0 && f.template != "":
		return "", nil
	}
	return "", cli.Usagef("usage: %s", cmd.UseLine())
}

// input converts flags and arguments to the input of the API.
func (f *createFlags) input(ctx context.Context, a *cli.App, cmd *cobra.Command, c *client.Client, kind client.Enum, image string, command []string) (client.CreateSessionInput, error) {
	var in client.CreateSessionInput
	var err error
	if f.template != "" {
		if in.Template, err = cli.FindTemplateID(ctx, c, f.template); err != nil {
			return in, err
		}
	}
	f.Partial = f.based()
	if err := f.RequestFlags.Fill(ctx, a, cmd, c, &in); err != nil {
		return in, err
	}
	in.Name, in.Image, in.Type, in.Command, in.IdempotencyKey, in.Apps, in.From = f.name, image, kind, command, uuid.NewString(), f.apps, f.from
	if err := f.when(ctx, a, c, &in); err != nil {
		return in, err
	}
	return in, f.place(ctx, c, &in)
}

// when looks up the dependencies of the session.
func (f *createFlags) when(ctx context.Context, a *cli.App, c *client.Client, in *client.CreateSessionInput) error {
	if f.start != "" {
		at, err := parseStart(f.start, a.Now())
		if err != nil {
			return err
		}
		in.StartsAt = &at
	}
	for _, ref := range f.after {
		id, err := findNeeded(ctx, c, ref)
		if err != nil {
			return err
		}
		in.DependsOn = append(in.DependsOn, id)
	}
	in.Lifetime = f.lifetime
	if f.groupOf == "" {
		return nil
	}
	id, err := cli.FindSessionGroupID(ctx, c, f.groupOf)
	in.SessionGroup = id
	return err
}

// findNeeded finds a session or, if there is none, an array.
func findNeeded(ctx context.Context, c *client.Client, ref string) (string, error) {
	s, err := cli.FindSession(ctx, c, ref)
	if err == nil {
		return s.ID, nil
	}
	if errdefs.IsNotFound(err) {
		if a, arrayErr := cli.FindArray(ctx, c, ref); arrayErr == nil {
			return a.ID, nil
		}
	}
	return "", err
}

// parseStart reads a local time, or a duration from now.
func parseStart(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, cli.Usagef("--start %s: not a time such as 2026-01-31T08:00, nor a duration such as 2h30m", text)
}

// place looks up the ID of the project.
func (f *createFlags) place(ctx context.Context, c *client.Client, in *client.CreateSessionInput) error {
	if f.project == "" {
		return nil
	}
	who, err := c.Viewer(ctx)
	if err != nil {
		return err
	}
	in.Project, err = cli.FindRef("project", f.project, who.Projects)
	return err
}
