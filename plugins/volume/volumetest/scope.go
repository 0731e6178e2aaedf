package volumetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var scopeChecks = []Check{
	{"scope-life", "a scope is created as a directory of its name, is found, and does not exist after deletion", scopeLife},
	{"scope-mode", "a scope's directory has the mode 0755, whatever the umask", scopeMode},
	{"scope-idempotent", "creating again changes nothing, the limit included; deleting again is a success", scopeIdempotent},
	{"scope-concurrent", "32 concurrent creations create one scope", scopeConcurrent},
	{"scope-many", "16 scopes that are created and deleted concurrently are all created and all deleted", scopeMany},
	{"scope-recreated", "a new scope with the name of a deleted one is empty and has no limit", scopeRecreated},
	{"scope-unknown", "reading or limiting an unknown scope is NOT_FOUND", scopeUnknown},
	{"scope-names", "a name that is not a scope's is INVALID_ARGUMENT and creates nothing", scopeNames},
	{"scope-not-empty", "deleting a scope in which anything remains is FAILED_PRECONDITION and removes nothing", scopeNotEmpty},
	{"scope-file", "a file with the name of a scope is not a scope", scopeFile},
	{"scope-link", "a symbolic link with the name of a scope is not followed", scopeLink},
	{"scope-list", "ListScopes returns the scopes that were created, each once, and no deleted ones", scopeList},
}

func scopeLife(ctx context.Context, b *bench) error {
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	s, err := c.GetScope(ctx, ref(id))
	if err != nil {
		return err
	}
	st, err := os.Lstat(b.at(s.Path))
	if err != nil {
		return err
	}
	if s.Scope != id || s.Path != id || !st.IsDir() {
		return fmt.Errorf("scope %v at %v", s, st)
	}
	if s.GetLimit() != nil && (s.Limit.Bytes != nil || s.Limit.Inodes != nil) {
		return fmt.Errorf("limits %v, none were asked for", s.Limit)
	}
	if _, err := c.DeleteScope(ctx, ref(id)); err != nil {
		return err
	}
	return b.gone(ctx, c, id)
}

// gone checks that nothing remains of a scope.
func (b *bench) gone(ctx context.Context, c *volume.Client, id string) error {
	if _, err := os.Lstat(b.at(id)); !os.IsNotExist(err) {
		return fmt.Errorf("after deletion of the scope its directory: %v", err)
	}
	_, err := c.GetScope(ctx, ref(id))
	return want("after deletion", err, codes.NotFound)
}

func scopeMode(ctx context.Context, b *bench) error {
	old := unix.Umask(0o077) // inherited by the plugin
	c, _, err := b.open(ctx)
	unix.Umask(old)
	if err != nil {
		return err
	}
	id, err := b.create(ctx, c, nil)
	if err != nil {
		return err
	}
	st, err := os.Stat(b.at(id))
	if err == nil && st.Mode().Perm() != 0o755 {
		err = fmt.Errorf("mode %v", st.Mode())
	}
	return err
}

func scopeIdempotent(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.at(id, "file"), []byte("x"), 0o644); err != nil {
		return err
	}
	q := &pb.ScopeRequest{Volume: volumeName, Scope: id}
	if has(r, pb.Capability_QUOTA_BYTES) {
		q.Limit = bytesOf(64 << 20)
	}
	s, err := c.CreateScope(ctx, q)
	if err != nil {
		return fmt.Errorf("again: %w", err)
	}
	if s.GetLimit() != nil && s.Limit.Bytes != nil {
		return fmt.Errorf("creating again set the limit %v", s.Limit)
	}
	if err := os.Remove(b.at(id, "file")); err != nil {
		return fmt.Errorf("creating again: %w", err)
	}
	for range 2 {
		if _, err := c.DeleteScope(ctx, ref(id)); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
	}
	return nil
}

