package template

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/internal/resource"
)

// input converts the request of a file to the input of the API, with IDs instead of names.
func (d *document) input(ctx context.Context, c *client.Client) (in client.CreateSessionInput, err error) {
	r := &d.Request
	in = client.CreateSessionInput{
		Image: r.Image, Type: client.Enum(r.Type), Kernels: r.Kernels, Command: r.Command, BootstrapScript: r.BootstrapScript,
		Environment: texts(r.Environment), AutoMount: r.AutoMount, Priority: r.Priority, StartsAt: r.StartsAt,
		StrictAgents: r.StrictAgents, Preemptible: r.Preemptible, Tags: r.Tags,
	}
	slots, err := resource.ParseSlots(texts(r.Slots))
	if err != nil {
		return in, d.wrong("request.slots", err)
	}
	if len(slots) > 0 || r.Slots != nil {
		in.Slots = slots.Strings()
	}
	for _, a := range r.Apps {
		in.Apps = append(in.Apps, client.AppInput{Name: a.Name, Title: a.Title, Port: a.Port, Command: a.Command, Environment: texts(a.Environment)})
	}
	for _, m := range r.Mounts {
		in.Mounts = append(in.Mounts, client.MountInput{Vfolder: m.Vfolder, Target: m.Target, Subpath: m.Subpath, ReadOnly: m.ReadOnly})
	}
	if err := d.amounts(&in); err != nil {
		return in, err
	}
	return in, d.references(ctx, c, &in)
}

// amounts parses durations and sizes.
func (d *document) amounts(in *client.CreateSessionInput) error {
	if text := string(d.Request.Lifetime); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			n, err = cli.ParseSeconds(text)
		}
		if err != nil {
			return d.wrong("request.lifetime", err)
		}
		in.Lifetime = &n
	}
	for _, size := range []struct {
		field string
		text  scalar
		to    **int64
	}{{"shmBytes", d.Request.ShmBytes, &in.ShmBytes}, {"diskBytes", d.Request.DiskBytes, &in.DiskBytes}} {
		if size.text == "" {
			continue
		}
		n, err := resource.Parse(resource.Mem, string(size.text))
		if err != nil {
			return d.wrong("request."+size.field, err)
		}
		*size.to = &n
	}
	return nil
}

// references looks up the IDs of the objects that a request names.
func (d *document) references(ctx context.Context, c *client.Client, in *client.CreateSessionInput) (err error) {
	r := &d.Request
	if in.Project, err = cli.FindProjectID(ctx, c, r.Project); err != nil {
		return d.wrong("request.project", err)
	}
	if in.ResourceGroup, err = cli.FindGroupID(ctx, c, r.ResourceGroup); err != nil {
		return d.wrong("request.resourceGroup", err)
	}
	if in.SessionGroup, err = cli.FindSessionGroupID(ctx, c, r.SessionGroup); err != nil {
		return d.wrong("request.sessionGroup", err)
	}
	for i, ref := range r.Agents {
		a, err := cli.FindAgent(ctx, c, ref)
		if err != nil {
			return d.wrong(fmt.Sprintf("request.agents[%d]", i), err)
		}
		in.Agents = append(in.Agents, a.ID)
	}
	for i, ref := range r.DependsOn {
		s, err := cli.FindSession(ctx, c, ref)
		if err != nil {
			return d.wrong(fmt.Sprintf("request.dependsOn[%d]", i), err)
		}
		in.DependsOn = append(in.DependsOn, s.ID)
	}
	return nil
}

func texts(m map[string]scalar) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

// word returns a value of an enum in lower case, "" for nil.
func word(e *client.Enum) string {
	if e == nil {
		return ""
	}
	return e.String()
}

func scalars(m map[string]string) map[string]scalar {
	out := make(map[string]scalar, len(m))
	for k, v := range m {
		out[k] = scalar(v)
	}
	return out
}

// exported returns the document of a template, with the names of the objects that its request
// refers to, as far as the viewer can see them.
func exported(ctx context.Context, c *client.Client, t *client.SessionTemplate) (*document, error) {
	who, err := c.Viewer(ctx)
	if err != nil {
		return nil, err
	}
	r := t.Request
	d := &document{Kind: kindTemplate, Name: t.Name, Description: t.Description}
	if t.Project != nil {
		d.Project = t.Project.Name
	}
	to := &d.Request
	*to = request{
		Image: r.Image, Kernels: r.Kernels, Command: r.Command, Environment: scalars(r.Environment), AutoMount: r.AutoMount,
		Priority: r.Priority, StartsAt: r.StartsAt, DependsOn: r.DependsOn, Agents: r.Agents, Tags: r.Tags, Slots: sizes(r.Slots),
		Project: named(r.Project, who.Projects), ResourceGroup: named(r.ResourceGroup, who.ResourceGroups),
		Type: word(r.Type), BootstrapScript: text(r.BootstrapScript), SessionGroup: text(r.SessionGroup),
		StrictAgents: r.StrictAgents != nil && *r.StrictAgents, Preemptible: r.Preemptible != nil && *r.Preemptible,
	}
	if r.Lifetime != nil {
		to.Lifetime = scalar(strconv.Itoa(*r.Lifetime))
	}
	if r.ShmBytes != nil {
		to.ShmBytes = size(*r.ShmBytes)
	}
	if r.DiskBytes != nil {
		to.DiskBytes = size(*r.DiskBytes)
	}
	for _, a := range r.Apps {
		to.Apps = append(to.Apps, app{Name: a.Name, Title: text(a.Title), Port: a.Port, Command: a.Command, Environment: scalars(a.Environment)})
	}
	for _, m := range r.Mounts {
		to.Mounts = append(to.Mounts, mount{Vfolder: folderName(ctx, c, m.Vfolder), Target: text(m.Target), Subpath: text(m.Subpath), ReadOnly: m.ReadOnly != nil && *m.ReadOnly})
	}
	return d, nil
}

// folderName returns the name of a folder, or its ID if it cannot be named.
func folderName(ctx context.Context, c *client.Client, ref string) string {
	if !cli.IsID(ref) {
		return ref
	}
	if f, err := cli.FindFolder(ctx, c, ref); err == nil {
		return f.Name
	}
	return ref
}

func named(id *string, all []client.Ref) string {
	for _, r := range all {
		if id != nil && r.ID == *id {
			return r.Name
		}
	}
	return text(id)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// sizes formats amounts of memory with units, where that is exact.
func sizes(slots client.Slots) map[string]scalar {
	out := make(map[string]scalar, len(slots))
	for slot, amount := range slots {
		out[slot] = scalar(amount)
		if n, err := strconv.ParseInt(amount, 10, 64); err == nil && (slot == resource.Mem || strings.HasSuffix(slot, ".mem")) {
			out[slot] = size(n)
		}
	}
	return out
}

func size(n int64) scalar {
	switch {
	case n > 0 && n%(1<<30) == 0:
		return scalar(fmt.Sprintf("%dg", n>>30))
	case n > 0 && n%(1<<20) == 0:
		return scalar(fmt.Sprintf("%dm", n>>20))
	}
	return scalar(strconv.FormatInt(n, 10))
}
