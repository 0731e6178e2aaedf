package template

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// ApplyCommand returns the command "berth apply".
func ApplyCommand(a *cli.App) *cobra.Command {
	var x applier
	var file string
	cmd := a.Verb("apply -f FILE", "Create and update the templates and sessions of a file; a second time changes nothing", cli.Args(0, 0),
		func(ctx context.Context, c *client.Client, _ []string) error {
			x.app, x.client = a, c
			return x.file(ctx, file)
		})
	cmd.Example = "  berth apply -f lab.yaml --dry-run\n  berth apply -f lab.yaml"
	cmd.Flags().StringVarP(&file, "file", "f", "", "YAML file with one or more documents; - reads standard input")
	cmd.Flags().BoolVar(&x.dry, "dry-run", false, "change nothing; print what would be done")
	cmd.Flags().BoolVar(&x.replace, "replace", false, "end a session that differs from the file, and start it as described in the file")
	_ = cmd.MarkFlagRequired("file")
	return cmd
}

// applier applies documents.
type applier struct {
	app          *cli.App
	client       *client.Client
	dry, replace bool
	only         string // the only kind that is accepted, if not empty
}

// result is the result for one document.
type result struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	ID     string `json:"id"`
	Result string `json:"result"`
}

// file checks all documents of a file before it applies the first.
func (x *applier) file(ctx context.Context, name string) error {
	raw, err := x.app.ReadFile(name)
	if err != nil {
		return err
	}
	list, err := parse(name, []byte(raw))
	if err != nil {
		return err
	}
	inputs := make([]client.CreateSessionInput, len(list))
	for i, d := range list {
		if x.only != "" && d.Kind != x.only {
			return d.wrong("kind", fmt.Errorf("%q cannot be imported; use berth apply", d.Kind))
		}
		if inputs[i], err = d.input(ctx, x.client); err != nil {
			return err
		}
	}
	results := []result{}
	for i, d := range list {
		r, err := x.apply(ctx, d, inputs[i])
		if err != nil {
			return errors.Join(x.print(results), err)
		}
		results = append(results, r)
	}
	return x.print(results)
}

func (x *applier) print(results []result) error {
	if len(results) == 0 {
		return nil
	}
	return x.app.Printer().Print(results, func() error {
		for _, r := range results {
			fmt.Fprintln(x.app.Out, output.Clean(fmt.Sprintf("%s %s %s", r.Kind, r.Name, r.Result)))
		}
		return nil
	})
}

func (x *applier) apply(ctx context.Context, d *document, in client.CreateSessionInput) (result, error) {
	if d.Kind == kindTemplate {
		return x.template(ctx, d, in)
	}
	return x.session(ctx, d, in)
}

// done describes the result of a change, or of its dry run.
func (x *applier) done(what string) string {
	if x.dry {
		return "would be " + what
	}
	return what
}

func (x *applier) template(ctx context.Context, d *document, in client.CreateSessionInput) (result, error) {
	r := result{Kind: d.Kind, Name: d.Name, Result: x.done("created")}
	project, err := cli.FindProjectID(ctx, x.client, d.Project)
	if err != nil {
		return r, d.wrong("project", err)
	}
	now, err := x.existing(ctx, d.Name, project)
	if err != nil {
		return r, d.refused(err)
	}
	if now == nil {
		if x.dry {
			return r, nil
		}
		made, err := x.client.CreateSessionTemplate(ctx, client.CreateSessionTemplateInput{Name: d.Name, Description: d.Description, Project: project, Request: in})
		if err != nil {
			return r, d.refused(err)
		}
		r.ID = made.ID
		return r, nil
	}
	r.ID = now.ID
	have, err := fieldsOf(now.Request)
	if err != nil {
		return r, err
	}
	want, err := fieldsOf(in)
	if err != nil {
		return r, err
	}
	if len(differences(have, want)) == 0 && now.Description == d.Description {
		r.Result = "unchanged"
		return r, nil
	}
	if r.Result = x.done("updated"); x.dry {
		return r, nil
	}
	_, err = x.client.UpdateSessionTemplate(ctx, client.UpdateSessionTemplateInput{ID: now.ID, Description: &d.Description, Request: &in, UpdatedAt: &now.UpdatedAt})
	if err != nil {
		return r, d.refused(err)
	}
	return r, nil
}

