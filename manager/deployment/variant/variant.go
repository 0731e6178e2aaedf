package variant

import (
	_ "embed" // variants.yaml
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/goccy/go-yaml"
)

// Variant is an engine.
type Variant struct {
	Name        string
	Title       string
	Command     []string // with {model}, {name} and {port}
	Environment map[string]string
	Port        int
	Health      string // path; "" = the engine is ready when its port is open
	Metrics     string // path of Prometheus metrics; "" = none
	APIs        []string
	Options     []Option
}

// Type is a type of values.
type Type string

// The types.
const (
	Integer Type = "integer"
	Number  Type = "number"
	Text    Type = "text"
	Choice  Type = "choice"
	Switch  Type = "switch" // true adds the argument
)

// Option is a setting of an engine.
type Option struct {
	Name     string
	Argument string // of the command, or
	Variable string // of the environment
	Joined   bool   // the argument is --name=value
	Type     Type
	Minimum  float64
	Maximum  float64
	Choices  []string
	Help     string
}

//go:embed variants.yaml
var data []byte

var all = sync.OnceValues(func() ([]Variant, error) {
	var out []Variant
	err := yaml.UnmarshalWithOptions(data, &out, yaml.Strict())
	return out, err
})

// All returns the engines.
func All() ([]Variant, error) { return all() }

// Find returns the engine of a name.
func Find(name string) (*Variant, error) {
	list, err := All()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i := range list {
		if names[i] = list[i].Name; names[i] == name {
			return &list[i], nil
		}
	}
	return nil, fmt.Errorf("variant %q is not one of %s: %w", name, strings.Join(names, ", "), errdefs.ErrInvalidArgument)
}

// OptionError is the error of an option that does not exist or has a wrong value. Its class is InvalidArgument.
type OptionError struct{ Name, Text string }

func (e *OptionError) Error() string { return "options." + e.Name + ": " + e.Text }

// Is reports whether the target is the class of this error.
func (e *OptionError) Is(target error) bool { return target == errdefs.ErrInvalidArgument }

// Start is how one replica is started.
type Start struct {
	Command     []string
	Environment map[string]string
}

// Start returns how the engine serves a model. The command is an argument vector, so no value can become a
// command or another argument.
func (v *Variant) Start(model, name string, port int, options map[string]string) (*Start, error) {
	put := strings.NewReplacer("{model}", model, "{name}", name, "{port}", strconv.Itoa(port)).Replace
	out := &Start{Command: make([]string, len(v.Command)), Environment: map[string]string{}}
	for i, word := range v.Command {
		out.Command[i] = put(word)
	}
	for variable, value := range v.Environment {
		out.Environment[variable] = put(value)
	}
	known := map[string]bool{}
	for _, o := range v.Options {
		known[o.Name] = true
		value, is := options[o.Name]
		if !is || value == "" {
			continue
		}
		if err := o.check(value); err != nil {
			return nil, err
		}
		o.add(out, value)
	}
	for _, given := range slices.Sorted(maps.Keys(options)) {
		if !known[given] {
			return nil, &OptionError{given, v.Title + " has no such option"}
		}
	}
	return out, nil
}

func (o Option) add(out *Start, value string) {
	switch {
	case o.Type == Switch && value != "true":
	case o.Variable != "":
		out.Environment[o.Variable] = value
	case o.Type == Switch:
		out.Command = append(out.Command, o.Argument)
	case o.Joined:
		out.Command = append(out.Command, o.Argument+"="+value)
	default:
		out.Command = append(out.Command, o.Argument, value)
	}
}

// maxText limits a text, in bytes.
const maxText = 200

func (o Option) check(value string) error {
	bad := func(format string, args ...any) error {
		return &OptionError{o.Name, fmt.Sprintf("%.100q ", value) + fmt.Sprintf(format, args...)}
	}
	switch o.Type {
	case Integer:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || float64(n) < o.Minimum || float64(n) > o.Maximum {
			return bad("is not an integer between %.0f and %.0f", o.Minimum, o.Maximum)
		}
	case Number:
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !(n >= o.Minimum && n <= o.Maximum) {
			return bad("is not a number between %v and %v", o.Minimum, o.Maximum)
		}
	case Choice:
		if !slices.Contains(o.Choices, value) {
			return bad("is not one of %s", strings.Join(o.Choices, ", "))
		}
	case Switch:
		if value != "true" && value != "false" {
			return bad("is neither true nor false")
		}
	case Text:
		if len(value) > maxText || strings.HasPrefix(value, "--") || strings.ContainsAny(value, "\x00\r\n") {
			return bad("has more than %d bytes, more than one line, or begins with --", maxText)
		}
	}
	return nil
}