func scopeConcurrent(ctx context.Context, b *bench) error {
	c, r, err := b.open(ctx)
	if err != nil {
		return err
	}
	q := &pb.ScopeRequest{Volume: volumeName, Scope: b.reserve()}
	if has(r, pb.Capability_QUOTA_BYTES) {
		q.Limit = bytesOf(64 << 20)
	}
	errs := make([]error, 32)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			var s *pb.Scope
			if s, errs[i] = c.CreateScope(ctx, q); errs[i] == nil && s.GetLimit().GetBytes() != q.GetLimit().GetBytes() {
				errs[i] = fmt.Errorf("a creation answers %v", s)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if _, err := c.DeleteScope(ctx, ref(q.Scope)); err != nil {
		return err
	}
	return b.gone(ctx, c, q.Scope)
}

func scopeMany(ctx context.Context, b *bench) error {
	c, _, err := b.open(ctx)
	if err != nil {
		return err
	}
	ids := make([]string, 16)
	for i := range ids {
		ids[i] = b.reserve()
	}
	each := func(what string, f func(id string) error) error {
		errs := make([]error, len(ids))
		var wg sync.WaitGroup
		for i, id := range ids {
			wg.Go(func() {
				if err := f(id); err != nil {
					errs[i] = fmt.Errorf("%s: %w", what, err)
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	if err := each("create", func(id string) error {
		_, err := c.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id})
		return err
	}); err != nil {
		return err
	}
	if err := each("made", func(id string) error { _, err := os.ReadDir(b.at(id)); return err }); err != nil {
		return err
	}
	if err := each("delete", func(id string) error { _, err := c.DeleteScope(ctx, ref(id)); return err }); err != nil {
		return err
	}
	return each("deleted", func(id string) error { return b.gone(ctx, c, id) })
}

func scopeRecreated(ctx context.Context, b *bench) error {
	c, r, err := b.open(ctx)
	if err != nil {
		return err
	}
	var limit *pb.Limit
	if has(r, pb.Capability_QUOTA_BYTES) {
		limit = bytesOf(64 << 20)
	}
	id, err := b.create(ctx, c, limit)
	if err != nil {
		return err
	}
	if _, err := c.DeleteScope(ctx, ref(id)); err != nil {
		return err
	}
	s, err := c.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id})
	if err != nil {
		return err
	}
	if s.GetLimit() != nil && s.Limit.Bytes != nil {
		return fmt.Errorf("the deleted scope's limit came back: %v", s.Limit)
	}
	if entries, err := os.ReadDir(b.at(id)); err != nil || len(entries) > 0 {
		return fmt.Errorf("%d entries in a new scope (%v)", len(entries), err)
	}
	return nil
}

func scopeUnknown(ctx context.Context, b *bench) error {
	c, r, err := b.open(ctx)
	if err != nil {
		return err
	}
	_, err = c.GetScope(ctx, ref(b.reserve()))
	errs := []error{want("get", err, codes.NotFound)}
	if limited(r) {
		id := b.reserve()
		_, err = c.SetScopeLimit(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id})
		errs = append(errs, want("limit", err, codes.NotFound))
		if _, err := os.Lstat(b.at(id)); !os.IsNotExist(err) {
			errs = append(errs, fmt.Errorf("limiting an unknown scope made its directory (%v)", err))
		}
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
	id := "0123456789abcdef0123456789abcdef"
	var errs []error
	for _, name := range []string{"", "..", "../" + id, "/" + id, id + "/x", id[:31], id + "0", "A" + id[1:], id[:31] + "\x00", id[:31] + "ü", ".", " " + id[1:], strings.Repeat("a", 5000)} {
		_, err := c.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: name})
		errs = append(errs, want(fmt.Sprintf("create %.40q", name), err, codes.InvalidArgument))
		_, err = c.DeleteScope(ctx, ref(name))
		errs = append(errs, want(fmt.Sprintf("delete %.40q", name), err, codes.InvalidArgument))
		_, err = c.GetScope(ctx, ref(name))
		errs = append(errs, want(fmt.Sprintf("get %.40q", name), err, codes.InvalidArgument))
	}
	after, err := os.ReadDir(b.mount)
	if len(after) != len(before) {
		errs = append(errs, fmt.Errorf("the mount had %d entries and has %d", len(before), len(after)))
	}
	return errors.Join(append(errs, err)...)
}

