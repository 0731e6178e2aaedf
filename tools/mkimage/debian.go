package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bootstrap unpacks the recipe's Debian packages and writes the root file system
// as a tar file.
func (r Recipe) bootstrap(ctx context.Context, tarFile string) error {
	args := []string{
		"--format=tar", "--mode=root", "--variant=" + r.Variant,
		"--include=" + strings.Join(r.Packages, ","),
		"--aptopt=APT::Install-Recommends false", "--aptopt=Acquire::Languages none",
		"--dpkgopt=force-unsafe-io", "--skip=check/empty",
	}
	for _, path := range r.Exclude {
		args = append(args, "--dpkgopt=path-exclude="+path)
	}
	hook, err := filepath.Abs(filepath.Join(r.dir, "customize.sh"))
	if err != nil {
		return err
	}
	if _, err := os.Stat(hook); err == nil {
		when := "--customize-hook="
		if r.Variant == "extract" { // nothing is installed, so nothing is customized
			when = "--extract-hook="
		}
		args = append(args, when+hook)
	}
	args = append(args, r.Suite, tarFile)
	if mirror := os.Getenv("BERTH_DEBIAN_MIRROR"); mirror != "" {
		args = append(args, mirror)
	}
	cmd := exec.CommandContext(ctx, "mmdebstrap", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it cleans up its mounts
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("mmdebstrap: %w", err)
	}
	return nil
}
