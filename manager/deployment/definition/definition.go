package definition

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/yamltext"
)

// MaxBytes limits a file.
const MaxBytes = 1 << 20

// Model is one model of a file.
type Model struct {
	Name string
	Path string // of its files in the container
	// Command is the argument vector of the engine. A command that the file gives as a text is the last
	// argument of its shell.
	Command  []string
	Port     int
	Health   *Health // nil: the engine is ready when its port is open
	Before   []Action
	Metadata Metadata
}

// Health is how the engine is checked.
type Health struct {
	Path         string
	Status       int // that a healthy engine answers with
	Interval     time.Duration
	Timeout      time.Duration // of one check
	Retries      int           // failures in a row after which it is not healthy
	InitialDelay time.Duration // after the start, in which failures do not count
}

// Action happens in the container before the engine starts.
type Action struct {
	Kind    Kind
	Command []string // of RunCommand
	Path    string   // of MakeDirectory and WriteFile
	Text    string   // of WriteFile and Log
	Mode    string   // of WriteFile, in octal digits
	Append  bool     // to the file
}

// Kind is a kind of actions.
type Kind string

// The kinds, as the file names them.
const (
	RunCommand    Kind = "run_command"
	MakeDirectory Kind = "mkdir"
	WriteFile     Kind = "write_file"
	Log           Kind = "log"
)

// Metadata is what the file says about the model for people.
type Metadata struct {
	Title, Author, Version, Description, Task, Category, Architecture, License string
	Frameworks, Labels                                                         []string
}

type file struct {
	Models []struct {
		Name     string  `yaml:"name"`
		Path     string  `yaml:"model_path"`
		Service  *engine `yaml:"service"`
		Metadata struct {
			Title        string   `yaml:"title"`
			Author       string   `yaml:"author"`
			Version      any      `yaml:"version"`
			Description  string   `yaml:"description"`
			Task         string   `yaml:"task"`
			Category     string   `yaml:"category"`
			Architecture string   `yaml:"architecture"`
			License      string   `yaml:"license"`
			Framework    []string `yaml:"framework"`
			Label        []string `yaml:"label"`
		} `yaml:"metadata"`
	} `yaml:"models"`
}

type engine struct {
	Command any    `yaml:"start_command"`
	Shell   string `yaml:"shell"`
	Port    int    `yaml:"port"`
	Before  []struct {
		Action string         `yaml:"action"`
		Args   map[string]any `yaml:"args"`
	} `yaml:"pre_start_actions"`
	Health *struct {
		Enable   *bool    `yaml:"enable"`
		Path     string   `yaml:"path"`
		Status   int      `yaml:"expected_status_code"`
		Interval *float64 `yaml:"interval"`
		Timeout  *float64 `yaml:"max_wait_time"`
		Retries  *int     `yaml:"max_retries"`
		Delay    *float64 `yaml:"initial_delay"`
	} `yaml:"health_check"`
}

