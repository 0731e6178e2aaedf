package sshd_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Commands whose result must be the same as with OpenSSH's server.
var conversations = []struct {
	name, stdin string
	args        []string // arguments of ssh; HOST is replaced
}{
	{"exit code", "", []string{"HOST", "exit 7"}},
	{"output and errors apart", "", []string{"HOST", "echo out; echo err >&2; exit 3"}},
	{"killed by a signal", "", []string{"HOST", "kill -9 $$"}},
	{"ended by a signal with a core name", "", []string{"HOST", "kill -TERM $$"}},
	{"a missing command", "", []string{"HOST", "no-such-command"}},
	{"quotes", "", []string{"HOST", `printf '%s|' "a  b" 'c"d' $((1+2))`}},
	{"no input", "", []string{"-n", "HOST", "cat; echo end"}},
	{"half close", "line\n", []string{"HOST", "cat; echo after; cat; echo end"}},
	{"a script on stdin", "echo one\ncat <<X\ntwo\nX\nexit 5\n", []string{"HOST", "sh"}},
	{"a script for the login shell", "echo $((40+2))\nexit 6\n", []string{"-T", "HOST"}},
	{"stdin that is not read", strings.Repeat("x", 4<<20), []string{"HOST", "true"}},
	{"stdin that is closed early", strings.Repeat("y\n", 2<<20), []string{"HOST", "head -1"}},
	{"much output", "", []string{"HOST", "head -c 20000000 /dev/zero | sha256sum; head -c 3000000 /dev/zero"}},
	{"output in the background", "", []string{"HOST", "(sleep 0.3; echo late) & echo first"}},
	{"a background process without the output", "", []string{"HOST", "sleep 3 >/dev/null 2>&1 & echo first"}},
	{"working directory", "", []string{"HOST", "pwd"}},
	{"variables", "", []string{"-o", "SetEnv=ONE=1", "-o", "SetEnv=ONE=1 TWO='2 3'", "HOST", "echo $ONE $TWO $HOME $USER $LOGNAME $SHELL $SSH_CLIENT; echo $SSH_CONNECTION"}},
	{"a terminal", "", []string{"-tt", "HOST", "tty >/dev/null && echo yes; echo $TERM; exit 9"}},
	{"modes of a terminal", "", []string{"-tt", "HOST", "stty -a"}},
	{"a terminal that hangs up", "", []string{"-tt", "HOST", "nohup sleep 30 2>/dev/null & echo started"}},
	{"a subsystem that is missing", "", []string{"-s", "HOST", "netconf"}},
	{"signals of a pipe", "", []string{"HOST", "yes | head -1; echo ${PIPESTATUS[0]}"}},
}

func TestAnswersOfOpenSSH(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	a, b := ours(t), real(t)
	for _, c := range conversations {
		t.Run(c.name, func(t *testing.T) {
			answer := func(config string) result {
				args := []string{"ssh", "-F", config}
				for _, arg := range c.args {
					args = append(args, strings.ReplaceAll(arg, "HOST", "host"))
				}
				r := run(t, c.stdin, args...)
				return r
			}
			if diff := cmp.Diff(answer(b), answer(a)); diff != "" {
				t.Errorf("OpenSSH's server -, ours +\n%s", diff)
			}
		})
	}
}

// The test sends its input after the terminal's echo is off. Earlier input may or may not be
// echoed, depending on the speed of the remote shell.
func TestInputOfATerminal(t *testing.T) {
	answer := func(config string) result {
		cmd := exec.Command("ssh", "-F", config, "-tt", "host", "stty -echo; echo ready; sh -s")
		cmd.Env = append(os.Environ(), "LC_ALL=C", "PS1=")
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer time.AfterFunc(long, func() { _ = cmd.Process.Kill() }).Stop()
		lines := bufio.NewReader(out)
		ready, _ := lines.ReadString('\n')
		_, _ = io.WriteString(in, "cat\nhello\n\x04exit 8\n")
		rest, _ := io.ReadAll(lines)
		_ = cmd.Wait()
		return result{Out: ready + string(rest), Code: cmd.ProcessState.ExitCode()}
	}
	want, got := answer(real(t)), answer(ours(t))
	if diff := cmp.Diff(want, got); diff != "" || want.Code != 8 || !strings.Contains(want.Out, "hello") {
		t.Errorf("OpenSSH's server -, ours +\n%s", diff)
	}
}

// A batch of SFTP leaves the same files and messages as with OpenSSH's server.
func TestFilesOfOpenSSH(t *testing.T) {
	batch := `-mkdir d
mkdir e
put SRC e/a
put -p SRC e/b
chmod 600 e/a
rename e/a e/c
ln -s c e/link
ln e/c e/hard
ls -1 e
ls -ln e/c
-get e/missing
get e/link out
rm e/hard
-rmdir e
-rm nothing
-chmod 600 nothing
-mkdir e
cd e
pwd
df
`
	src, content := random(t, 300_000)
	answer := func(config string) (result, []string) {
		dir := t.TempDir()
		text := "cd " + dir + "\nlcd " + dir + "\n" + strings.ReplaceAll(batch, "SRC", src)
		r := run(t, text, "sftp", "-q", "-F", config, "-b", "-", "host")
		same(t, filepath.Join(dir, "out"), content)
		clean := func(text string) string {
			text = strings.ReplaceAll(text, dir, "DIR")
			text = regexp.MustCompile(`(?m)^\s+\d+ .*%$`).ReplaceAllString(text, "SIZES")
			text = regexp.MustCompile(`\? (root|0) +(root|0) +`).ReplaceAllString(text, "? OWNER ")
			return regexp.MustCompile(`[A-Z][a-z]{2} \d\d \d\d:\d\d`).ReplaceAllString(text, "DATE")
		}
		r.Out, r.Err = clean(r.Out), clean(r.Err)
		var tree []string
		_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if st, err := os.Lstat(path); err == nil {
				name, _ := filepath.Rel(dir, path)
				tree = append(tree, st.Mode().String()+" "+name)
			}
			return nil
		})
		return r, tree
	}
	wantSaid, wantTree := answer(real(t))
	said, tree := answer(ours(t))
	if diff := cmp.Diff(wantTree, tree); diff != "" {
		t.Errorf("OpenSSH's server -, ours +\n%s", diff)
	}
	if diff := cmp.Diff(wantSaid, said); diff != "" {
		t.Errorf("OpenSSH's server -, ours +\n%s", diff)
	}
}
