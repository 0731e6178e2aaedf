package main

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Retries of operations that another machine can block.
const (
	attempts = 10
	pause    = 50 * time.Millisecond
)

// share is a volume that is mounted by SMB.
type share struct {
	*driver.Remote
	options options

	// limits protects the files with the limits of scopes: a server refuses to replace a file that
	// is being read.
	limits sync.RWMutex

	mu    sync.Mutex
	tried bool
	lacks []string // set after the test
}

// look tests the abilities of the mount once.
func (s *share) look() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tried {
		return s.lacks, nil
	}
	var err error
	if s.lacks, err = probe(s.Mount); err != nil {
		return nil, err
	}
	s.tried = true
	return s.lacks, nil
}

// CreateScope implements driver.Volume. It returns an error if one file could replace another with
// a similar name, unless the operator accepted that.
func (s *share) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	lacking, err := s.look()
	if err != nil {
		return err
	}
	if slices.Contains(lacking, noCase) && !s.accepts(noCase) {
		return status.Error(codes.FailedPrecondition, lacks[noCase])
	}
	return s.replace(ctx, func() error { return s.Remote.CreateScope(ctx, scope, limit) })
}

// SetScopeLimit implements driver.Volume.
func (s *share) SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error {
	return s.replace(ctx, func() error { return s.Remote.SetScopeLimit(ctx, scope, limit) })
}

// DeleteScope implements driver.Volume.
func (s *share) DeleteScope(ctx context.Context, scope string) error {
	return s.replace(ctx, func() error { return s.Remote.DeleteScope(ctx, scope) })
}

// GetScope implements driver.Volume.
func (s *share) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	s.limits.RLock()
	defer s.limits.RUnlock()
	return s.Remote.GetScope(ctx, scope)
}

// replace calls f, which replaces a file, and retries while another proxy is reading the file.
func (s *share) replace(ctx context.Context, f func() error) error {
	s.limits.Lock()
	defer s.limits.Unlock()
	for n := 1; ; n++ {
		err := f()
		if status.Code(driver.Error("", err)) != codes.PermissionDenied || n == attempts {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// Health implements driver.Volume.
func (s *share) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := s.Remote.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	mounted := s.Mount.Options()
	h.Metadata["server"] = s.Source()
	for _, name := range []string{"vers", "sec", "cache", "username", "file_mode", "dir_mode"} {
		if v := mounted[name]; v != "" {
			h.Metadata[name] = v
		}
	}
	reasons := warnings(mounted)
	if err := s.Writable(); err != nil {
		reasons = append(reasons, "the server refuses to let uid "+strconv.Itoa(os.Geteuid())+" write ("+status.Convert(err).Message()+")")
	}
	lacking, err := s.look()
	if err != nil {
		reasons = append(reasons, "the abilities of the mount could not be tested: "+status.Convert(err).Message())
	}
	h.Metadata["lacks"] = strings.Join(lacking, " ")
	for _, what := range lacking {
		if !s.accepts(what) {
			reasons = append(reasons, lacks[what])
		}
	}
	if len(reasons) > 0 {
		driver.Worse(h, pb.HealthReport_DEGRADED, strings.Join(reasons, "; "))
	}
	return h, nil
}

// warnings returns reasons not to store users' files on a mount with such options.
func warnings(mounted map[string]string) []string {
	var out []string
	has := func(name string) bool { _, ok := mounted[name]; return ok }
	if has("soft") {
		out = append(out, "mounted soft: data that a slow server has not accepted is lost; mount hard")
	}
	if has("nobrl") {
		out = append(out, "mounted nobrl: locks apply only on this machine, so two storage proxies could write one upload")
	}
	if mounted["cache"] == "loose" {
		out = append(out, "mounted cache=loose: other machines' writes may not be seen; mount cache=strict")
	}
	if mounted["vers"] == "1.0" {
		out = append(out, "SMB 1 is not safe; mount vers=3.1.1")
	}
	if has("dynperm") {
		out = append(out, "mounted dynperm: modes are forgotten with the cache")
	}
	return out
}