// Parse reads a file and returns its models. Every error names the field.
func Parse(text []byte) ([]Model, error) {
	if len(text) > MaxBytes {
		return nil, invalid("the file", "has %d bytes, more than %d", len(text), MaxBytes)
	}
	var f file
	if err := yamltext.Decode(text, &f); err != nil {
		return nil, fmt.Errorf("model-definition.yaml: the file: %w", err)
	}
	if len(f.Models) == 0 {
		return nil, invalid("models", "is empty")
	}
	out := make([]Model, len(f.Models))
	for i, m := range f.Models {
		at := fmt.Sprintf("models[%d]", i)
		out[i] = Model{
			Name: m.Name, Path: cmp.Or(m.Path, "/models"),
			Metadata: Metadata{
				Title: m.Metadata.Title, Author: m.Metadata.Author, Description: m.Metadata.Description,
				Task: m.Metadata.Task, Category: m.Metadata.Category, Architecture: m.Metadata.Architecture, License: m.Metadata.License,
				Frameworks: m.Metadata.Framework, Labels: m.Metadata.Label,
			},
		}
		if m.Metadata.Version != nil {
			out[i].Metadata.Version = fmt.Sprint(m.Metadata.Version)
		}
		if m.Name == "" {
			return nil, invalid(at+".name", "is missing")
		}
		if !path.IsAbs(out[i].Path) || path.Clean(out[i].Path) != strings.TrimSuffix(out[i].Path, "/") {
			return nil, invalid(at+".model_path", "%q is not an absolute path without . and ..", out[i].Path)
		}
		if m.Service != nil {
			if err := out[i].take(at+".service", m.Service); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// take reads the part about the engine.
func (m *Model) take(at string, e *engine) (err error) {
	if e.Port < 1 || e.Port > 65535 {
		return invalid(at+".port", "%d is not between 1 and 65535", e.Port)
	}
	m.Port = e.Port
	if m.Command, err = command(at+".start_command", cmp.Or(e.Shell, "/bin/bash"), e.Command); err != nil {
		return err
	}
	for i, b := range e.Before {
		a, err := action(fmt.Sprintf("%s.pre_start_actions[%d]", at, i), b.Action, b.Args)
		if err != nil {
			return err
		}
		m.Before = append(m.Before, a)
	}
	return m.health(at+".health_check", e)
}

// command returns an argument vector. A text is meant for a shell.
func command(at, shell string, value any) ([]string, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		if strings.TrimSpace(v) == "" {
			return nil, invalid(at, "is empty")
		}
		return []string{shell, "-c", v}, nil
	case []any:
		return texts(at, v)
	}
	return nil, invalid(at, "is neither a list of texts nor a text")
}

func texts(at string, list []any) ([]string, error) {
	out := make([]string, len(list))
	for i, x := range list {
		switch x := x.(type) {
		case string:
			out[i] = x
		case int, int64, uint64, float64, bool:
			out[i] = fmt.Sprint(x)
		default:
			return nil, invalid(fmt.Sprintf("%s[%d]", at, i), "is not a text")
		}
	}
	if len(out) == 0 {
		return nil, invalid(at, "is empty")
	}
	return out, nil
}

// The defaults of health checks are those of Backend.AI.
func (m *Model) health(at string, e *engine) error {
	h := e.Health
	if h == nil || h.Enable != nil && !*h.Enable {
		return nil
	}
	out := &Health{Path: cmp.Or(h.Path, "/health"), Status: cmp.Or(h.Status, 200), Retries: 10}
	if h.Retries != nil {
		out.Retries = *h.Retries
	}
	for _, f := range []struct {
		name    string
		value   *float64
		usual   float64
		minimum float64
		into    *time.Duration
	}{{"interval", h.Interval, 10, 0.1, &out.Interval}, {"max_wait_time", h.Timeout, 15, 0.1, &out.Timeout}, {"initial_delay", h.Delay, 60, 0, &out.InitialDelay}} {
		seconds := f.usual
		if f.value != nil {
			seconds = *f.value
		}
		if !(seconds >= f.minimum && seconds <= 86400) {
			return invalid(at+"."+f.name, "%v is not between %v and 86400 seconds", seconds, f.minimum)
		}
		*f.into = time.Duration(seconds * float64(time.Second))
	}
	switch {
	case !strings.HasPrefix(out.Path, "/") || strings.HasPrefix(out.Path, "//") || strings.ContainsAny(out.Path, " \t\r\n#\\"):
		return invalid(at+".path", "%q is not a path on the engine, such as /health", out.Path)
	case out.Status < 100 || out.Status > 599:
		return invalid(at+".expected_status_code", "%d is not between 100 and 599", out.Status)
	case out.Retries < 1 || out.Retries > 1000:
		return invalid(at+".max_retries", "%d is not between 1 and 1000", out.Retries)
	}
	m.Health = out
	return nil
}

func invalid(field, format string, args ...any) error {
	return fmt.Errorf("model-definition.yaml: %s %s: %w", field, fmt.Sprintf(format, args...), errdefs.ErrInvalidArgument)
}
