package session

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
)

// lingerTime is how long the session's side can be silent after this side has finished sending: a
// WebSocket cannot be half-closed.
const lingerTime = 15 * time.Second

func forwardCommand(a *cli.App) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:     "forward SESSION [LOCAL:]PORT...",
		Short:   "Forward local ports to a session",
		Long:    "Forward local ports to ports of a session's main kernel, until interrupted.\nLOCAL 0 takes any free port.",
		Example: "  berth session forward my-session 8888\n  berth session forward my-session 9000:8888",
		Args:    cli.Args(2, -1),
	}
	cmd.Flags().StringVar(&address, "address", "127.0.0.1", "local address to listen on")
	return onSession(a, cmd, func(ctx context.Context, c *client.Client, s *client.Session, args []string) error {
		var pairs [][2]int
		for _, text := range args {
			local, remote, err := parsePorts(text)
			if err != nil {
				return err
			}
			pairs = append(pairs, [2]int{local, remote})
		}
		return forward(ctx, a, c, s, address, pairs)
	})
}

func parsePorts(text string) (local, remote int, err error) {
	first, second, both := strings.Cut(text, ":")
	if !both {
		second = first
	}
	local, err1 := strconv.Atoi(first)
	remote, err2 := strconv.Atoi(second)
	if err1 != nil || err2 != nil || local < 0 || local > 65535 || remote < 1 || remote > 65535 {
		return 0, 0, cli.Usagef("%q: write PORT or LOCAL:PORT, with ports from 1 to 65535", text)
	}
	return local, remote, nil
}

func forward(ctx context.Context, a *cli.App, c *client.Client, s *client.Session, address string, pairs [][2]int) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, pair := range pairs {
		l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(pair[0])))
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { l.Close() })
		a.Note("%s goes to port %d of %s; Ctrl-C ends it", l.Addr(), pair[1], s.Name)
		wg.Go(func() { accept(ctx, a, l, c, s.ID, pair[1], &wg) })
	}
	<-ctx.Done()
	return nil
}

func accept(ctx context.Context, a *cli.App, l net.Listener, c *client.Client, session string, port int, wg *sync.WaitGroup) {
	for {
		local, err := l.Accept()
		if err != nil {
			return // closed
		}
		wg.Go(func() {
			defer local.Close()
			remote, err := c.DialPort(ctx, session, port)
			if err != nil {
				if ctx.Err() == nil {
					a.Note("berth: port %d: %s", port, cli.OneLine(err))
				}
				return
			}
			defer remote.Close()
			join(ctx, local, remote)
		})
	}
}

// join copies in both directions until the session's side ends, or until this side has ended and
// the session's side is silent for lingerTime.
func join(ctx context.Context, local, remote net.Conn) {
	stop := context.AfterFunc(ctx, func() { local.Close(); remote.Close() })
	defer stop()
	var sending sync.WaitGroup
	var mu sync.Mutex
	var linger *time.Timer
	sending.Go(func() {
		_, err := io.Copy(remote, local)
		if err != nil && !errors.Is(err, io.EOF) {
			remote.Close()
			return
		}
		mu.Lock()
		defer mu.Unlock()
		linger = time.AfterFunc(lingerTime, func() { remote.Close() })
	})
	_, _ = io.Copy(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		if linger != nil {
			linger.Reset(lingerTime)
		}
		mu.Unlock()
		return local.Write(p)
	}), remote)
	local.Close()
	sending.Wait()
	mu.Lock()
	defer mu.Unlock()
	if linger != nil {
		linger.Stop()
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
