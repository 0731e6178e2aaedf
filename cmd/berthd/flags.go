package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

// caFlag adds the flag for what the containers of an agent trust.
func caFlag(cmd *cobra.Command, file *string) {
	pathFlag(cmd, file, "ca-bundle", os.Getenv("SSL_CERT_FILE"), "PEM file of all certificate authorities that sessions and builds trust, where the site has one of its own (default $SSL_CERT_FILE)")
	cmd.Flags().Lookup("ca-bundle").DefValue = "" // the same text on every machine
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

// secret is a flag with a secret value. The value comes from --NAME-file, from the
// environment, from the systemd credential NAME, or from --NAME, which every user of the
// machine can read in the list of processes. --help prints none of them.
type secret struct {
	name, env   string
	value, file string
}

func secretFlag(cmd *cobra.Command, s *secret, name, env, usage string) {
	s.name, s.env = name, env
	cmd.Flags().StringVar(&s.value, name, "", fmt.Sprintf("%s; visible in the list of processes, unlike %s and the systemd credential %s", usage, env, name))
	pathFlag(cmd, &s.file, name+"-file", "", "file with the value of --"+name)
}

// read returns the value, or "" if none is set.
func (s *secret) read() (string, error) {
	if s.value != "" && s.file != "" {
		return "", fmt.Errorf("--%s and --%s-file cannot be combined", s.name, s.name)
	}
	if s.value != "" {
		return s.value, nil
	}
	if s.file != "" {
		return s.from(s.file)
	}
	if v := os.Getenv(s.env); v != "" {
		return v, nil
	}
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" {
		v, err := s.from(filepath.Join(dir, s.name))
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return v, err
	}
	return "", nil
}

func (s *secret) from(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read --%s: %w", s.name, err)
	}
	v := strings.TrimSpace(string(b))
	if v == "" {
		return "", fmt.Errorf("read --%s: %s is empty", s.name, file)
	}
	return v, nil
}
