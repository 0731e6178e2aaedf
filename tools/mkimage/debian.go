package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// installScript completes the root file system after Debian's packages.
//
//go:embed install.sh
var installScript string

// bootstrap unpacks the recipe's Debian packages, installs what its lock files name, and writes
// the root file system as a tar file. The entries of the tar file are sorted, and no time is later
// than the recipe's date. dir is for files of the build.
func (r Recipe) bootstrap(ctx context.Context, dir, tarFile string) error {
	hook := filepath.Join(dir, "install.sh")
	if err := os.WriteFile(hook, []byte(installScript), 0o755); err != nil {
		return err
	}
	folder, err := filepath.Abs(r.dir)
	if err != nil {
		return err
	}
	hook, err = filepath.Abs(hook)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "mmdebstrap", r.arguments(hook, tarFile)...)
	cmd.Env = append(os.Environ(),
		"SOURCE_DATE_EPOCH="+strconv.FormatInt(r.date.Unix(), 10),
		"PYTHONHASHSEED=0", // the byte code of sets depends on hashes
		"MKIMAGE_DIR="+folder,
		"MKIMAGE_PIP="+r.Pip,
		"MKIMAGE_NPM="+r.Npm,
		"MKIMAGE_BUILD="+strings.Join(r.Build, " "),
	)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // on SIGINT, it removes its mounts
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("mmdebstrap: %w", err)
	}
	return nil
}

// arguments returns the arguments of mmdebstrap.
func (r Recipe) arguments(hook, tarFile string) []string {
	args := []string{
		"--format=tar", "--mode=root", "--variant=" + r.Variant,
		"--include=" + strings.Join(append(r.Packages[:len(r.Packages):len(r.Packages)], r.Build...), ","),
		"--aptopt=APT::Install-Recommends false", "--aptopt=Acquire::Languages none",
		"--dpkgopt=force-unsafe-io", "--skip=check/empty",
	}
	for _, path := range r.Exclude {
		args = append(args, "--dpkgopt=path-exclude="+path)
	}
	when := "--customize-hook="
	if r.Variant == "extract" { // nothing is installed, so nothing is customized
		when = "--extract-hook="
	}
	args = append(args, when+hook, r.Suite, tarFile)
	if mirror := os.Getenv("BERTH_DEBIAN_MIRROR"); mirror != "" {
		args = append(args, mirror)
	}
	return args
}
