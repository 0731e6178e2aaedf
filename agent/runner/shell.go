package runner

import (
	"errors"
	"os"
	"syscall"
)

// Shell replaces the process by the image's shell: $SHELL, or the first available of a list.
func Shell() int {
	shell, err := FindShell()
	if err != nil {
		return complain(exitNotFound, "%v", err)
	}
	err = syscall.Exec(shell[0], shell, os.Environ())
	return complain(exitNotExecutable, "%s: %v", shell[0], err)
}

// FindShell returns the path of the shell and its arguments, and an error if the image has none.
func FindShell() ([]string, error) {
	for _, shell := range [][]string{
		{os.Getenv("SHELL")}, {"/bin/bash"}, {"/usr/bin/bash"}, {"/bin/sh"}, {"/bin/busybox", "sh"},
	} {
		if shell[0] == "" {
			continue
		}
		if st, err := os.Stat(shell[0]); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return shell, nil
		}
	}
	return nil, errors.New("the image has no shell")
}
