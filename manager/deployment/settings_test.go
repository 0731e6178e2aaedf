package deployment

import (
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/deployment/load"
	"github.com/berthhq/berth/manager/deployment/rollout"
)

func ptr[T any](v T) *T { return &v }

// A wrong setting is refused by the name of its field.
func TestSettingsAreRefusedByName(t *testing.T) {
	for field, check := range map[string]func() error{
		"strategy":          func() error { _, err := usual().with(&DeploymentStrategyInput{MaxSurge: ptr(0)}); return err },
		"strategy.stepTime": func() error { _, err := usual().with(&DeploymentStrategyInput{StepTime: ptr(0)}); return err },
		"strategy.deadline": func() error { _, err := usual().with(&DeploymentStrategyInput{Deadline: ptr(59)}); return err },
		"scaling":           func() error { _, err := alone().with(&DeploymentScalingInput{Min: ptr(2), Max: ptr(1)}); return err },
		"scaling.zeroAfter": func() error { _, err := alone().with(&DeploymentScalingInput{ZeroAfter: ptr(9)}); return err },
		"scaling.schedules[0].timeZone": func() error {
			return scheduled(DeploymentScheduleInput{From: "08:00", To: "09:00", TimeZone: ptr("Mars"), Replicas: 1})
		},
		"scaling.schedules[0].from": func() error { return scheduled(DeploymentScheduleInput{From: "8", To: "09:00", Replicas: 1}) },
		"scaling.schedules[0].days": func() error {
			return scheduled(DeploymentScheduleInput{From: "08:00", To: "09:00", Days: []int{7}, Replicas: 1})
		},
	} {
		if p, known := problem.From(check()); !known || p.Field != field {
			t.Errorf("%s: the error is %+v", field, p)
		}
	}
}

func scheduled(in DeploymentScheduleInput) error {
	_, err := alone().with(&DeploymentScalingInput{Schedules: []DeploymentScheduleInput{in}})
	return err
}

// Fields that are not given keep their values.
func TestSettingsAreKept(t *testing.T) {
	s, err := alone().with(&DeploymentScalingInput{Min: ptr(3), Targets: []DeploymentTargetInput{{Metric: "requests", PerReplica: 8}, {Metric: "vllm:cache", PerReplica: 0.8}}})
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.with(&DeploymentScalingInput{UpAfter: ptr(0)}); err != nil {
		t.Fatal(err)
	}
	if s.Min != 3 || s.Max != 3 || len(s.Targets) != 2 || !s.Targets[0].Sum || s.Targets[1].Sum || s.UpAfter != 0 || s.DownAfter != 300 {
		t.Errorf("the settings are %+v", s)
	}
	back, err := stored[Scaling](text(s))
	if err != nil || back.Targets[1] != s.Targets[1] {
		t.Errorf("stored: %+v, %v", back, err)
	}
}

func TestJudge(t *testing.T) {
	window := func(requests, errors int, first time.Duration) (w load.Window) {
		w = load.Window{Seconds: 60, Requests: requests, Errors: errors}
		for range requests {
			w.FirstByte.Add(first)
		}
		return w
	}
	for _, c := range []struct {
		name            string
		target, current load.Window
		want            rollout.Verdict
	}{
		{"too few requests", window(19, 19, time.Second), window(100, 0, time.Second), rollout.Unknown},
		{"the same", window(20, 0, time.Second), window(100, 0, time.Second), rollout.Good},
		{"errors", window(20, 3, time.Second), window(100, 0, time.Second), rollout.Bad},
		{"errors as before", window(20, 3, time.Second), window(100, 12, time.Second), rollout.Good},
		{"slower", window(20, 0, 3*time.Second), window(100, 0, time.Second), rollout.Bad},
		{"slower than nothing", window(20, 0, 3*time.Second), window(0, 0, 0), rollout.Good},
	} {
		if got := judge(c.target, c.current); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{"llama-3.1-8b": true, "a": true, strings.Repeat("a", 63): true, "": false, "A": false, "-a": false, "a b": false, strings.Repeat("a", 64): false, "a/b": false} {
		if got := nameRule.MatchString(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
