package sshd

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// account is the user of the container, and the environment of the user's processes.
type account struct {
	home string
	env  []string
}

// accountOf adds the variables of a login to the environment of the container. Existing values take
// precedence.
func accountOf(env []string) account {
	env = append([]string(nil), env...)
	name, home := passwd("/etc/passwd", os.Getuid())
	for _, v := range []struct{ name, value string }{{"USER", name}, {"LOGNAME", name}, {"HOME", home}} {
		if value(env, v.name) == "" && v.value != "" {
			env = environ(env, v.name, v.value)
		}
	}
	home = value(env, "HOME")
	if st, err := os.Stat(home); err != nil || !st.IsDir() {
		home = "/"
	}
	return account{home: home, env: env}
}

// Home returns the start directory of commands and of SFTP. The caller of Serve makes it the
// working directory of the process.
func Home() string { return accountOf(os.Environ()).home }

// LoginHome returns the home directory of the user in /etc/passwd. Programs that ignore $HOME use
// it, such as OpenSSH's client.
func LoginHome() string {
	_, home := passwd("/etc/passwd", os.Getuid())
	return home
}

// passwd returns a user's name and home directory. For a user who is not listed, these are the user
// ID and the root directory.
func passwd(path string, uid int) (name, home string) {
	name, home = strconv.Itoa(uid), "/"
	f, err := os.Open(path)
	if err != nil {
		return name, home
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		p := strings.Split(lines.Text(), ":")
		if len(p) >= 7 && p[2] == strconv.Itoa(uid) {
			return p[0], p[5]
		}
	}
	return name, home
}

func value(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// ours are the variables that this server sets, so a client cannot send them. All other variables
// affect only the user's own process.
var ours = map[string]bool{
	"SSH_CLIENT": true, "SSH_CONNECTION": true, "SSH_TTY": true, "SSH_AUTH_SOCK": true, "SSH_ORIGINAL_COMMAND": true,
	"DISPLAY": true, "XAUTHORITY": true, "HOME": true, "USER": true, "LOGNAME": true, "SHELL": true,
}

// settable reports whether a client can set a variable.
func settable(name, value string) bool {
	return name != "" && !strings.ContainsAny(name, "=\x00") && !strings.Contains(value, "\x00") &&
		!ours[name]
}
