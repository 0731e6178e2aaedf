package recipe

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// maxStages limits the stages of a Dockerfile.
const maxStages = 50

// Images are the images that a Dockerfile names.
type Images struct {
	All  []string // sorted, without scratch
	Base string   // of the last stage, or of the first stage with one; "" = none
}

// NamedImages finds the images that a Dockerfile names, with the given values of its ARG instructions.
func NamedImages(dockerfile string, args map[string]string) (Images, error) {
	file, err := parser.Parse(strings.NewReader(dockerfile))
	if err != nil {
		return Images{}, bad("Dockerfile: %v", err)
	}
	stages, globals, err := instructions.Parse(file.AST, nil)
	if err != nil {
		return Images{}, bad("Dockerfile: %v", err)
	}
	if len(stages) == 0 || len(stages) > maxStages {
		return Images{}, bad("Dockerfile: it has %d stages, and 1 to %d are allowed", len(stages), maxStages)
	}
	f := &finder{lex: shell.NewLex(file.EscapeToken), env: values(globals, args), found: map[string]bool{}, bases: map[string]string{}}
	for i := range stages {
		if err := f.stage(i, &stages[i]); err != nil {
			return Images{}, err
		}
	}
	out := Images{All: slices.Sorted(maps.Keys(f.found)), Base: f.last}
	if out.Base == "" && len(out.All) > 0 {
		out.Base = f.first
	}
	return out, nil
}

// values are those of ARG instructions before the first FROM.
func values(globals []instructions.ArgCommand, args map[string]string) variables {
	out := variables{}
	for _, g := range globals {
		for _, a := range g.Args {
			if a.Value != nil {
				out[a.Key] = *a.Value
			}
			if v, ok := args[a.Key]; ok {
				out[a.Key] = v
			}
		}
	}
	return out
}

type variables map[string]string

// Get implements shell.EnvGetter.
func (v variables) Get(key string) (string, bool) {
	s, ok := v[key]
	return s, ok
}

// Keys implements shell.EnvGetter.
func (v variables) Keys() []string { return slices.Sorted(maps.Keys(v)) }

type finder struct {
	lex         *shell.Lex
	env         variables
	found       map[string]bool
	bases       map[string]string // of the stages so far, by lower-case name and by number
	first, last string
}

func (f *finder) stage(number int, s *instructions.Stage) error {
	name, _, err := f.lex.ProcessWord(s.BaseName, f.env)
	if err != nil {
		return bad("Dockerfile: FROM %s: %v", s.BaseName, err)
	}
	if name == "" {
		return bad("Dockerfile: FROM %s is empty; a build argument is missing", s.BaseName)
	}
	base, known := f.bases[strings.ToLower(name)]
	if !known {
		base = name
		f.image(name)
	}
	if name == scratch {
		base = ""
	}
	f.last = base
	if f.first == "" {
		f.first = base
	}
	f.bases[strconv.Itoa(number)] = base
	if s.Name != "" {
		f.bases[strings.ToLower(s.Name)] = base
	}
	for _, c := range s.Commands {
		if err := f.command(c); err != nil {
			return err
		}
	}
	return nil
}

const scratch = "scratch"

func (f *finder) image(name string) {
	if name != scratch {
		f.found[name] = true
	}
}

// command notes the images of COPY --from and RUN --mount=from.
func (f *finder) command(c instructions.Command) error {
	switch c := c.(type) {
	case *instructions.CopyCommand:
		return f.from(c.From)
	case *instructions.RunCommand:
		if err := c.Expand(func(word string) (string, error) { return word, nil }); err != nil {
			return bad("Dockerfile: %v", err)
		}
		for _, m := range instructions.GetMounts(c) {
			if err := f.from(m.From); err != nil {
				return err
			}
		}
	}
	return nil
}

// from notes a name that is neither a stage nor empty. A later stage cannot be meant.
func (f *finder) from(name string) error {
	if name == "" {
		return nil
	}
	if _, stage := f.bases[strings.ToLower(name)]; !stage {
		f.image(name)
	}
	return nil
}
