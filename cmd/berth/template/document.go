package template

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// The kinds of documents.
const (
	kindTemplate = "template"
	kindSession  = "session"
)

// document is one object of a file, as docs/templates.md describes it.
type document struct {
	Kind        string  `yaml:"kind"`
	Name        string  `yaml:"name"`
	Description string  `yaml:"description,omitempty"`
	Project     string  `yaml:"project,omitempty"`  // of a template: the project that it is shared with
	Template    string  `yaml:"template,omitempty"` // of a session: the template it is based on
	Request     request `yaml:"request"`

	file   string
	number int // in the file, from 1
	body   ast.Node
}

// request has the fields of createSession. Objects are named, not given by ID.
type request struct {
	Image           string            `yaml:"image,omitempty"`
	Type            string            `yaml:"type,omitempty"`
	Slots           map[string]scalar `yaml:"slots,omitempty"`
	Kernels         *int              `yaml:"kernels,omitempty"`
	Command         []string          `yaml:"command,omitempty"`
	BootstrapScript string            `yaml:"bootstrapScript,omitempty"`
	Environment     map[string]scalar `yaml:"environment,omitempty"`
	Apps            []app             `yaml:"apps,omitempty"`
	Mounts          []mount           `yaml:"mounts,omitempty"`
	AutoMount       *bool             `yaml:"autoMount,omitempty"`
	Project         string            `yaml:"project,omitempty"`
	ResourceGroup   string            `yaml:"resourceGroup,omitempty"`
	Priority        *int              `yaml:"priority,omitempty"`
	StartsAt        *time.Time        `yaml:"startsAt,omitempty"`
	DependsOn       []string          `yaml:"dependsOn,omitempty"`
	Agents          []string          `yaml:"agents,omitempty"`
	StrictAgents    bool              `yaml:"strictAgents,omitempty"`
	Lifetime        scalar            `yaml:"lifetime,omitempty"`
	Preemptible     bool              `yaml:"preemptible,omitempty"`
	SessionGroup    string            `yaml:"sessionGroup,omitempty"`
	ShmBytes        scalar            `yaml:"shmBytes,omitempty"`
	DiskBytes       scalar            `yaml:"diskBytes,omitempty"`
	Tags            []string          `yaml:"tags,omitempty"`
}

type app struct {
	Name        string            `yaml:"name"`
	Title       string            `yaml:"title,omitempty"`
	Port        int               `yaml:"port"`
	Command     []string          `yaml:"command,omitempty"`
	Environment map[string]scalar `yaml:"environment,omitempty"`
}

type mount struct {
	Vfolder  string `yaml:"vfolder"`
	Target   string `yaml:"target,omitempty"`
	Subpath  string `yaml:"subpath,omitempty"`
	ReadOnly bool   `yaml:"readOnly,omitempty"`
}

// scalar is a text that can also be written as a number or boolean in YAML.
type scalar string

// UnmarshalYAML implements yaml.BytesUnmarshaler.
func (s *scalar) UnmarshalYAML(raw []byte) error {
	text := strings.TrimSpace(string(raw))
	if text == "" || strings.ContainsAny(text[:1], `"'|>[{`) || strings.Contains(text, "\n") {
		var plain string
		if err := yaml.Unmarshal(raw, &plain); err != nil {
			return err
		}
		*s = scalar(plain)
		return nil
	}
	*s = scalar(text)
	return nil
}

// parse reads the documents of a file. An error names the document, the line and the field.
func parse(file string, text []byte) ([]*document, error) {
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, cli.BadUsage(fmt.Errorf("%s: %s", file, located(err)))
	}
	var list []*document
	for _, doc := range tree.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		d := &document{file: file, number: len(list) + 1, body: doc.Body}
		if err := yaml.NodeToValue(doc.Body, d, yaml.DisallowUnknownField()); err != nil {
			return nil, cli.BadUsage(fmt.Errorf("%s: document %d: %s", file, d.number, located(err)))
		}
		if err := d.check(); err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	if len(list) == 0 {
		return nil, cli.Usagef("%s has no document", file)
	}
	return list, nil
}

// located returns the message of a parser error, which names one line.
func located(err error) string {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		return fmt.Sprintf("line %d: %s", at.GetToken().Position.Line, at.GetMessage())
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

func (d *document) check() error {
	switch {
	case d.Kind != kindTemplate && d.Kind != kindSession:
		return d.wrong("kind", fmt.Errorf("%q is not a kind: write template or session", d.Kind))
	case d.Name == "":
		return d.wrong("name", errors.New("must be given"))
	case d.Kind == kindTemplate && d.Template != "":
		return d.wrong("template", errors.New("is only for sessions"))
	case d.Kind == kindSession && d.Project != "":
		return d.wrong("project", errors.New("is only for templates; write it below request"))
	case d.Kind == kindSession && d.Description != "":
		return d.wrong("description", errors.New("is only for templates"))
	}
	return nil
}

// wrong names the document, the line and the field in an error.
func (d *document) wrong(field string, err error) error {
	return fmt.Errorf("%s: document %d (%s %s), line %d: %s: %w", d.file, d.number, d.Kind, d.Name, d.line(field), field, err)
}

// refused is wrong for an error of the server, which names the field itself.
func (d *document) refused(err error) error {
	var from *client.Error
	if errors.As(err, &from) && from.Field != "" {
		field := strings.TrimPrefix(from.Field, "request.")
		if d.find("request."+field) != nil {
			field = "request." + field
		}
		return fmt.Errorf("%s: document %d (%s %s), line %d: %w", d.file, d.number, d.Kind, d.Name, d.line(field), err)
	}
	return fmt.Errorf("%s: document %d (%s %s): %w", d.file, d.number, d.Kind, d.Name, err)
}

// line returns the line of a field, or of the closest field around it.
func (d *document) line(field string) int {
	for {
		if n := d.find(field); n != nil {
			return n.GetToken().Position.Line
		}
		i := strings.LastIndexAny(field, ".[")
		if i < 0 {
			return d.body.GetToken().Position.Line
		}
		field = field[:i]
	}
}

// find returns the node of a field such as request.slots.cpu or request.mounts[0].
func (d *document) find(field string) ast.Node {
	path, err := yaml.PathString("$." + field)
	if err != nil {
		return nil
	}
	node, err := path.FilterNode(d.body)
	if err != nil {
		return nil
	}
	return node
}
