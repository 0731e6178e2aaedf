package volumetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var scopeChecks = []Check{
	{"scope-life", "a scope is made as a directory of its own name, found, and gone after deletion", scopeLife},
	{"scope-idempotent", "creating again changes nothing, the limit included; deleting again is a success", scopeIdempotent},
	{"scope-concurrent", "32 creations at once make one scope", scopeConcurrent},
	{"scope-unknown", "reading or limiting an unknown scope is NOT_FOUND", scopeUnknown},
	{"scope-names", "a name that is no scope is INVALID_ARGUMENT and makes nothing", scopeNames},
	{"scope-not-empty", "deleting a scope with a file or folder is FAILED_PRECONDITION and removes nothing", scopeNotEmpty},
	{"scope-list", "ListScopes gives every scope once", scopeList},
	{"limit", "no limit, zero and a number are three different things and survive a restart", limits},
	{"limit-refused", "a limit that cannot be kept is INVALID_ARGUMENT and changes nothing", limitRefused},
	{"usage", "the usage of a scope reaches what was written, within 1 % or 4 MiB", usage},
}

func newScope() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// withScope opens the volume and makes a scope for the time of f.
func withScope(ctx context.Context, b *bench, f func(*volume.Client, *pb.OpenVolumeResponse, string) error) error {
	c, r, err := b.open(ctx)
	if err != nil {
		return err
	}
	id := newScope()
	if _, err := c.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id}); err != nil {
		return fmt.Errorf("create scope: %w", err)
	}
	err = f(c, r, id)
	// Emptied here, so that a product's volume stays as it was.
	entries, _ := filepath.Glob(filepath.Join(b.mount, id, "*"))
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(e))
	}
	if _, derr := b.clients[len(b.clients)-1].DeleteScope(ctx, ref(id)); derr != nil {
		err = errors.Join(err, fmt.Errorf("delete scope: %w", derr))
	}
	return err
}

func ref(id string) *pb.ScopeRef { return &pb.ScopeRef{Volume: volumeName, Scope: id} }

func scopeLife(ctx context.Context, b *bench) error {
	var at string
	err := withScope(ctx, b, func(c *volume.Client, _ *pb.OpenVolumeResponse, id string) error {
		s, err := c.GetScope(ctx, ref(id))
		if err != nil {
			return err
		}
		at = filepath.Join(b.mount, s.Path)
		st, err := os.Stat(at)
		if err != nil {
			return err
		}
		if s.Scope != id || s.Path != id || !st.IsDir() {
			return fmt.Errorf("scope %v at %v", s, st)
		}
		if st.Mode().Perm() != 0o755 {
			return fmt.Errorf("mode %v, want 0755 whatever the umask", st.Mode())
		}
		if s.Limit.GetBytes() != 0 || s.GetLimit().GetInodes() != 0 {
			return fmt.Errorf("limits %v, none were asked for", s.Limit)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := os.Lstat(at); !os.IsNotExist(err) {
		return fmt.Errorf("after deletion: %v", err)
	}
	_, err = b.clients[0].GetScope(ctx, ref(filepath.Base(at)))
	return want("after deletion", err, codes.NotFound)
}

func scopeIdempotent(ctx context.Context, b *bench) error {
	return withScope(ctx, b, func(c *volume.Client, r *pb.OpenVolumeResponse, id string) error {
		q := &pb.ScopeRequest{Volume: volumeName, Scope: id}
		if has(r, pb.Capability_QUOTA_BYTES) {
			bytes := int64(64 << 20)
			q.Limit = &pb.Limit{Bytes: &bytes}
		}
		s, err := c.CreateScope(ctx, q)
		if err != nil {
			return fmt.Errorf("again: %w", err)
		}
		if s.GetLimit() != nil && s.Limit.Bytes != nil {
			return fmt.Errorf("creating again set the limit %v", s.Limit)
		}
		for range 2 {
			if _, err := c.DeleteScope(ctx, ref(id)); err != nil {
				return fmt.Errorf("delete: %w", err)
			}
		}
		return nil
	})
}

func scopeConcurrent(ctx context.Context, b *bench) error {
	return withScope(ctx, b, func(c *volume.Client, _ *pb.OpenVolumeResponse, id string) error {
		if _, err := c.DeleteScope(ctx, ref(id)); err != nil {
			return err
		}
		errs := make([]error, 32)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = c.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id})
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

func scopeUnknown(ctx context.Context, b *bench) error {
	c, r, err := b.open(ctx)
	if err != nil {
		return err
	}
	_, err = c.GetScope(ctx, ref(newScope()))
	errs := []error{want("get", err, codes.NotFound)}
	if has(r, pb.Capability_QUOTA_BYTES) {
		_, err = c.SetScopeLimit(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: newScope()})
		errs = append(errs, want("limit", err, codes.NotFound))
	}
	return errors.Join(errs...)
}

func scopeNames(ctx context.Context, b *bench) error {
	c, _, err := b.open(ctx)
	if err != nil {
		return err
	}
	before, err := os.ReadDir(b.mount)
	if err != nil {
		return err
	}
	id := newScope()
	var errs []error
	for _, name := range []string{"", "..", "../" + id, "/" + id, id + "/x", id[:31], id + "0", "A" + id[1:], id[:31] + "\x00", id[:31] + "ü", "."} {
		_, err := c.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: name})
		errs = append(errs, want(fmt.Sprintf("create %q", name), err, codes.InvalidArgument))
		_, err = c.DeleteScope(ctx, ref(name))
		errs = append(errs, want(fmt.Sprintf("delete %q", name), err, codes.InvalidArgument))
	}
	after, err := os.ReadDir(b.mount)
	if len(after) != len(before) {
		errs = append(errs, fmt.Errorf("the mount had %d entries and has %d", len(before), len(after)))
	}
	return errors.Join(append(errs, err)...)
}

func scopeNotEmpty(ctx context.Context, b *bench) error {
	return withScope(ctx, b, func(c *volume.Client, _ *pb.OpenVolumeResponse, id string) error {
		for _, name := range []string{"ab/cd/folder/file", ".hidden"} {
			file := filepath.Join(b.mount, id, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("x"), 0o644)); err != nil {
				return err
			}
			_, err := c.DeleteScope(ctx, ref(id))
			if err := want("delete with "+name, err, codes.FailedPrecondition); err != nil {
				return err
			}
			if _, err := os.Stat(file); err != nil {
				return fmt.Errorf("after the refusal: %w", err)
			}
			if err := os.RemoveAll(filepath.Join(b.mount, id, name)); err != nil {
				return err
			}
		}
		return nil
	})
}

