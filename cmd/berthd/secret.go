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
		return "", fmt.Errorf("--%s and --%s-file exclude each other", s.name, s.name)
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
