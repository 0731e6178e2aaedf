package session

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

// pseudoTerminal returns a terminal and a function that reads what was written to it.
func pseudoTerminal(t *testing.T) (tty *os.File, shown func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(master) // returns an error once the other end is closed
		text <- string(all)
	}()
	return tty, func() string {
		tty.Close()
		defer master.Close()
		return <-text
	}
}

// The output of a container does not reach the clipboard, the title or the screen of a user who
// reads its log on a terminal.
func TestOutputOnATerminal(t *testing.T) {
	const evil = "\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x07\x1b[2J\x1b[Hred: \x1b[31mred\x1b[0m\n"
	for name, c := range map[string]struct {
		flag string
		want string
	}{
		"calm": {"--quiet", "red: \x1b[31mred\x1b[0m"},
		"raw":  {"--raw", "\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x07\x1b[2J\x1b[Hred"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t)
			cl.log = evil
			tty, shown := pseudoTerminal(t)
			env := map[string]string{"BERTH_TOKEN": "x", "BERTH_URL": cl.URL}
			a := cli.New(strings.NewReader(""), tty, io.Discard, func(k string) string { return env[k] })
			a.Now = func() time.Time { return clitest.Now }
			code := a.Main(t.Context(), []string{"run", c.flag, "img", "--", "x"}, RunCommand(a))
			got := shown()
			if code != 0 || !strings.Contains(got, c.want) || c.flag != "--raw" && strings.Contains(got, "52;c") {
				t.Errorf("code %d, the terminal shows %q", code, got)
			}
		})
	}
}
