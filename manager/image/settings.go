package image

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/project"
	"github.com/berthhq/berth/ent/registry"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/remote"
	"github.com/berthhq/berth/internal/report"
)

// RegistrySettings are settings of a registry that createRegistry and updateRegistry share. Those
// that are nil keep their value.
type RegistrySettings struct {
	Mirrors      []RegistryMirrorInput // nil: unchanged
	Proxy        *string
	Certificates *string
	Repositories []string // names and patterns with *
	ScanEvery    *int     // in seconds; 0: never
	TagPolicy    *registry.TagPolicy
	LazyStart    *bool       // sessions start before their image is complete
	Projects     []uuid.UUID // that can use it; empty: all
	// SignatureKeys are public keys in PEM, one of which must have signed each image; empty: none must.
	SignatureKeys *string
	SweepEvery    *int // in seconds; 0: never by itself
	Retention     []report.RetentionRule
}

// Limits of settings.
const (
	maxCertificates = 64 << 10
	maxPatterns     = 200
	maxProjects     = 200
	minScanEvery    = 300        // seconds, for the sake of the registry
	maxScanEvery    = 30 * 86400 // seconds
)

func (s *Service) checkSettings(ctx context.Context, in *RegistrySettings) error {
	if in.Proxy != nil && *in.Proxy != "" {
		if err := naming.Line("proxy", *in.Proxy, 512); err != nil {
			return err
		}
		if _, err := remote.ProxyURL(*in.Proxy); err != nil {
			return problem.Invalid("proxy", "must be a URL such as http://proxy.example:3128, without a user name or a password").Because(err)
		}
	}
	if err := checkMirrors(in.Mirrors); err != nil {
		return err
	}
	if in.Certificates != nil && *in.Certificates != "" {
		if len(*in.Certificates) > maxCertificates {
			return problem.TooLarge("certificates", maxCertificates)
		}
		if _, err := remote.Certificates(*in.Certificates); err != nil || strings.ContainsRune(*in.Certificates, 0) {
			return problem.Invalid("certificates", "must be certificates in PEM, which begin with -----BEGIN CERTIFICATE-----")
		}
		if strings.Contains(*in.Certificates, "PRIVATE KEY") {
			return problem.Invalid("certificates", "contains a private key; certificates suffice")
		}
	}
	if every := in.ScanEvery; every != nil && *every != 0 && (*every < minScanEvery || *every > maxScanEvery) {
		return problem.Invalid("scanEvery", "%d seconds is not 0 or between %d and %d", *every, minScanEvery, maxScanEvery).
			WithLimit(fmt.Sprintf("%d..%d", minScanEvery, maxScanEvery))
	}
	if in.TagPolicy != nil {
		if err := registry.TagPolicyValidator(*in.TagPolicy); err != nil {
			return problem.Invalid("tagPolicy", "must be PINNED or FOLLOW")
		}
	}
	if in.SignatureKeys != nil {
		if err := checkSignatureKeys(*in.SignatureKeys); err != nil {
			return err
		}
	}
	if err := in.checkRetention(); err != nil {
		return err
	}
	if err := checkRepositories(in.Repositories); err != nil {
		return err
	}
	return s.checkProjects(ctx, in.Projects)
}

func checkRepositories(list []string) error {
	if len(list) > maxPatterns {
		return problem.Invalid("repositories", "has %d entries, more than %d", len(list), maxPatterns).WithLimit(fmt.Sprint(maxPatterns))
	}
	for _, p := range list {
		// A pattern is a name in which * stands for a part of it.
		if len(p) > maxPath || !pathRule.MatchString(strings.ReplaceAll(p, "*", "a")) {
			return problem.Invalid("repositories", "%.80q is not the name of a repository, such as team/tool, or a pattern, such as team/*", p)
		}
	}
	return nil
}

func (s *Service) checkProjects(ctx context.Context, list []uuid.UUID) error {
	if len(list) > maxProjects {
		return problem.Invalid("projects", "has %d entries, more than %d", len(list), maxProjects).WithLimit(fmt.Sprint(maxProjects))
	}
	if len(list) == 0 {
		return nil
	}
	n, err := s.client.Project.Query().Where(project.IDIn(list...)).Count(ctx)
	if err != nil {
		return fmt.Errorf("look up projects: %w", err)
	}
	slices.SortFunc(list, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	if n != len(slices.Compact(slices.Clone(list))) {
		return problem.NotFound("project").WithField("projects")
	}
	return nil
}

// set changes the fields that are not nil.
func (in *RegistrySettings) set(m *ent.RegistryMutation) {
	if in.Proxy != nil {
		m.SetProxy(*in.Proxy)
	}
	if in.Certificates != nil {
		m.SetCertificates(*in.Certificates)
	}
	if in.Repositories != nil {
		m.SetRepositories(in.Repositories)
	}
	if in.ScanEvery != nil {
		m.SetScanEvery(*in.ScanEvery)
		m.ClearScanDueAt() // the first one is due now
	}
	if in.TagPolicy != nil {
		m.SetTagPolicy(*in.TagPolicy)
	}
	if in.LazyStart != nil {
		m.SetLazyStart(*in.LazyStart)
	}
	if in.SignatureKeys != nil {
		m.SetSignatureKeys(*in.SignatureKeys)
	}
	if in.SweepEvery != nil {
		m.SetSweepEvery(*in.SweepEvery)
		m.ClearSweepDueAt()
	}
	if in.Retention != nil {
		m.SetRetention(in.Retention)
	}
	if in.Projects != nil {
		m.ClearProjects()
		m.AddProjectIDs(in.Projects...)
	}
}

// matches reports whether a repository is one of a list of names and patterns. * stands for any
// characters, also a slash.
func matches(list []string, repository string) bool {
	for _, p := range list {
		if !strings.Contains(p, "*") {
			if p == repository {
				return true
			}
			continue
		}
		// path.Match stops at a slash, which a repository has and this rule ignores.
		flat := strings.NewReplacer("/", "\x01")
		if ok, err := path.Match(flat.Replace(p), flat.Replace(repository)); err == nil && ok {
			return true
		}
	}
	return false
}
