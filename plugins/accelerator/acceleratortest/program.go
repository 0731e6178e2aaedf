package acceleratortest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

// helpers returns the machine's programs and servers.
func (b *bench) helpers() (programs, both []string, err error) {
	m := b.site.machine
	if m == nil {
		return nil, nil, suite.Skip("no fixture is given")
	}
	programs = slices.Sorted(maps.Keys(m.Commands))
	both = append(slices.Clone(programs), slices.Sorted(maps.Keys(m.Servers))...)
	if len(both) == 0 {
		return nil, nil, suite.Skip("the machine has no programs and no servers")
	}
	return programs, both, b.ownMachine("machine")
}

func programHangs(ctx context.Context, b *bench) error {
	_, names, err := b.helpers()
	if err != nil {
		return err
	}
	c, before, err := b.withDevices(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := b.tree.Hang(name); err != nil {
			return err
		}
	}
	children := follow(c.Pid())
	err = b.answers(ctx, c, before)
	for _, name := range names {
		err = errors.Join(err, b.tree.Heal(name))
	}
	if err == nil {
		err = b.recovers(ctx, c, before)
	}
	seen := children()
	if err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return err
	}
	return gone(ctx, seen)
}

// answers makes the calls of an agent while programs hang. Each must return, with any result,
// before its deadline.
func (b *bench) answers(ctx context.Context, c *accelerator.Client, s *pb.DeviceSnapshot) error {
	look := make(chan error, 1)
	go func() {
		_, err := c.Configure(ctx, b.request())
		look <- err
	}()
	a := all(s, usable(s)[0])
	calls := []struct {
		name string
		call func() error
	}{
		{"Describe", func() error { return c.Ping(ctx) }},
		{"WatchDevices", func() error { _, err := snapshot(ctx, c); return err }},
		{"Unprepare", func() error {
			_, err := c.Unprepare(ctx, &pb.UnprepareRequest{AllocationId: "never seen"})
			return err
		}},
		{"Prepare", func() error { _, err := c.Prepare(ctx, prepare("x", b.dir, a)); return err }},
		{"Preflight", func() error { _, err := c.Preflight(ctx, &pb.PreflightRequest{}); return err }},
	}
	for _, x := range calls {
		if err := x.call(); status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%s while programs hang: %w", x.name, err)
		}
	}
	if err := <-look; status.Code(err) == codes.DeadlineExceeded {
		return fmt.Errorf("configure while programs hang: %w", err)
	}
	if _, err := c.Unprepare(ctx, &pb.UnprepareRequest{AllocationId: "x"}); status.Code(err) == codes.DeadlineExceeded {
		return fmt.Errorf("unprepare while programs hang: %w", err)
	}
	return nil
}

func programFails(ctx context.Context, b *bench) error {
	programs, names, err := b.helpers()
	if err != nil {
		return err
	}
	c, before, err := b.ready(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		ways := map[string]func() error{"fails": func() error { return b.tree.Fail(name, 1, "error: device is busy\n\xff\xfe") }}
		if slices.Contains(programs, name) {
			ways["floods"] = func() error { return b.tree.Flood(name) }
		}
		for way, begin := range ways {
			if err := begin(); err != nil {
				return err
			}
			if c, _, err = b.again(ctx, c); err != nil {
				return fmt.Errorf("%s %s: %w", name, way, err)
			}
			if err := b.tree.Heal(name); err != nil {
				return err
			}
		}
	}
	return b.recovers(ctx, c, before)
}

// recovers waits until the snapshot is the same as before.
func (b *bench) recovers(ctx context.Context, c *accelerator.Client, before *pb.DeviceSnapshot) error {
	ctx, cancel := context.WithTimeout(ctx, 2*timeout)
	defer cancel()
	for {
		_, after, err := b.again(ctx, c)
		if err != nil {
			return fmt.Errorf("healed: %w", err)
		}
		if err = equal("after the repair, the snapshot differs", before, after); err == nil {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// follow collects all descendants of a process until the returned function is called. A process is
// identified by its pid and start time.
func follow(pid int) func() map[string]bool {
	seen := map[string]bool{}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			for p := range descendants(pid) {
				seen[p] = true
			}
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() map[string]bool { close(stop); <-stopped; return seen }
}

func descendants(pid int) map[string]bool {
	children := map[int][]int{}
	started := map[int]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range stats {
		id, parent, start := stat(f)
		children[parent] = append(children[parent], id)
		started[id] = fmt.Sprint(id, " ", start)
	}
	out := map[string]bool{}
	for next := children[pid]; len(next) > 0; next = next[1:] {
		out[started[next[0]]] = true
		next = append(next, children[next[0]]...)
	}
	return out
}

// stat returns the pid, parent and start time of a process, or zero values if it has ended.
func stat(file string) (id, parent int, start string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, ""
	}
	head, rest, _ := strings.Cut(string(raw), " (")
	_, rest, _ = strings.Cut(rest[max(0, strings.LastIndex(rest, ")")):], ") ")
	f := strings.Fields(rest)
	if len(f) < 20 || f[0] == "Z" {
		return 0, 0, ""
	}
	id, _ = strconv.Atoi(head)
	parent, _ = strconv.Atoi(f[1])
	return id, parent, f[19]
}

// gone waits until all of the processes have ended.
func gone(ctx context.Context, seen map[string]bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		var left []string
		for p := range seen {
			id, _, _ := strings.Cut(p, " ")
			if pid, _, start := stat("/proc/" + id + "/stat"); fmt.Sprint(pid, " ", start) == p {
				left = append(left, id)
			}
		}
		if len(left) == 0 {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("processes %s are left", strings.Join(left, ", "))
		}
	}
}
