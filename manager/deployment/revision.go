package deployment

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/ent/vfolder"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/deployment/definition"
	"github.com/berthhq/berth/manager/deployment/variant"
	managersession "github.com/berthhq/berth/manager/session"
	"github.com/berthhq/berth/manager/session/saved"
)

// modelPath is where the folder of the model is mounted.
const modelPath = "/models"

// revision is a checked revision that is to be stored.
type revision struct {
	request saved.Request
	variant string
	options map[string]string
	engine  Engine
	subpath string
	vfolder *uuid.UUID
	image   *ent.Image
	comment string
}

// revision checks an input. The request is checked as createSession does, but for limits that can change.
func (s *Service) revision(ctx context.Context, name string, project uuid.UUID, in DeploymentRevisionInput) (*revision, error) {
	if err := own(in.Request); err != nil {
		return nil, err
	}
	r := &revision{options: in.Options}
	if r.options == nil {
		r.options = map[string]string{}
	}
	if in.Comment != nil {
		r.comment = *in.Comment
	}
	if utf8.RuneCountInString(r.comment) > maxText {
		return nil, problem.Invalid("comment", "has more than %d characters", maxText).WithLimit(fmt.Sprint(maxText))
	}
	request := in.Request
	if err := s.folder(ctx, in, r, &request); err != nil {
		return nil, err
	}
	if err := r.start(name, in, &request); err != nil {
		return nil, err
	}
	if err := r.tune(in); err != nil {
		return nil, err
	}
	var err error
	if r.image, err = s.Images.Resolve(ctx, request.Image); err != nil {
		return nil, problem.Within(err, "request")
	}
	request.Image = r.image.Reference
	kind, no := session.TypeInference, false
	request.Type, request.Project, request.Replica = &kind, &project, true
	if request.AutoMount == nil {
		request.AutoMount = &no
	}
	if _, refused, err := s.Sessions.Preview(ctx, request); err != nil || len(refused) > 0 {
		if err == nil {
			err = refused[0]
		}
		return nil, problem.Within(err, "request")
	}
	packed, err := saved.Pack(s.Keys, seal.RevisionSecrets, request)
	if err != nil {
		return nil, err
	}
	r.request = *packed
	return r, nil
}

// own refuses fields that the deployment sets itself.
func own(in managersession.CreateSessionInput) error {
	for field, given := range map[string]bool{
		"name": in.Name != nil, "type": in.Type != nil, "project": in.Project != nil, "startsAt": in.StartsAt != nil, "lifetime": in.Lifetime != nil,
		"dependsOn": len(in.DependsOn) > 0, "from": in.From != nil, "template": in.Template != nil, "apps": len(in.Apps) > 0,
		"sessionGroup": in.SessionGroup != nil, "idempotencyKey": in.IdempotencyKey != nil,
	} {
		if given {
			return problem.Invalid("request."+field, "cannot be set for the replicas of a deployment")
		}
	}
	return nil
}

// folder finds the folder of the model, and mounts it for reading.
func (s *Service) folder(ctx context.Context, in DeploymentRevisionInput, r *revision, request *managersession.CreateSessionInput) error {
	if in.Subpath != nil {
		r.subpath = *in.Subpath
	}
	if r.subpath != "" && (in.Model == nil || path.IsAbs(r.subpath) || path.Clean(r.subpath) != r.subpath || strings.HasPrefix(r.subpath, "..") || strings.ContainsRune(r.subpath, 0)) {
		return problem.Invalid("subpath", "%.100q is not a path below the folder of the model, without . and ..", r.subpath)
	}
	if in.Model == nil {
		return nil
	}
	q := s.Client.Vfolder.Query().Where(vfolder.StatusEQ(vfolder.StatusReady))
	if id, err := uuid.Parse(*in.Model); err == nil {
		q.Where(vfolder.ID(id))
	} else {
		q.Where(vfolder.Name(*in.Model))
	}
	found, err := q.Limit(2).IDs(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read folder: %w", err)
	case len(found) == 0:
		return problem.NotFound("folder").WithField("model")
	case len(found) > 1:
		return problem.Invalid("model", "several folders are named %.100q; give the id", *in.Model)
	}
	target, yes := modelPath, true
	r.vfolder = &found[0]
	request.Mounts = append(request.Mounts, managersession.MountInput{Vfolder: found[0].String(), Target: &target, ReadOnly: &yes})
	return nil
}