// existing returns the template with the document's name of its project or, without a project, of
// the viewer.
func (x *applier) existing(ctx context.Context, name, project string) (*client.SessionTemplate, error) {
	who, err := x.client.Viewer(ctx)
	if err != nil {
		return nil, err
	}
	all, err := x.client.SessionTemplates(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if project != "" && t.Project != nil && t.Project.ID == project || project == "" && t.Owner != nil && t.Owner.ID == who.User.ID {
			return &t, nil
		}
	}
	return nil, nil
}

func (x *applier) session(ctx context.Context, d *document, in client.CreateSessionInput) (result, error) {
	r := result{Kind: d.Kind, Name: d.Name, Result: x.done("created")}
	in.Name = d.Name
	full, err := x.based(ctx, d, &in)
	if err != nil {
		return r, err
	}
	who, err := x.client.Viewer(ctx)
	if err != nil {
		return r, err
	}
	live, err := x.client.Sessions(ctx, client.SessionFilter{Name: d.Name, Owner: who.User.ID, Live: true, Limit: 1})
	if err != nil {
		return r, d.refused(err)
	}
	if len(live) == 0 {
		return x.create(ctx, d, in, r)
	}
	r.ID = live[0].ID
	now, err := x.client.SessionRequest(ctx, live[0].ID)
	if err != nil {
		return r, d.refused(err)
	}
	if now.Request == nil {
		return r, d.refused(fmt.Errorf("you cannot read the request of the session: %w", errdefs.ErrPermissionDenied))
	}
	list, err := against(ctx, x.client, now.Request, full)
	if err != nil {
		return r, d.refused(err)
	}
	switch {
	case len(list) == 0:
		r.Result = "unchanged"
		return r, nil
	case !x.replace:
		return r, d.refused(fmt.Errorf("the session is %s and differs: %s; --replace ends it and starts it as described in the file: %w",
			now.Status, strings.Join(list, "; "), errdefs.ErrFailedPrecondition))
	}
	if r.Result = x.done("replaced"); x.dry {
		return r, nil
	}
	if _, err := x.client.TerminateSession(ctx, now.ID, false); err != nil {
		return r, d.refused(err)
	}
	if err := x.client.WatchSession(ctx, now.ID, nil, func(s client.SessionState) bool { return !s.Ended() }); err != nil {
		return r, d.refused(err)
	}
	return x.create(ctx, d, in, r)
}

// create creates a session, or asks the server to check the request.
func (x *applier) create(ctx context.Context, d *document, in client.CreateSessionInput, r result) (result, error) {
	if x.dry && d.Template != "" && in.Template == "" {
		return r, nil // the template is created by an earlier document
	}
	if x.dry {
		trial, err := x.client.DryRun(ctx, in)
		if err != nil {
			return r, d.refused(err)
		}
		for _, refusal := range trial.Refusals {
			if trial.Verdict == "refused" {
				return r, d.wrong("request."+refusal.Field, errors.New(refusal.Message))
			}
		}
		return r, nil
	}
	in.IdempotencyKey = uuid.NewString()
	made, err := x.client.CreateSession(ctx, in)
	if err != nil {
		return r, d.refused(err)
	}
	r.ID = made.ID
	return r, nil
}

// based sets the template of a session in its input, and returns the request that results from
// both.
func (x *applier) based(ctx context.Context, d *document, in *client.CreateSessionInput) (full client.CreateSessionInput, err error) {
	if d.Template == "" {
		return *in, nil
	}
	t, err := cli.FindTemplate(ctx, x.client, d.Template)
	if errdefs.IsNotFound(err) && x.dry { // an earlier document may create it
		return *in, nil
	}
	if err != nil {
		return full, d.wrong("template", err)
	}
	in.Template = t.ID
	base, err := fieldsOf(t.Request)
	if err != nil {
		return full, err
	}
	over, err := fieldsOf(*in)
	if err != nil {
		return full, err
	}
	return merged(base, over)
}

// merged combines a template and an input as createSession does: slots and environment variables
// are merged, and other fields are replaced.
func merged(base, over fields) (full client.CreateSessionInput, err error) {
	for name, value := range over {
		had, isMap := base[name].(map[string]any)
		if more, ok := value.(map[string]any); ok && isMap && (name == "slots" || name == "environment") {
			for k, v := range more {
				if had[k] = v; name == "slots" && fmt.Sprint(v) == "0" {
					delete(had, k)
				}
			}
			continue
		}
		base[name] = value
	}
	return cli.Convert[client.CreateSessionInput](base), nil
}
