package main

import (
	"path/filepath"

	"github.com/spf13/cobra"
)

// path is a flag with a file or directory. It is made absolute at once, because programs in
// other working directories use it.
type path string

// pathFlag adds a path flag, which can be "".
func pathFlag(cmd *cobra.Command, p *string, name, usual, usage string) {
	*p = usual
	if abs, err := absolute(usual); err == nil {
		*p = abs
	}
	cmd.Flags().Var((*path)(p), name, usage)
	cmd.Flags().Lookup(name).DefValue = usual // as users would type it
}

func (p *path) Set(text string) error {
	abs, err := absolute(text)
	*p = path(abs)
	return err
}

func (p *path) String() string { return string(*p) }
func (*path) Type() string     { return "path" }

func absolute(p string) (string, error) {
	if p == "" {
		return "", nil
	}
	return filepath.Abs(p)
}
