package volumetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var processChecks = []Check{
	{"kill", "after kill -9, a new process finds every scope and limit unchanged", killed},
	{"kill-midway", "a process that is killed while it creates scopes leaves no scope that the next one cannot complete", killedMidway},
	{"cancel", "cancelled calls block no other call, and do no harm", cancelled},
	{"deadline", "a call ends with its deadline, as DEADLINE_EXCEEDED, and the next is served", deadline},
	{"many-calls", "200 calls of all kinds at once are all served", manyCalls},
	{"sigterm", "SIGTERM ends the process within 5 s", sigterm},
	{"secrets", "the contents of secret files are in no log line, argument, variable or error", secrets},
	{"frugal", "it stays below 256 MiB", frugal},
}

// end kills a process and waits for its exit.
func end(c *volume.Client) error {
	if err := syscall.Kill(c.Pid(), syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-c.Done():
		return nil
	case <-time.After(startTime):
		return fmt.Errorf("the process is still there %v after kill -9", startTime)
	}
}

func killed(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if has(r, pb.Capability_QUOTA_BYTES) {
		if err := set(ctx, c, id, bytesOf(1<<30)); err != nil {
			return err
		}
	}
	before, err := c.GetScope(ctx, ref(id))
	if err != nil {
		return err
	}
	if err := end(c); err != nil {
		return err
	}
	next, _, err := b.open(ctx)
	if err != nil {
		return err
	}
	return same(ctx, next, before)
}

// same checks that a scope has not changed.
func same(ctx context.Context, c *volume.Client, before *pb.Scope) error {
	after, err := c.GetScope(ctx, ref(before.Scope))
	if err != nil {
		return err
	}
	if after.Path != before.Path || after.GetLimit().String() != before.GetLimit().String() {
		return fmt.Errorf("scope was %v and is %v", before, after)
	}
	return nil
}

func killedMidway(ctx context.Context, b *bench) error {
	var limit *pb.Limit
	for round := range 5 {
		c, r, err := b.open(ctx)
		if err != nil {
			return err
		}
		if has(r, pb.Capability_QUOTA_BYTES) {
			limit = bytesOf(1 << 30)
		}
		ids := make([]string, 16)
		for i := range ids {
			ids[i] = b.reserve()
		}
		request := func(id string) *pb.ScopeRequest {
			return &pb.ScopeRequest{Volume: volumeName, Scope: id, Limit: limit}
		}
		var wg sync.WaitGroup
		made := make([]bool, len(ids))
		for i, id := range ids {
			wg.Go(func() {
				_, err := c.CreateScope(ctx, request(id))
				made[i] = err == nil
			})
		}
		time.Sleep(time.Duration(round*round) * time.Millisecond) // at an arbitrary point of the call
		if err := end(c); err != nil {
			return err
		}
		wg.Wait()
		next, _, err := b.open(ctx)
		if err != nil {
			return err
		}
		for i, id := range ids {
			if made[i] {
				if _, err := next.GetScope(ctx, ref(id)); err != nil {
					return fmt.Errorf("an existing scope: %w", err)
				}
			}
			s, err := next.CreateScope(ctx, request(id))
			if err != nil {
				return fmt.Errorf("made again after the kill: %w", err)
			}
			if err := sameLimit(limit, s.GetLimit()); err != nil {
				return fmt.Errorf("made again after the kill: %w", err)
			}
			if _, err := next.DeleteScope(ctx, ref(id)); err != nil {
				return err
			}
		}
	}
	return nil
}

func cancelled(ctx context.Context, b *bench) error {
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	for i := range 20 {
		gone, cancel := context.WithCancel(ctx)
		if i%2 == 0 {
			cancel()
		} else {
			time.AfterFunc(time.Duration(i)*200*time.Microsecond, cancel)
		}
		_, err := c.GetScope(gone, ref(id))
		if err == nil && i%2 == 0 {
			cancel()
			return errors.New("a cancelled call succeeded")
		}
		other := b.reserve()
		_, _ = c.CreateScope(gone, &pb.ScopeRequest{Volume: volumeName, Scope: other})
		cancel()
	}
	for _, id := range b.scopes { // also those that a cancelled call may have created
		soon, cancel := context.WithTimeout(ctx, startTime)
		_, err := c.CreateScope(soon, &pb.ScopeRequest{Volume: volumeName, Scope: id})
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func deadline(ctx context.Context, b *bench) error {
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	for range 10 {
		short, cancel := context.WithTimeout(ctx, time.Nanosecond)
		_, err := c.GetScope(short, ref(id))
		cancel()
		if err := want("a call without time", err, codes.DeadlineExceeded); err != nil {
			return err
		}
	}
	if took := time.Since(began); took > startTime {
		return fmt.Errorf("10 calls without time took %v", took)
	}
	_, err = c.GetScope(ctx, ref(id))
	return err
}

func manyCalls(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	errs := make([]error, 200)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16) // the proxy's limit of concurrent calls
	for i := range errs {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			switch {
			case i%4 == 1:
				_, errs[i] = c.Health(ctx, this())
			case i%4 == 2 && has(r, pb.Capability_CAPACITY):
				_, errs[i] = c.Capacity(ctx, this())
			case i%4 == 3 && has(r, pb.Capability_QUOTA_BYTES):
				_, errs[i] = c.SetScopeLimit(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id, Limit: bytesOf(1 << 30)})
			default:
				_, errs[i] = c.GetScope(ctx, ref(id))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func sigterm(ctx context.Context, b *bench) error {
	c, _, _, err := b.scope(ctx)
	if err != nil {
		return err
	}
	return suite.Terminates(c.Process, startTime)
}

func secrets(ctx context.Context, b *bench) error {
	given, err := b.given()
	if err != nil {
		return err
	}
	found := map[string]string{}
	for name, value := range given {
		path, _ := value.(string)
		if !strings.HasSuffix(name, "_file") || path == "" {
			continue
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o007 != 0 {
			continue // a certificate, which is not secret
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if text := strings.TrimSpace(string(raw)); len(text) >= 4 {
			found[name] = text
		}
	}
	if len(found) == 0 {
		return suite.Skip("it is tested without secrets")
	}
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	said := []string{}
	for _, err := range []error{
		func() error { _, err := c.GetScope(ctx, ref(b.reserve())); return err }(),
		func() error { _, err := c.GetScope(ctx, ref("nonsense")); return err }(),
		func() error {
			_, err := c.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id})
			return err
		}(),
	} {
		said = append(said, fmt.Sprint(err))
	}
	h, err := c.Health(ctx, this())
	if err != nil {
		return err
	}
	places := map[string]string{"an error": strings.Join(said, "\n"), "its health": h.String(), "its description": c.Description.String()}
	for _, f := range []string{"cmdline", "environ"} {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", c.Pid(), f))
		if err != nil {
			return err
		}
		places["its "+f] = string(raw)
	}
	if err := c.Close(); err != nil { // waits until everything is logged
		return err
	}
	places["its log"] = b.log.String()
	for option, secret := range found {
		for place, text := range places {
			if strings.Contains(text, secret) {
				b.log.Forget() // the report must not contain the secrets either
				return fmt.Errorf("the secret in %s is in %s", option, place)
			}
		}
	}
	return suite.Note(fmt.Sprintf("%d secrets", len(found)))
}

func frugal(ctx context.Context, b *bench) error {
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	for range 50 {
		if _, err := c.GetScope(ctx, ref(id)); err != nil {
			return err
		}
	}
	n, err := suite.Frugal(c.Process)
	if err != nil {
		return err
	}
	return suite.Note(fmt.Sprintf("%d MiB", n))
}
