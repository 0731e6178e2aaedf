package deploy

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/session"
)

// revisionFlags describe a revision: the session of a replica, and the engine in it.
type revisionFlags struct {
	session.RequestFlags
	image, variant, model, subpath, definition string
	health, metrics, comment                   string
	options                                    []string
	port, healthStatus, retries                *int
	interval, timeout, startTimeout            *int
	names                                      []string // of all these flags
}

func (f *revisionFlags) register(cmd *cobra.Command) {
	f.Register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.image, "image", "", "`image` of the replicas, by name or reference")
	flags.StringVar(&f.variant, "variant", "", "`engine`, such as vllm or custom (see: berth deploy variants; default: custom)")
	flags.StringArrayVar(&f.options, "option", nil, "option of the engine, as `name=value` (repeatable; see: berth deploy variants NAME)")
	flags.StringVar(&f.model, "model", "", "`folder` with the model, by name or id; mounted at /models for reading")
	flags.StringVar(&f.subpath, "subpath", "", "`path` of the model below the folder")
	flags.StringVar(&f.definition, "definition", "", "`file` with a model-definition.yaml of Backend.AI")
	cli.OptionalCount(cmd, &f.port, "port", "`port` of the engine (default: that of the variant)")
	flags.StringVar(&f.health, "health", "", "`path` that a healthy engine answers; none: its open port is enough (default: that of the variant)")
	cli.OptionalCount(cmd, &f.healthStatus, "health-status", "`status` of the answer of a healthy engine (default 200)")
	cli.OptionalFlag(cmd, &f.interval, "interval", "`time` between two checks (default 5s)", cli.ParseSeconds)
	cli.OptionalFlag(cmd, &f.timeout, "timeout", "`time` that one check can take (default 5s)", cli.ParseSeconds)
	cli.OptionalCount(cmd, &f.retries, "retries", "failed checks in a `row` after which a replica has failed (default 3)")
	cli.OptionalFlag(cmd, &f.startTimeout, "start-timeout", "`time` in which a started replica must become ready (default 30m)", cli.ParseSeconds)
	flags.StringVar(&f.metrics, "metrics", "", "`path` of Prometheus metrics; none: it has none (default: that of the variant)")
	flags.StringVar(&f.comment, "comment", "", "what is new in the revision")
	cli.SetsField(cmd, "option", "options")
	flags.VisitAll(func(one *pflag.Flag) { f.names = append(f.names, one.Name) })
}

// given reports whether a flag of the revision is set.
func (f *revisionFlags) given(cmd *cobra.Command) bool {
	return slices.ContainsFunc(f.names, cmd.Flags().Changed)
}

// engine sets the fields of the engine that the flags set.
func (f *revisionFlags) engine(a *cli.App, in *client.DeploymentRevisionInput) error {
	for _, one := range f.options {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return cli.Usagef("--option %s: write name=value", one)
		}
		if in.Options == nil {
			in.Options = map[string]string{}
		}
		in.Options[name] = value
	}
	for from, to := range map[*string]*string{
		&f.variant: &in.Variant, &f.model: &in.Model, &f.subpath: &in.Subpath, &f.comment: &in.Comment,
	} {
		if *from != "" {
			*to = *from
		}
	}
	for from, to := range map[*string]**string{&f.health: &in.Health, &f.metrics: &in.Metrics} {
		switch *from {
		case "":
		case "none": // a path begins with /
			*to = cli.Ptr("")
		default:
			*to = from
		}
	}
	if f.definition != "" {
		text, err := a.ReadFile(f.definition)
		if errors.Is(err, os.ErrNotExist) {
			return cli.Usagef("--definition %s: there is no such file", f.definition)
		}
		if err != nil {
			return fmt.Errorf("--definition: %w", err)
		}
		in.Definition = text
	}
	for from, to := range map[*int]**int{f.port: &in.Port, f.healthStatus: &in.HealthStatus, f.retries: &in.Retries} {
		if from != nil {
			*to = from
		}
	}
	for from, to := range map[*int]**float64{f.interval: &in.Interval, f.timeout: &in.Timeout, f.startTimeout: &in.StartTimeout} {
		if from != nil {
			*to = cli.Ptr(float64(*from))
		}
	}
	return nil
}

