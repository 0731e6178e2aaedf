package recipe

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// Kind is a kind of description.
type Kind string

// The kinds.
const (
	KindRecipe       Kind = "recipe"
	KindDockerfile   Kind = "dockerfile"
	KindRequirements Kind = "requirements" // of pip
	KindEnvironment  Kind = "environment"  // of Conda
	KindDevcontainer Kind = "devcontainer"
)

// Read turns a text into a Dockerfile. base is the image that requirements and environments are installed on.
// context is the archive with the Dockerfile that a development container names.
func Read(kind Kind, text, base string, context []byte) (Source, error) {
	if len(text) > maxText {
		return Source{}, bad("the description has %d bytes, more than %d", len(text), maxText)
	}
	if strings.TrimSpace(text) == "" {
		return Source{}, bad("the description is empty")
	}
	switch kind {
	case KindDockerfile:
		return Source{Dockerfile: withoutSyntax(text)}, nil
	case KindRecipe:
		r, err := Parse(text)
		if err != nil {
			return Source{}, err
		}
		return r.Source(), nil
	case KindRequirements, KindEnvironment:
		r := &Recipe{Base: base}
		if kind == KindEnvironment {
			r.environment = text
		} else if list, ok := plainList(text); ok {
			r.Pip = list
		} else {
			r.requirements = text
		}
		if err := r.check(); err != nil {
			return Source{}, err
		}
		return r.Source(), nil
	case KindDevcontainer:
		return devcontainer(text, context)
	}
	return Source{}, bad("kind %.40q is none of recipe, dockerfile, requirements, environment and devcontainer", kind)
}

// plainList returns the packages of a requirements.txt, and reports whether it has nothing else, such as options.
func plainList(text string) (list []string, ok bool) {
	for line := range strings.Lines(text) {
		if i := strings.Index(line, "#"); i == 0 || i > 0 && strings.ContainsRune(" \t", rune(line[i-1])) {
			line = line[:i]
		}
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if len(line) > maxItem || !packageForm.MatchString(line) || strings.HasSuffix(line, ".txt") {
			return nil, false
		}
		list = append(list, line)
	}
	return list, len(list) > 0 && len(list) <= maxItems
}

// withoutSyntax empties the line that names a program for reading the Dockerfile: the builder reads all of them
// with its own. The numbers of the lines stay the same.
func withoutSyntax(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		if !strings.HasPrefix(trimmed, "#") {
			break // directives are at the beginning
		}
		name, _, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(trimmed, "#")), "=")
		if ok && strings.EqualFold(strings.TrimSpace(name), "syntax") {
			lines[i] = "#" + line[len(strings.TrimRight(line, "\r\n")):]
		}
	}
	return strings.Join(lines, "")
}

// container is the part of a devcontainer.json that an image is built of. What concerns editors is ignored.
type container struct {
	Image string `json:"image"`
	Build struct {
		Dockerfile string            `json:"dockerfile"`
		Context    string            `json:"context"`
		Target     string            `json:"target"`
		Args       map[string]string `json:"args"`
	} `json:"build"`
	DockerFile        string          `json:"dockerFile"` // the older form of build.dockerfile
	DockerComposeFile json.RawMessage `json:"dockerComposeFile"`
	Features          map[string]any  `json:"features"`
	ContainerEnv      map[string]string
	ContainerUser     string `json:"containerUser"`
	RemoteUser        string `json:"remoteUser"`
	OnCreateCommand   any    `json:"onCreateCommand"`
	PostCreateCommand any    `json:"postCreateCommand"`
}

func devcontainer(text string, context []byte) (Source, error) {
	var c container
	if err := json.Unmarshal(plainJSON(text), &c); err != nil {
		return Source{}, bad("devcontainer.json: %v", err)
	}
	switch {
	case len(c.DockerComposeFile) > 0:
		return Source{}, bad("dockerComposeFile: a build makes one image, without Docker Compose")
	case len(c.Features) > 0:
		return Source{}, bad("features: they are installed from the internet by programs of their own; install the packages in the Dockerfile instead")
	}
	r := &Recipe{Base: c.Image, Env: c.ContainerEnv, User: c.ContainerUser}
	if r.User == "" {
		r.User = c.RemoteUser
	}
	for _, command := range []any{c.OnCreateCommand, c.PostCreateCommand} {
		line, err := commandLine(command)
		if err != nil {
			return Source{}, err
		}
		if line != "" {
			r.Run = append(r.Run, line)
		}
	}
	file := c.Build.Dockerfile
	if file == "" {
		file = c.DockerFile
	}
	if file == "" {
		if err := r.check(); err != nil {
			return Source{}, err
		}
		return r.Source(), nil
	}
	return r.above(c, file, context)
}

// above returns the Dockerfile of a development container, followed by its own settings.
func (r *Recipe) above(c container, file string, context []byte) (Source, error) {
	// Names are relative to the directory of devcontainer.json, which is usually .devcontainer.
	text, name := "", ""
	for _, dir := range []string{".devcontainer", "."} {
		at := path.Join(dir, file)
		t, found, err := File(context, at)
		if err != nil {
			return Source{}, err
		}
		if found {
			text, name = t, at
			break
		}
	}
	if name == "" {
		return Source{}, bad("build.dockerfile: %s is not among the files of the build", file)
	}
	if context := path.Join(path.Dir(name), c.Build.Context); c.Build.Context != "" && context != "." && context != path.Dir(name) {
		return Source{}, bad("build.context: %s is neither the directory of the Dockerfile nor the one that was sent", c.Build.Context)
	}
	r.Base = "scratch" // not used
	if err := r.check(); err != nil {
		return Source{}, err
	}
	own := r.Source()
	_, rest, _ := strings.Cut(own.Dockerfile, "\n")
	if c.Build.Target != "" {
		rest = fmt.Sprintf("FROM %s\n%s", c.Build.Target, rest)
	}
	return Source{Dockerfile: strings.TrimRight(withoutSyntax(text), "\n") + "\n" + rest, Files: own.Files, Args: c.Build.Args}, nil
}

// commandLine returns a command of a devcontainer.json as a line for the shell.
func commandLine(command any) (string, error) {
	switch c := command.(type) {
	case nil:
		return "", nil
	case string:
		return c, nil
	case []any:
		words := make([]string, 0, len(c))
		for _, w := range c {
			words = append(words, fmt.Sprint(w))
		}
		return shellWords(words), nil
	}
	return "", bad("postCreateCommand: only a line or a list of words is supported")
}

// plainJSON removes comments and commas before closing brackets, which devcontainer.json can have.
func plainJSON(text string) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(text))
			out = append(out, text[i:end]...)
			i = end - 1
		case strings.HasPrefix(text[i:], "//"):
			for i < len(text) && text[i] != '\n' {
				i++
			}
			out = append(out, '\n')
		case strings.HasPrefix(text[i:], "/*"):
			end := strings.Index(text[i+2:], "*/")
			if end < 0 {
				return out
			}
			i += 2 + end + 1
		case text[i] == '}' || text[i] == ']':
			trimmed := strings.TrimRight(string(out), " \t\r\n")
			if strings.HasSuffix(trimmed, ",") {
				out = append(out[:0], trimmed[:len(trimmed)-1]...)
			}
			out = append(out, text[i])
		default:
			out = append(out, text[i])
		}
	}
	return out
}

func clean(name string) string { return path.Clean("/" + name) }