// start sets the command of the engine and what it needs.
func (r *revision) start(name string, in DeploymentRevisionInput, request *managersession.CreateSessionInput) error {
	r.engine = Engine{HealthStatus: 200, Interval: 5, Timeout: 5, Retries: 3, StartTimeout: 1800}
	r.variant = "custom"
	if in.Definition != nil {
		return r.define(*in.Definition, in, request)
	}
	if in.Variant != nil {
		r.variant = *in.Variant
	}
	v, err := variant.Find(r.variant)
	if err != nil {
		return named("variant", err)
	}
	r.engine.Port, r.engine.Health, r.engine.Metrics = v.Port, v.Health, v.Metrics
	set(&r.engine.Port, in.Port)
	start, err := v.Start(path.Join(modelPath, r.subpath), name, r.engine.Port, r.options)
	var option *variant.OptionError
	if errors.As(err, &option) {
		return problem.Invalid("options."+option.Name, "%s", option.Text)
	}
	if err != nil {
		return err
	}
	if len(start.Command) > 0 {
		if len(request.Command) > 0 {
			return problem.Invalid("request.command", "is that of %s; the variant custom has a command of its own", v.Title)
		}
		if in.Model == nil {
			return problem.Invalid("model", "%s needs the folder of a model", v.Title)
		}
		request.Command = start.Command
	}
	if len(request.Command) == 0 {
		return problem.Invalid("request.command", "must be given for the variant %s", v.Name)
	}
	request.Environment = joined(request.Environment, start.Environment) // a request that begins as an older one has the values of older options
	return nil
}

// define takes what a model-definition.yaml says.
func (r *revision) define(text string, in DeploymentRevisionInput, request *managersession.CreateSessionInput) error {
	if in.Variant != nil && *in.Variant != "custom" || len(in.Options) > 0 || len(request.Command) > 0 {
		return problem.Invalid("definition", "has a command of its own, so variant, options and request.command are not allowed with it")
	}
	models, err := definition.Parse([]byte(text))
	if err != nil {
		return named("definition", err)
	}
	m := models[0]
	if m.Port == 0 || len(m.Command) == 0 {
		return problem.Invalid("definition", "models[0].service has no start_command, so nothing serves the model")
	}
	if in.Model != nil && m.Path != modelPath {
		last := &request.Mounts[len(request.Mounts)-1]
		last.Target = &m.Path
	}
	request.Command, r.engine.Port = m.Command, m.Port
	if h := m.Health; h != nil {
		r.engine.Health, r.engine.HealthStatus = h.Path, h.Status
		r.engine.Interval, r.engine.Timeout, r.engine.Retries = max(h.Interval.Seconds(), 1), h.Timeout.Seconds(), h.Retries
	}
	script := definition.Script(m.Before)
	if script != "" && request.BootstrapScript != nil {
		return problem.Invalid("request.bootstrapScript", "is that of the pre_start_actions of the definition")
	}
	if script != "" {
		request.BootstrapScript = &script
	}
	set(&r.engine.Port, in.Port)
	return nil
}

func joined(base, over map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{base, over} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// tune takes the settings of the checks.
func (r *revision) tune(in DeploymentRevisionInput) error {
	e := &r.engine
	set(&e.Health, in.Health)
	set(&e.HealthStatus, in.HealthStatus)
	set(&e.Interval, in.Interval)
	set(&e.Timeout, in.Timeout)
	set(&e.Retries, in.Retries)
	set(&e.StartTimeout, in.StartTimeout)
	set(&e.Metrics, in.Metrics)
	for _, x := range []struct {
		field          string
		value, low, up int
	}{{"port", e.Port, 1, 65535}, {"healthStatus", e.HealthStatus, 100, 599}, {"retries", e.Retries, 1, 1000}} {
		if err := within(x.field, x.value, x.low, x.up); err != nil {
			return err
		}
	}
	for _, x := range []struct {
		field          string
		value, low, up float64
	}{{"interval", e.Interval, 1, 3600}, {"timeout", e.Timeout, 0.1, 300}, {"startTimeout", e.StartTimeout, 1, 86400}} {
		if !(x.value >= x.low && x.value <= x.up) {
			return problem.Invalid(x.field, "%v is not between %v and %v", x.value, x.low, x.up).WithLimit(fmt.Sprintf("%v..%v", x.low, x.up))
		}
	}
	for field, p := range map[string]string{"health": e.Health, "metrics": e.Metrics} {
		if p != "" && (!strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, " \t\r\n#\\\x00") || len(p) > 500) {
			return problem.Invalid(field, "%.100q is not a path on the engine, such as /health", p)
		}
	}
	return nil
}

// insert stores the revision.
func (r *revision) insert(ctx context.Context, tx *ent.Tx, deployment uuid.UUID, number int, creator uuid.UUID) error {
	c := tx.DeploymentRevision.Create().SetDeploymentID(deployment).SetNumber(number).SetVariant(r.variant).SetOptions(r.options).
		SetRequest(r.request.JSON).SetEngine(text(r.engine)).SetSubpath(r.subpath).SetImage(r.image.Reference).SetImageDigest(r.image.Digest).
		SetComment(r.comment).SetNillableVfolderID(r.vfolder).SetCreatorID(creator)
	if r.request.Sealed != nil {
		c.SetSecretsSealed(r.request.Sealed)
	}
	if err := c.Exec(ctx); err != nil {
		return fmt.Errorf("store revision: %w", err)
	}
	return nil
}