// settingsFlags describe what a deployment has beside its revisions.
type settingsFlags struct {
	in client.UpdateDeploymentInput
	// Strategy and scaling are sent if they have a field.
	strategy client.DeploymentStrategyInput
	scaling  client.DeploymentScalingInput
}

func (f *settingsFlags) register(cmd *cobra.Command) {
	cli.OptionalText(cmd, &f.in.Description, "description", "what it is for")
	cli.OptionalBool(cmd, &f.in.Shared, "shared", "let the members of the project see it and send requests")
	cli.OptionalBool(cmd, &f.in.Open, "open", "requests need no key; for administrators of the domain")
	cli.OptionalBool(cmd, &f.in.Recorded, "recorded", "record requests and answers for the owner; see: berth deploy records")
	cli.OptionalCount(cmd, &f.in.Concurrency, "concurrency", "`requests` that one replica gets at a time; 0 = no limit")
	cli.OptionalFlag(cmd, &f.in.DrainSeconds, "drain", "`time` until the requests of a replica that ends are cut (default 60s)", cli.ParseSeconds)
	cli.SetsField(cmd, "drain", "drainSeconds")
	f.change(cmd)
	f.scale(cmd)
}

// change adds the flags of the strategy.
func (f *settingsFlags) change(cmd *cobra.Command) {
	s := &f.strategy
	cli.ParsedFlag(cmd, &s.Kind, "strategy", "how it changes to a new revision: `rolling`, blue-green or canary (default rolling)", cli.Choice("rolling", "blue_green", "canary"))
	cli.OptionalCount(cmd, &s.MaxSurge, "max-surge", "`replicas` beyond the wanted ones during a change (default 1)")
	cli.OptionalCount(cmd, &s.MaxUnavailable, "max-unavailable", "wanted `replicas` that can be missing during a change (default 0)")
	cli.OptionalBool(cmd, &s.AutoPromote, "auto-promote", "blue-green: move the requests without berth deploy promote (default true)")
	cli.OptionalFlag(cmd, &s.PromoteAfter, "promote-after", "blue-green: `time` for which all replicas must have been ready (default 0s)", cli.ParseSeconds)
	cli.ParsedFlag(cmd, &s.Steps, "steps", "canary: growing `percentages` of the requests (default 10,50)", cli.ParseCounts)
	cli.OptionalFlag(cmd, &s.StepTime, "step-time", "canary: `time` that a step lasts at least (default 2m)", cli.ParseSeconds)
	cli.OptionalFlag(cmd, &s.Deadline, "deadline", "`time` after which a change that has not ended is rolled back (default 1h)", cli.ParseSeconds)
	cli.SetsField(cmd, "strategy", "kind")
}

// scale adds the flags of the number of replicas.
func (f *settingsFlags) scale(cmd *cobra.Command) {
	s := &f.scaling
	cli.OptionalCount(cmd, &f.in.Replicas, "replicas", "wanted `replicas`; rules can change the number later")
	cli.OptionalCount(cmd, &s.Min, "min", "fewest `replicas`; with 0, none after --zero-after (default 1)")
	cli.OptionalCount(cmd, &s.Max, "max", "most `replicas` (default: --min, at least 1)")
	cli.OptionalFlag(cmd, &s.ZeroAfter, "zero-after", "`time` without a request after which --min 0 takes effect (default 15m)", cli.ParseSeconds)
	cli.OptionalFlag(cmd, &s.UpAfter, "up-after", "`time` for which more replicas must be called for (default 30s)", cli.ParseSeconds)
	cli.OptionalFlag(cmd, &s.DownAfter, "down-after", "`time` for which fewer replicas must be enough (default 5m)", cli.ParseSeconds)
	cli.ListFlag(cmd, &s.Targets, "target", "what one replica can take, as `metric=n` (repeatable; see: berth deploy scale)", parseTarget)
	cli.ListFlag(cmd, &s.Schedules, "schedule", "fewest replicas at a `time` of the day (repeatable; see: berth deploy scale)", parseSchedule)
	cli.SetsField(cmd, "target", "targets")
	cli.SetsField(cmd, "schedule", "schedules")
}

