package volumetest

import (
	"context"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc/codes"

	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var limitChecks = []Check{
	{"limit", "no limit, zero and a number are three different things and survive a restart", limits},
	{"limit-initial", "a scope is created with its limit", limitInitial},
	{"limit-inodes", "the number of files is limited apart from the bytes, and unset apart", limitInodes},
	{"limit-refused", "a limit that cannot be enforced is INVALID_ARGUMENT and changes nothing", limitRefused},
	{"limit-apart", "the limit of one scope is not another's", limitApart},
	{"limit-below", "a limit below the usage is enforced or refused, and the usage stays correct", limitBelow},
}

// set sets a scope's limit and reads it back.
func set(ctx context.Context, c *volume.Client, id string, l *pb.Limit) error {
	for _, get := range []func() (*pb.Scope, error){
		func() (*pb.Scope, error) {
			return c.SetScopeLimit(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id, Limit: l})
		},
		func() (*pb.Scope, error) { return c.GetScope(ctx, ref(id)) },
	} {
		s, err := get()
		if err != nil {
			return err
		}
		if err := sameLimit(l, s.GetLimit()); err != nil {
			return err
		}
	}
	return nil
}

// sameLimit compares limits; a product may round bytes up to its block size.
func sameLimit(want, got *pb.Limit) error {
	const block = 1 << 20
	w, g := want.GetBytes(), got.GetBytes()
	unset := func(l *pb.Limit) (bytes, inodes bool) { return l == nil || l.Bytes == nil, l == nil || l.Inodes == nil }
	wb, wi := unset(want)
	gb, gi := unset(got)
	if wb != gb || wi != gi || g < w || g > w+block || (w == 0) != (g == 0) || want.GetInodes() != got.GetInodes() {
		return fmt.Errorf("the limit is %v, want %v", shown(got), shown(want))
	}
	return nil
}

func shown(l *pb.Limit) string {
	text := func(n *int64) string {
		if n == nil {
			return "none"
		}
		return fmt.Sprint(*n)
	}
	if l == nil {
		l = &pb.Limit{}
	}
	return fmt.Sprintf("bytes %s, inodes %s", text(l.Bytes), text(l.Inodes))
}

func limits(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_QUOTA_BYTES) {
		return suite.Skip("no QUOTA_BYTES")
	}
	zero := "zero can be enforced"
	for _, l := range []*pb.Limit{bytesOf(1 << 30), nil, bytesOf(0), {}, bytesOf(2 << 30), bytesOf(1 << 30)} {
		err := set(ctx, c, id, l)
		if l != nil && l.Bytes != nil && *l.Bytes == 0 && want("", err, codes.InvalidArgument) == nil {
			zero = "zero is refused" // allowed for a product that cannot express it
			continue
		}
		if err != nil {
			return fmt.Errorf("after setting %s: %w", shown(l), err)
		}
	}
	if err := c.Close(); err != nil { // a new process must return it too
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
	if err := sameLimit(bytesOf(1<<30), s.GetLimit()); err != nil {
		return err
	}
	return suite.Note(zero)
}

func limitInitial(ctx context.Context, b *bench) error {
	c, r, err := b.open(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_QUOTA_BYTES) {
		return suite.Skip("no QUOTA_BYTES")
	}
	id, err := b.create(ctx, c, bytesOf(1<<30))
	if err != nil {
		return err
	}
	s, err := c.GetScope(ctx, ref(id))
	if err != nil {
		return err
	}
	return sameLimit(bytesOf(1<<30), s.GetLimit())
}

func limitInodes(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_QUOTA_INODES) {
		return suite.Skip("no QUOTA_INODES")
	}
	n := int64(1000)
	all := []*pb.Limit{{Inodes: &n}, nil}
	if has(r, pb.Capability_QUOTA_BYTES) {
		both := bytesOf(1 << 30)
		both.Inodes = &n
		all = append(all, both, bytesOf(1<<30), &pb.Limit{Inodes: &n})
	}
	for _, l := range all {
		if err := set(ctx, c, id, l); err != nil {
			return fmt.Errorf("after setting %s: %w", shown(l), err)
		}
	}
	return nil
}

func limitRefused(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	count := int64(1000)
	negative := int64(-1)
	bad := []*pb.Limit{{Bytes: &negative}, {Inodes: &negative}}
	if !has(r, pb.Capability_QUOTA_INODES) {
		bad = append(bad, &pb.Limit{Inodes: &count})
	}
	if !has(r, pb.Capability_QUOTA_BYTES) {
		bad = append(bad, bytesOf(1<<30))
	}
	code := codes.InvalidArgument
	if !limited(r) {
		code = codes.Unimplemented
	}
	var errs []error
	for _, l := range bad {
		_, err := c.SetScopeLimit(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id, Limit: l})
		errs = append(errs, want("set "+shown(l), err, code))
		made := b.reserve()
		_, err = c.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: made, Limit: l})
		errs = append(errs, want("create with "+shown(l), err, codes.InvalidArgument))
		if _, err := os.Lstat(b.at(made)); !os.IsNotExist(err) {
			errs = append(errs, fmt.Errorf("create with %s was refused, and made a directory (%v)", shown(l), err))
		}
	}
	s, err := c.GetScope(ctx, ref(id))
	if err == nil {
		err = sameLimit(nil, s.GetLimit())
	}
	return errors.Join(append(errs, err)...)
}

func limitApart(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_QUOTA_BYTES) {
		return suite.Skip("no QUOTA_BYTES")
	}
	other, err := b.create(ctx, c, bytesOf(1<<30))
	if err != nil {
		return err
	}
	if err := set(ctx, c, id, bytesOf(2<<30)); err != nil {
		return err
	}
	if err := set(ctx, c, id, nil); err != nil {
		return err
	}
	s, err := c.GetScope(ctx, ref(other))
	if err != nil {
		return err
	}
	return sameLimit(bytesOf(1<<30), s.GetLimit())
}

func limitBelow(ctx context.Context, b *bench) error {
	c, r, id, err := b.scope(ctx)
	if err != nil {
		return err
	}
	if !has(r, pb.Capability_QUOTA_BYTES) {
		return suite.Skip("no QUOTA_BYTES")
	}
	const size = 8 << 20
	if err := fill(b.at(id, "data"), size); err != nil {
		return err
	}
	how := "it is enforced"
	if err := set(ctx, c, id, bytesOf(4<<20)); err != nil {
		if werr := want("", err, codes.InvalidArgument, codes.FailedPrecondition, codes.ResourceExhausted); werr != nil {
			return err
		}
		how = "it is refused"
	}
	if err := b.uses(ctx, c, id, size); err != nil {
		return err
	}
	if err := set(ctx, c, id, nil); err != nil { // or some products could not empty the scope
		return err
	}
	return suite.Note(how)
}
