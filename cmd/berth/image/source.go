package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/internal/resource"
)

// descriptions are the files that describe a build, in the order in which they are looked for.
var descriptions = []string{
	"berth.yaml", "Dockerfile", "Containerfile", ".devcontainer/devcontainer.json", "devcontainer.json", "environment.yml", "requirements.txt",
}

// kinds are the kinds of descriptions by the form of their names.
var kinds = []struct {
	form *regexp.Regexp
	kind client.Enum
}{
	{regexp.MustCompile(`^.*\.json$`), "DEVCONTAINER"},
	{regexp.MustCompile(`^.*(environment|conda).*\.ya?ml$`), "ENVIRONMENT"},
	{regexp.MustCompile(`^.*\.ya?ml$`), "RECIPE"},
	{regexp.MustCompile(`^.*requirements.*\.txt$`), "REQUIREMENTS"},
	{regexp.MustCompile(`(?i)^.*(docker|container)file.*$`), "DOCKERFILE"},
}

// input reads the source and the flags.
func (f *buildFlags) input(ctx context.Context, a *cli.App, c *client.Client, args []string) (in client.BuildImageInput, err error) {
	in.Name, in.Tag, _ = strings.Cut(args[0], ":")
	in.Base, in.Description, in.Target = f.base, f.description, f.target
	in.Shared, in.NoCache = f.share, f.noCache
	source := "."
	if len(args) > 1 {
		source = args[1]
	}
	if isGit(source) {
		dir, err := os.MkdirTemp("", "berth-build-")
		if err != nil {
			return in, err
		}
		defer os.RemoveAll(dir)
		if source, err = clone(ctx, a, source, dir); err != nil {
			return in, err
		}
	}
	if err := f.read(source, &in); err != nil {
		return in, err
	}
	if err := f.values(&in); err != nil {
		return in, err
	}
	defer f.discard()
	if err := f.send(ctx, a, c, &in); err != nil {
		return in, err
	}
	if f.project != "" {
		if in.Project, err = cli.FindProjectID(ctx, c, f.project); err != nil {
			return in, err
		}
	}
	if f.group != "" {
		if in.ResourceGroup, err = cli.FindGroupID(ctx, c, f.group); err != nil {
			return in, err
		}
	}
	return in, nil
}

// read reads the description, and packs the directory that it is in.
func (f *buildFlags) read(source string, in *client.BuildImageInput) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	dir, name := source, f.file
	switch {
	case !info.IsDir() && f.file != "":
		return cli.Usagef("-f is for a directory, and %s is a file", source)
	case !info.IsDir():
		dir, name = "", source
	case name == "":
		if name, err = described(dir); err != nil {
			return err
		}
	}
	text, err := readIn(dir, name)
	if err != nil {
		return err
	}
	in.Text = string(text)
	base := path.Base(filepath.ToSlash(name))
	for _, k := range kinds {
		if k.form.MatchString(base) {
			in.Kind = k.kind
			break
		}
	}
	if in.Kind == "" {
		return cli.Usagef("the name of %s does not say what it is: *.yaml, *requirements*.txt, *environment*.yml, *.json and *Dockerfile* are known", name)
	}
	if dir == "" {
		return nil
	}
	return f.pack(dir, in)
}

// readIn reads a file of a directory. Links of a repository that was cloned lead nowhere else.
func readIn(dir, name string) ([]byte, error) {
	if dir == "" {
		return os.ReadFile(name)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(name)
}

func described(dir string) (string, error) {
	for _, name := range descriptions {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return name, nil
		}
	}
	return "", cli.Usagef("%s has none of %s: name the description with -f", dir, strings.Join(descriptions, ", "))
}

// values adds the amounts, the build arguments and the secrets.
func (f *buildFlags) values(in *client.BuildImageInput) error {
	in.Slots, in.Args, in.Secrets = map[string]string{}, map[string]string{}, map[string]string{}
	for slot, text := range map[string]string{resource.CPU: f.cpu, resource.Mem: f.mem} {
		if text == "" {
			continue
		}
		amount, err := resource.Parse(slot, text)
		if err != nil {
			return cli.Usagef("--%s: %v", slot, err)
		}
		in.Slots[slot] = resource.Format(slot, amount)
	}
	for _, arg := range f.args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return cli.Usagef("--arg %q is not NAME=VALUE", arg)
		}
		in.Args[name] = value
	}
	for _, s := range f.secrets {
		name, file, ok := strings.Cut(s, "=")
		if !ok {
			return cli.Usagef("--secret is not ID=FILE")
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		in.Secrets[name] = string(text)
	}
	return nil
}

// isGit reports whether a source is the address of a Git repository.
func isGit(source string) bool {
	return strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "ssh://") || strings.HasPrefix(source, "git@")
}

// clone clones a repository, and returns the directory in it that the address names: URL#BRANCH:DIRECTORY.
func clone(ctx context.Context, a *cli.App, address, dir string) (string, error) {
	address, rest, _ := strings.Cut(address, "#")
	branch, below, _ := strings.Cut(rest, ":")
	if below != "" && !filepath.IsLocal(below) {
		return "", cli.Usagef("directory %q is not inside the repository", below)
	}
	args := []string{"clone", "--quiet", "--depth", "1"}
	if branch != "" {
		if strings.HasPrefix(branch, "-") {
			return "", cli.Usagef("branch %q begins with a hyphen", branch)
		}
		args = append(args, "--branch", branch)
	}
	cmd := exec.CommandContext(ctx, "git", append(args, "--", address, dir)...)
	cmd.Stdout, cmd.Stderr = a.Err, a.Err
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("clone %s: %w", address, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if _, err := root.Stat(filepath.Join(".", below)); err != nil { // also for a link out of the repository
		return "", err
	}
	return filepath.Join(dir, below), nil
}