// input returns the settings that the flags set, with the ID of a deployment if it is known.
func (f *settingsFlags) input(id string) client.UpdateDeploymentInput {
	in := f.in
	in.ID = id
	if s := f.strategy; s.Kind != "" || s.Steps != nil || s.MaxSurge != nil || s.MaxUnavailable != nil || s.AutoPromote != nil || s.PromoteAfter != nil || s.StepTime != nil || s.Deadline != nil {
		in.Strategy = &f.strategy
	}
	if s := f.scaling; s.Targets != nil || s.Schedules != nil || s.Min != nil || s.Max != nil || s.ZeroAfter != nil || s.UpAfter != nil || s.DownAfter != nil {
		in.Scaling = &f.scaling
	}
	return in
}

// parseTarget reads metric=n, with /sum or /average at the end.
func parseTarget(text string) ([]client.DeploymentTargetInput, error) {
	if text == "none" {
		return []client.DeploymentTargetInput{}, nil
	}
	var sum *bool
	rest := text
	for suffix, is := range map[string]bool{"/sum": true, "/average": false} {
		if cut, ok := strings.CutSuffix(text, suffix); ok {
			rest, sum = cut, &is
		}
	}
	i := strings.LastIndex(rest, "=")
	if i <= 0 {
		return nil, errors.New("write metric=n, such as requests=8")
	}
	n, err := strconv.ParseFloat(rest[i+1:], 64)
	if err != nil || !(n > 0 && n < 1e15) {
		return nil, fmt.Errorf("%q is not a number above 0", rest[i+1:])
	}
	return []client.DeploymentTargetInput{{Metric: rest[:i], PerReplica: n, Sum: sum}}, nil
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// parseSchedule reads [days/]HH:MM-HH:MM=n[@zone].
func parseSchedule(text string) ([]client.DeploymentScheduleInput, error) {
	if text == "none" {
		return []client.DeploymentScheduleInput{}, nil
	}
	bad := errors.New("write [days/]HH:MM-HH:MM=n[@zone], such as mon-fri/08:00-18:00=4@Europe/Berlin")
	var in client.DeploymentScheduleInput
	rest, zone, _ := strings.Cut(text, "@")
	in.TimeZone = zone
	times, number, ok := strings.Cut(rest, "=")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return nil, bad
	}
	in.Replicas = n
	if days, after, ok := strings.Cut(times, "/"); ok {
		times = after
		if in.Days, err = parseDays(days); err != nil {
			return nil, err
		}
	}
	if in.From, in.To, ok = strings.Cut(times, "-"); !ok || in.From == "" || in.To == "" {
		return nil, bad
	}
	return []client.DeploymentScheduleInput{in}, nil
}

// parseDays reads days of the week such as mon-fri,sun.
func parseDays(text string) (days []int, err error) {
	for _, part := range cli.Words(strings.ToLower(text)) {
		first, last, isRange := strings.Cut(part, "-")
		from, to := slices.Index(weekdays, first), slices.Index(weekdays, last)
		if !isRange {
			to = from
		}
		if from < 0 || to < 0 {
			return nil, fmt.Errorf("%q is not a day or days such as mon or mon-fri", part)
		}
		for day := from; ; day = (day + 1) % 7 {
			days = append(days, day)
			if day == to {
				break
			}
		}
	}
	return days, nil
}
