// Package recipe turns descriptions of environments into Dockerfiles: recipes, lists of Python packages,
// Conda environments and development containers. The same description always results in the same
// Dockerfile. It also finds the images that a Dockerfile names.
package recipe

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/goccy/go-yaml"

	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/shell"
	"github.com/berthhq/berth/internal/yamltext"
)

// Recipe describes an image. Its steps run in the order of the fields.
type Recipe struct {
	Base  string            `yaml:"base"`
	Env   map[string]string `yaml:"env"`
	Apt   []string          `yaml:"apt"`
	Conda []string          `yaml:"conda"`
	Pip   []string          `yaml:"pip"`
	NPM   []string          `yaml:"npm"`
	Files map[string]string `yaml:"files"` // contents by path
	Run   []string          `yaml:"run"`   // commands of the shell
	User  string            `yaml:"user"`
	Apps  []App             `yaml:"apps"`

	requirements, environment string // texts of files instead of lists
}

// App is a program that sessions of the image offer.
type App struct {
	Name        string            `yaml:"name"`
	Title       string            `yaml:"title"`
	Port        int               `yaml:"port"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
}

// labelApps is the label that sessions read apps from.
const labelApps = "com.berthhq.apps"

// Source is a Dockerfile with the files that belong to it.
type Source struct {
	Dockerfile string
	Files      map[string]string // of the context, in addition to those of the user
	Target     string
	Args       map[string]string
}

// Limits of a recipe.
const (
	maxItems = 200
	maxItem  = 500
	maxText  = 64 << 10
)

// Parse reads a recipe.
func Parse(text string) (*Recipe, error) {
	r := &Recipe{}
	if err := yamltext.Decode([]byte(text), r, yaml.Strict()); err != nil {
		return nil, err
	}
	return r, r.check()
}

func bad(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, errdefs.ErrInvalidArgument)...)
}

// Forms of the parts of a recipe. Package names cannot begin with a hyphen, so that none is an option.
var (
	packageForm  = regexp.MustCompile(`^[A-Za-z0-9@][A-Za-z0-9@._+:~=<>!,;\[\]/ *^-]*$`)
	variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	userForm     = regexp.MustCompile(`^[a-z0-9_][a-z0-9_.-]{0,31}(:[a-z0-9_][a-z0-9_.-]{0,31})?$`)
)

func (r *Recipe) check() error {
	if r.Base == "" || strings.ContainsAny(r.Base, " \t\r\n$\\\"'") {
		return bad("base: %q is not the name of an image", r.Base)
	}
	for _, list := range []struct {
		field string
		items []string
	}{{"apt", r.Apt}, {"conda", r.Conda}, {"pip", r.Pip}, {"npm", r.NPM}} {
		if len(list.items) > maxItems {
			return bad("%s: %d packages are more than the limit of %d", list.field, len(list.items), maxItems)
		}
		for _, item := range list.items {
			if len(item) > maxItem || !packageForm.MatchString(item) {
				return bad("%s: %.100q is not the name of a package", list.field, item)
			}
		}
	}
	for name, value := range r.Env {
		if !variableForm.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
			return bad("env: variable %.100q is malformed", name)
		}
	}
	for name := range r.Files {
		if !path.IsAbs(name) || path.Clean(name) != name || strings.ContainsAny(name, "\r\n\x00") {
			return bad("files: %.100q is not an absolute path", name)
		}
	}
	for _, command := range r.Run {
		if strings.TrimSpace(command) == "" || len(command) > maxText || strings.Contains(command, "\x00") {
			return bad("run: a command is empty or longer than %d bytes", maxText)
		}
	}
	if r.User != "" && !userForm.MatchString(r.User) {
		return bad("user: %.100q is not the name or the number of a user", r.User)
	}
	for _, app := range r.Apps {
		if err := appstate.CheckName(app.Name); err != nil {
			return bad("apps: %v", err)
		}
		if app.Port < 1 || app.Port > 65535 {
			return bad("apps: the port %d of %s is not from 1 to 65535", app.Port, app.Name)
		}
	}
	return nil
}

// Source returns the Dockerfile.
func (r *Recipe) Source() Source {
	w := &writer{files: map[string]string{}}
	w.line("FROM %s", r.Base)
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		w.line("ENV %s=%s", name, quoteInstruction(r.Env[name]))
	}
	if r.User != "" {
		w.line("USER root")
	}
	if len(r.Apt) > 0 {
		w.line("RUN %s %s apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends %s && rm -rf /var/log/apt /var/log/dpkg.log /var/log/alternatives.log /var/cache/ldconfig/aux-cache",
			cacheMount("apt-lists", "/var/lib/apt/lists", "locked"), cacheMount("apt-archives", "/var/cache/apt", "locked"), shellWords(r.Apt))
	}
	r.python(w)
	if len(r.NPM) > 0 {
		w.line("RUN %s npm install --global --cache /var/cache/berth/npm --no-audit --no-fund %s", cacheMount("npm", "/var/cache/berth/npm", "shared"), shellWords(r.NPM))
	}
	for i, name := range slices.Sorted(maps.Keys(r.Files)) {
		file := fmt.Sprintf("berth/files/%d", i)
		w.files[file] = r.Files[name]
		w.line("COPY [%s, %s]", jsonString(file), jsonString(name))
	}
	r.commands(w)
	if len(r.Apps) > 0 {
		w.line("LABEL %s=%s", labelApps, quoteInstruction(r.apps()))
	}
	if r.User != "" {
		w.line("USER %s", r.User)
	}
	return Source{Dockerfile: w.text.String(), Files: w.files}
}

// commands runs the recipe's commands. Those that are more than a line are scripts.
func (r *Recipe) commands(w *writer) {
	for i, command := range r.Run {
		if !strings.Contains(command, "\n") && !strings.HasPrefix(strings.TrimSpace(command), "--") && !strings.Contains(command, "<<") && !strings.HasSuffix(command, "\\") {
			w.line("RUN %s", strings.TrimSpace(command))
			continue
		}
		file := fmt.Sprintf("berth/run/%d", i)
		w.files[file] = command
		w.line("RUN %s /bin/sh -e /run/berth-script", bindMount(file, "/run/berth-script"))
	}
}

// python installs the packages of Conda and pip.
func (r *Recipe) python(w *writer) {
	const conda = "export CONDA_PKGS_DIRS=/var/cache/berth/conda; conda=$(command -v mamba || command -v micromamba || command -v conda) && "
	if r.environment != "" {
		w.files["berth/environment.yml"] = r.environment
		w.line("RUN %s %s %s\"$conda\" env update -n base -f /run/berth-environment.yml",
			cacheMount("conda", "/var/cache/berth/conda", "locked"), bindMount("berth/environment.yml", "/run/berth-environment.yml"), conda)
	}
	if len(r.Conda) > 0 {
		w.line("RUN %s %s\"$conda\" install -y -n base %s", cacheMount("conda", "/var/cache/berth/conda", "locked"), conda, shellWords(r.Conda))
	}
	if r.requirements != "" {
		r.pip(w, "berth/requirements.txt", r.requirements)
	}
	for i, end := range groups(len(r.Pip)) {
		r.pip(w, fmt.Sprintf("berth/pip/%d", i), strings.Join(r.Pip[:end], "\n")+"\n")
	}
}

// pip installs the packages of a list that has the name file in the context.
func (r *Recipe) pip(w *writer, file, list string) {
	w.files[file] = list
	w.line("RUN %s %s PIP_CACHE_DIR=/var/cache/berth/pip PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip install -r /run/berth-requirements.txt",
		cacheMount("pip", "/var/cache/berth/pip", "shared"), bindMount(file, "/run/berth-requirements.txt"))
}

// sameGroups is the number of groups of packages that have the same size.
const sameGroups = 4

// groups divides a list of n packages into steps, and returns the end of each. The sizes are 4 times 1, 4 times 2, 4
// times 4 and so on, so a package that is added at the end changes the last step alone, which has at most a fifth of
// the packages of a long list. Each step gets all packages up to its end, so that pip chooses versions that fit all
// of them.
func groups(n int) (ends []int) {
	end := 0
	for size := 1; end < n; size *= 2 {
		for i := 0; i < sameGroups && end < n; i++ {
			end = min(end+size, n)
			ends = append(ends, end)
		}
	}
	return ends
}

// apps returns the text of the label.
func (r *Recipe) apps() string {
	list := make([]appstate.App, 0, len(r.Apps))
	for _, a := range r.Apps {
		list = append(list, appstate.App{Name: a.Name, Title: a.Title, Port: a.Port, Command: a.Command, Environment: a.Environment})
	}
	b, err := json.Marshal(list)
	if err != nil {
		return "[]" // strings and numbers have a form in JSON
	}
	return string(b)
}

type writer struct {
	text  strings.Builder
	files map[string]string
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

// cacheMount is a directory that steps of the project's builds share.
func cacheMount(id, target, sharing string) string {
	return fmt.Sprintf("--mount=type=cache,id=%s,target=%s,sharing=%s,mode=0777", id, target, sharing)
}

// bindMount shows a file of the context to a step, and leaves nothing of it in the image.
func bindMount(source, target string) string {
	return fmt.Sprintf("--mount=type=bind,source=%s,target=%s", source, target)
}

// shellWords quotes words for the shell.
func shellWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = shell.Quote(w)
	}
	return strings.Join(out, " ")
}

// quoteInstruction quotes the value of an instruction, in which $ begins a variable.
func quoteInstruction(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`).Replace(s) + `"`
}

func jsonString(s string) string {
	b := &strings.Builder{}
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '$': // begins a variable also here
			b.WriteString(`\\$`)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Archive adds the files of a source to a context, which is a tar archive or empty. The result is compressed, and
// depends only on the input.
func Archive(context []byte, files map[string]string) ([]byte, error) {
	if len(files) == 0 {
		return context, nil
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	if err := copyArchive(w, context); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
