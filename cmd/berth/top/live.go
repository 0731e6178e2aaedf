package top

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
)

// Sequences of a terminal: another screen, so that the former one comes back, the beginning of the screen, and the rest of a line or
// of the screen.
const (
	enter    = "\x1b[?1049h\x1b[?25l"
	leave    = "\x1b[?25h\x1b[?1049l"
	home     = "\x1b[H"
	lineRest = "\x1b[K\r\n"
	rest     = "\x1b[J"
)

// keyOrders are the orders by their keys.
var keyOrders = map[byte]string{'c': "cpu", 'm': "mem", 'a': "acc", 'n': "name"}

// live shows the loads until a person presses q or Ctrl-C. An error of a reading stays on the screen until one succeeds, unless the
// first fails.
func live(ctx context.Context, a *cli.App, fd int, o options, read func(context.Context) (screen, error)) error {
	first, err := read(ctx)
	if err != nil {
		return err
	}
	in, _ := cli.Terminal(a.In)
	before, err := term.MakeRaw(in)
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	fmt.Fprint(a.Out, enter)
	defer func() {
		fmt.Fprint(a.Out, leave)
		_ = term.Restore(in, before)
	}()
	keys := make(chan byte)
	go readKeys(a.In.(*os.File), keys)
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	now, failed := first, error(nil)
	for {
		now.order(o.sort)
		if err := draw(a, fd, o, now, failed); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case k := <-keys:
			if k == 'q' || k == 'Q' || k == 3 || k == 4 { // Ctrl-C and Ctrl-D
				return nil
			}
			if by, ok := keyOrders[k]; ok {
				o.sort = by
			}
		case <-tick.C:
			next, err := read(ctx)
			if failed = err; err == nil {
				now = next
			}
		}
	}
}

func readKeys(from *os.File, to chan<- byte) {
	b := make([]byte, 1)
	for {
		n, err := from.Read(b)
		if err != nil {
			to <- 'q'
			return
		}
		if n == 1 {
			to <- b[0]
		}
	}
}

// draw writes one screen, cut to the size of the terminal.
func draw(a *cli.App, fd int, o options, s screen, failed error) error {
	width, height, err := term.GetSize(fd)
	if err != nil {
		return err
	}
	p := a.Printer()
	var body bytes.Buffer
	p.W, p.Width = &body, width
	if err := p.Write(s.table(a.Now())); err != nil {
		return err
	}
	noun := "sessions"
	if s.agents {
		noun = "agents"
	}
	title := fmt.Sprintf("%s  %d %s, by %s. Keys: c m a n sort, q quit", a.Now().Format("15:04:05"), len(s.Rows), noun, o.sort)
	if failed != nil {
		title = "No answer: " + cli.OneLine(failed)
	}
	lines := append([]string{output.Cut(title, width), ""}, strings.Split(strings.TrimRight(body.String(), "\n"), "\n")...)
	if len(s.Rows) == 0 {
		lines = append(lines, "No running "+noun+".")
	}
	lines = lines[:min(len(lines), max(1, height-1))]
	_, err = fmt.Fprint(a.Out, home+strings.Join(lines, lineRest)+lineRest+rest)
	return err
}