func scopeNotEmpty(ctx context.Context, b *bench) error {
	c, _, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	makers := map[string]func(path string) error{
		"a file":         func(p string) error { return os.WriteFile(p, []byte("x"), 0o644) },
		".hidden":        func(p string) error { return os.WriteFile(p, nil, 0o644) },
		"a directory":    func(p string) error { return os.Mkdir(p, 0o755) },
		"a link":         func(p string) error { return os.Symlink("/nowhere", p) },
		"ab/cd/a folder": func(p string) error { return os.MkdirAll(p, 0o755) },
		"\xff\n no text": func(p string) error { return os.WriteFile(p, nil, 0o644) },
	}
	for name, made := range makers {
		at := b.at(id, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), made(at)); err != nil {
			if name[0] == 0xff || errors.Is(err, unix.EOPNOTSUPP) { // the file system supports only text in names, or no links
				continue
			}
			return err
		}
		_, err := c.DeleteScope(ctx, ref(id))
		if err := want(fmt.Sprintf("delete with %q", name), err, codes.FailedPrecondition); err != nil {
			return err
		}
		if _, err := os.Lstat(at); err != nil {
			return fmt.Errorf("after the refusal: %w", err)
		}
		if _, err := c.GetScope(ctx, ref(id)); err != nil {
			return fmt.Errorf("after the refusal: %w", err)
		}
		if err := b.empty(id); err != nil {
			return err
		}
	}
	return nil
}

func scopeFile(ctx context.Context, b *bench) error {
	c, _, err := b.open(ctx)
	if err != nil {
		return err
	}
	id := b.reserve()
	if err := os.WriteFile(b.at(id), []byte("x"), 0o644); err != nil {
		return suite.Skip("no file can be made there: " + err.Error())
	}
	defer os.Remove(b.at(id))
	if _, err := c.GetScope(ctx, ref(id)); err == nil {
		return errors.New("a file is a scope")
	}
	_, err = c.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id})
	if err := want("create", err, codes.FailedPrecondition, codes.AlreadyExists); err != nil {
		return err
	}
	if raw, err := os.ReadFile(b.at(id)); err != nil || string(raw) != "x" {
		return fmt.Errorf("the file is %q now (%v)", raw, err)
	}
	return nil
}

func scopeLink(ctx context.Context, b *bench) error {
	c, r, err := b.open(ctx)
	if err != nil {
		return err
	}
	id, target := b.reserve(), filepath.Join(b.dir, "target")
	if err := os.Mkdir(target, 0o700); err != nil {
		return err
	}
	if err := os.Symlink(target, b.at(id)); err != nil {
		return suite.Skip("no link can be made there: " + err.Error())
	}
	defer os.Remove(b.at(id))
	if _, err := c.GetScope(ctx, ref(id)); err == nil {
		return errors.New("what a link leads to is a scope")
	}
	if _, err := c.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id}); err == nil {
		return errors.New("what a link leads to became a scope")
	}
	if limited(r) {
		if _, err := c.SetScopeLimit(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id, Limit: bytesOf(1 << 30)}); err == nil && has(r, pb.Capability_QUOTA_BYTES) {
			return errors.New("what a link leads to was limited")
		}
	}
	_, _ = c.DeleteScope(ctx, ref(id)) // it may refuse or remove the link
	st, err := os.Stat(target)
	if err != nil || st.Mode().Perm() != 0o700 {
		return fmt.Errorf("the link's target was changed: %v (%v)", st, err)
	}
	return nil
}

// listed returns how often each scope is in the list.
func listed(ctx context.Context, c *volume.Client) (map[string]int, error) {
	s, err := c.ListScopes(ctx, this())
	if err != nil {
		return nil, err
	}
	seen := map[string]int{}
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return seen, nil
		}
		if err != nil {
			return nil, err
		}
		if m.Path != m.Scope {
			return nil, fmt.Errorf("scope %v", m)
		}
		seen[m.Scope]++
	}
}

func scopeList(ctx context.Context, b *bench) error {
	c, r, err := b.open(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_LIST_SCOPES) {
		return suite.Skip("no LIST_SCOPES")
	}
	before, err := listed(ctx, c)
	if err != nil {
		return err
	}
	var made []string
	for range 5 {
		id, err := b.create(ctx, c, nil)
		if err != nil {
			return err
		}
		made = append(made, id)
	}
	deleted, kept := made[0], made[1:]
	if _, err := c.DeleteScope(ctx, ref(deleted)); err != nil {
		return err
	}
	return b.eventually(ctx, func() error {
		seen, err := listed(ctx, c)
		if err != nil {
			return err
		}
		for _, id := range kept {
			if seen[id] != 1 {
				return fmt.Errorf("scope %s is listed %d times", id, seen[id])
			}
		}
		if seen[deleted] != 0 {
			return fmt.Errorf("scope %s was deleted and is listed", deleted)
		}
		if len(seen) != len(before)+len(kept) {
			return fmt.Errorf("%d scopes are listed, %d were before and %d were made", len(seen), len(before), len(kept))
		}
		return nil
	})
}
