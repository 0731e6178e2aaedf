package image

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent/scanresult"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/remote"
)

// list finds the tags to read. Those that this scan has read before a crash are left out.
func (s *scan) list(ctx context.Context) error {
	if err := s.retry(ctx, listTimeout, s.from.Ping); err != nil && !errdefs.IsNotFound(err) {
		return s.unlisted(err)
	}
	repositories, err := s.repositories(ctx)
	if err != nil {
		return s.unlisted(err)
	}
	for _, repository := range repositories {
		if err := s.listOne(ctx, repository); err != nil {
			return s.unlisted(err)
		}
		if len(s.listed) > maxTags {
			return problem.Precondition("registry %s has more than %d tags in the repositories that are read; name fewer repositories", s.registry.Name, maxTags)
		}
	}
	return nil
}

func (s *scan) unlisted(err error) error {
	return fmt.Errorf("scan registry: %w", explain(s.registry, "its list of images", err))
}

// repositories returns those that the settings name; all that the registry lists if they name none.
func (s *scan) repositories(ctx context.Context) ([]string, error) {
	if len(s.only) > 0 {
		return s.only, nil
	}
	patterns := s.registry.Repositories
	var names, open []string
	for _, p := range patterns {
		if !strings.Contains(p, "*") {
			names = append(names, p)
		} else {
			open = append(open, p)
		}
	}
	projects := map[string]bool{}
	for _, p := range open {
		// A Harbor lists each project by itself, also for those who cannot see the others.
		project, _, _ := strings.Cut(p, "/")
		if s.from.IsHarbor() && project != p && !strings.Contains(project, "*") {
			projects[project] = true
		}
	}
	catalogue := len(patterns) == 0
	for _, p := range open {
		project, _, _ := strings.Cut(p, "/")
		catalogue = catalogue || !projects[project]
	}
	var all []string
	for project := range projects {
		err := s.retry(ctx, listTimeout, func(ctx context.Context) error {
			found, err := s.from.Project(ctx, project)
			all = append(all, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if catalogue {
		err := s.retry(ctx, listTimeout, func(ctx context.Context) error {
			found, err := s.from.Repositories(ctx)
			all = append(all, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, r := range all {
		if len(patterns) == 0 || matches(open, r) {
			names = append(names, r)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// listOne lists the tags of a repository. One that cannot be listed is a result of its own, and its
// images stay as they are.
func (s *scan) listOne(ctx context.Context, repository string) error {
	var tags []remote.Tag
	err := s.retry(ctx, listTimeout, func(ctx context.Context) (err error) {
		tags, err = s.from.Tags(ctx, repository)
		return err
	})
	switch {
	case err == nil:
	case ctx.Err() != nil, errdefs.IsUnavailable(err):
		return err
	case errdefs.IsNotFound(err) && (len(s.registry.Repositories) == 0 || len(s.only) > 0): // all of its tags were deleted
		return nil
	default:
		s.failed[repository] = !errdefs.IsNotFound(err)
		s.listed[repository] = true
		s.refusals = append(s.refusals, s.refused(repository, "", err))
		return nil
	}
	for i := range tags {
		tags[i].Name = repository + ":" + tags[i].Name
	}
	lost, err := s.orphans(ctx, s.registry, namesOf(tags))
	if err != nil {
		return err
	}
	for _, tag := range tags {
		s.listed[tag.Name] = true
		if lost[tag.Name] {
			s.refusals = append(s.refusals, result{name: tag.Name, outcome: scanresult.OutcomeSkipped, message: orphaned})
			continue
		}
		if old := s.before[tag.Name]; old != nil && old.ScanID == s.state.Scan {
			s.done++
			s.counts[old.Outcome]++
			continue
		}
		s.tags = append(s.tags, tag)
	}
	return nil
}

func namesOf(tags []remote.Tag) []string {
	names := make([]string, len(tags))
	for i, t := range tags {
		names[i] = t.Name
	}
	return names
}

// repositoryOf returns the part of a name before its tag.
func repositoryOf(name string) string {
	repository, _, _ := strings.Cut(name, ":")
	return repository
}

// looked reports whether this scan has looked for a name.
func (s *scan) looked(name string) bool {
	repository := repositoryOf(name)
	if s.failed[repository] || len(s.only) > 0 && !slices.Contains(s.only, repository) {
		return false
	}
	return len(s.registry.Repositories) == 0 || matches(s.registry.Repositories, repository)
}

// summary describes the results for the task.
func (s *scan) summary() string {
	var parts []string
	for _, o := range []scanresult.Outcome{
		scanresult.OutcomeNew, scanresult.OutcomeMoved, scanresult.OutcomeUnchanged,
		scanresult.OutcomeSkipped, scanresult.OutcomeFailed, scanresult.OutcomeGone,
	} {
		if n := s.counts[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", o, n))
		}
	}
	if len(parts) == 0 {
		return "no tags"
	}
	return strings.Join(parts, ", ")
}