func scopeList(ctx context.Context, b *bench) error {
	return withScope(ctx, b, func(c *volume.Client, r *pb.OpenVolumeResponse, id string) error {
		if !has(r, pb.Capability_LIST_SCOPES) {
			return skip("no LIST_SCOPES")
		}
		s, err := c.ListScopes(ctx, &pb.VolumeRef{Volume: volumeName})
		if err != nil {
			return err
		}
		seen := map[string]int{}
		for {
			m, err := s.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			seen[m.Scope]++
		}
		for name, n := range seen {
			if n > 1 {
				return fmt.Errorf("scope %s is listed %d times", name, n)
			}
		}
		if seen[id] != 1 {
			return fmt.Errorf("scope %s is not listed", id)
		}
		return nil
	})
}

func limits(ctx context.Context, b *bench) error {
	return withScope(ctx, b, func(c *volume.Client, r *pb.OpenVolumeResponse, id string) error {
		if !has(r, pb.Capability_QUOTA_BYTES) {
			return skip("no QUOTA_BYTES")
		}
		zero, some := int64(0), int64(1<<30)
		for _, bytes := range []*int64{&some, nil, &zero, &some} {
			q := &pb.ScopeRequest{Volume: volumeName, Scope: id, Limit: &pb.Limit{Bytes: bytes}}
			if bytes == nil {
				q.Limit = nil
			}
			_, err := c.SetScopeLimit(ctx, q)
			if bytes == &zero && want("", err, codes.InvalidArgument) == nil {
				continue // a product that cannot hold zero may say so
			}
			if err != nil {
				return err
			}
			s, err := c.GetScope(ctx, ref(id))
			if err != nil {
				return err
			}
			if err := sameLimit(bytes, s.GetLimit()); err != nil {
				return err
			}
		}
		// A new process knows it too.
		if err := c.Close(); err != nil {
			return err
		}
		next, _, err := b.open(ctx)
		if err != nil {
			return err
		}
		s, err := next.GetScope(ctx, ref(id))
		if err != nil {
			return err
		}
		return sameLimit(&some, s.GetLimit())
	})
}

func sameLimit(want *int64, got *pb.Limit) error {
	var have *int64
	if got != nil {
		have = got.Bytes
	}
	if (want == nil) != (have == nil) || want != nil && *want != *have {
		return fmt.Errorf("limit is %v, want %s", got, text(want))
	}
	return nil
}

func text(n *int64) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

func limitRefused(ctx context.Context, b *bench) error {
	return withScope(ctx, b, func(c *volume.Client, r *pb.OpenVolumeResponse, id string) error {
		negative, count := int64(-1), int64(1000)
		bad := []*pb.Limit{{Bytes: &negative}}
		if !has(r, pb.Capability_QUOTA_INODES) {
			bad = append(bad, &pb.Limit{Inodes: &count})
		}
		var errs []error
		for _, l := range bad {
			_, err := c.SetScopeLimit(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id, Limit: l})
			code := codes.InvalidArgument
			if !has(r, pb.Capability_QUOTA_BYTES) && !has(r, pb.Capability_QUOTA_INODES) {
				code = codes.Unimplemented
			}
			errs = append(errs, want(fmt.Sprintf("limit %v", l), err, code))
		}
		s, err := c.GetScope(ctx, ref(id))
		if err == nil && s.GetLimit() != nil && (s.Limit.Bytes != nil || s.Limit.Inodes != nil) {
			err = fmt.Errorf("a refused limit was kept: %v", s.Limit)
		}
		return errors.Join(append(errs, err)...)
	})
}

// usageDelay bounds how long a product may take to notice what was written.
const usageDelay = time.Minute

func usage(ctx context.Context, b *bench) error {
	return withScope(ctx, b, func(c *volume.Client, _ *pb.OpenVolumeResponse, id string) error {
		const size = 8 << 20
		data := make([]byte, size)
		rand.Read(data)
		file := filepath.Join(b.mount, id, "data")
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
		// A second name is no second file.
		if err := os.Link(file, filepath.Join(b.mount, id, "again")); err != nil {
			return err
		}
		for end := time.Now().Add(usageDelay); ; {
			s, err := c.GetScope(ctx, ref(id))
			if err != nil {
				return err
			}
			if off := s.GetUsedBytes() - size; s.UsedBytes != nil && max(off, -off) <= 4<<20 {
				return nil
			}
			if time.Now().After(end) {
				return fmt.Errorf("usage is %s after %v, %d bytes were written", text(s.UsedBytes), usageDelay, size)
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}
