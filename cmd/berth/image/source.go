package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/internal/recipe"
	"github.com/berthhq/berth/internal/resource"
)

// input reads the source and the flags.
func (f *buildFlags) input(ctx context.Context, a *cli.App, c *client.Client, args []string) (in client.BuildImageInput, err error) {
	in.Name, in.Tag, _ = strings.Cut(args[0], ":")
	in.Base, in.Description, in.Target = f.base, f.description, f.target
	in.Shared, in.NoCache = f.share, f.noCache
	source := "."
	if len(args) > 1 {
		source = args[1]
	}
	if f.remote {
		if err := f.repository(source, &in); err != nil {
			return in, err
		}
		return in, f.place(ctx, c, &in)
	}
	if f.gitSecret != "" || f.gitUser != "" {
		return in, cli.Usagef("--git-secret and --git-user are for --remote; git on your machine uses its own credentials")
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
	return in, f.place(ctx, c, &in)
}

// repository makes the build fetch a Git repository itself.
func (f *buildFlags) repository(source string, in *client.BuildImageInput) error {
	address, rest, _ := strings.Cut(source, "#")
	ref, directory, _ := strings.Cut(rest, ":")
	if err := recipe.CheckGit(address, ref, directory); err != nil {
		return cli.Usagef("--remote: %v", err)
	}
	in.Kind = "GIT"
	in.Git = &client.BuildGitInput{Address: address, Ref: ref, Directory: directory, File: f.file, Username: f.gitUser, Secret: f.gitSecret}
	return f.values(in)
}

// place adds the project and the resource group.
func (f *buildFlags) place(ctx context.Context, c *client.Client, in *client.BuildImageInput) (err error) {
	if f.project != "" {
		if in.Project, err = cli.FindProjectID(ctx, c, f.project); err != nil {
			return err
		}
	}
	if f.group != "" {
		if in.ResourceGroup, err = cli.FindGroupID(ctx, c, f.group); err != nil {
			return err
		}
	}
	return nil
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
	kind, known := recipe.KindOf(filepath.ToSlash(name))
	if !known {
		return cli.Usagef("the name of %s does not say what it is: %s", name, recipe.KnownNames)
	}
	in.Kind = client.Enum(strings.ToUpper(string(kind)))
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
	for _, name := range recipe.Descriptions() {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return name, nil
		}
	}
	return "", cli.Usagef("%s has none of %s: name the description with -f", dir, strings.Join(recipe.Descriptions(), ", "))
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
