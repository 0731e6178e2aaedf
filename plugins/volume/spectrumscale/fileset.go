package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver/rest"
)

type fileset struct {
	Name   string `json:"filesetName"`
	Config struct {
		Path string `json:"path"` // of the junction; "" or "--" = none
	} `json:"config"`
}

func (s *fileset) linked() bool { return s.Config.Path != "" && s.Config.Path != "--" }

func nameOf(scope string) string { return "berth-" + scope }

func (f *filesystem) filesetPath(scope string) string { return f.at + "/filesets/" + nameOf(scope) }

// inside returns the path at which the cluster links a scope's fileset.
func (f *filesystem) inside(scope string) string { return path.Join(f.top, scope) }

// fileset returns the fileset of a scope, or nil.
func (f *filesystem) fileset(ctx context.Context, scope string) (*fileset, error) {
	var out list
	err := f.client.Get(ctx, f.filesetPath(scope), url.Values{}, &out)
	switch {
	case absent(err), err == nil && len(out.Filesets) == 0:
		return nil, nil
	case err != nil:
		return nil, err
	}
	s := &out.Filesets[0]
	if s.linked() && path.Clean(s.Config.Path) != f.inside(scope) {
		return nil, status.Errorf(codes.FailedPrecondition, "fileset %s is linked at %s instead of %s", s.Name, s.Config.Path, f.inside(scope))
	}
	return s, nil
}

// seen is fileset for a GUI with outdated data: if a directory exists but no fileset is listed, it
// refreshes the GUI first.
func (f *filesystem) seen(ctx context.Context, scope string) (*fileset, error) {
	s, err := f.fileset(ctx, scope)
	if err != nil || s != nil {
		return s, err
	}
	d, err := f.OpenTree(scope)
	if status.Code(err) == codes.NotFound {
		return nil, nil
	}
	if err == nil {
		err = d.Close()
	}
	if err == nil {
		err = f.refresh(ctx)
	}
	if err != nil {
		return nil, err
	}
	return f.fileset(ctx, scope)
}

// made returns an error unless the fileset exists and is linked, for calls on existing scopes.
func (f *filesystem) made(ctx context.Context, scope string) error {
	s, err := f.seen(ctx, scope)
	if err == nil && (s == nil || !s.linked()) {
		return status.Errorf(codes.NotFound, "the file system has no fileset %s", nameOf(scope))
	}
	return err
}

// make creates and links a scope's fileset, or completes an interrupted creation.
func (f *filesystem) make(ctx context.Context, scope string) error {
	have, err := f.seen(ctx, scope)
	if err != nil || have != nil && have.linked() {
		return err
	}
	if d, err := f.OpenTree(scope); err == nil {
		d.Close()
		return status.Errorf(codes.FailedPrecondition, "%s is a plain directory, and only a fileset has limits", scope)
	} else if status.Code(err) != codes.NotFound {
		return err
	}
	var failed error
	if have != nil {
		failed = f.change(ctx, http.MethodPost, f.filesetPath(scope)+"/link", map[string]string{"path": f.inside(scope)})
	} else {
		space := "root"
		if f.options.Independent {
			space = "new"
		}
		failed = f.change(ctx, http.MethodPost, f.at+"/filesets", map[string]string{
			"filesetName": nameOf(scope), "path": f.inside(scope), "owner": "root:root", "permissions": "755",
			"inodeSpace": space, "comment": "a quota scope of Berth",
		})
	}
	// Another proxy may have created it, or an earlier response was lost.
	if err := f.refresh(ctx); err != nil {
		return err
	}
	if failed != nil && f.made(ctx, scope) != nil {
		return fmt.Errorf("make fileset: %w", failed)
	}
	return rest.Poll(ctx, "fileset "+nameOf(scope)+" to appear", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		d, err := f.OpenTree(scope)
		if err == nil {
			if err = d.Close(); err == nil {
				err = f.made(ctx, scope)
			}
		}
		if status.Code(err) == codes.NotFound {
			return false, nil
		}
		return err == nil, err
	})
}

// unmake unlinks and deletes a scope's empty fileset.
func (f *filesystem) unmake(ctx context.Context, scope string, have *fileset) error {
	if have.linked() {
		failed := f.change(ctx, http.MethodDelete, f.filesetPath(scope)+"/link", nil)
		now, err := f.fileset(ctx, scope)
		if err != nil || now == nil {
			return err
		}
		if failed != nil && now.linked() {
			return fmt.Errorf("unlink fileset: %w", failed)
		}
	}
	failed := f.change(ctx, http.MethodDelete, f.filesetPath(scope), nil)
	if err := f.refresh(ctx); err != nil {
		return err
	}
	if failed != nil && !absent(failed) {
		if now, err := f.fileset(ctx, scope); now != nil || err != nil {
			return fmt.Errorf("delete fileset: %w", failed)
		}
	}
	return rest.Poll(ctx, "fileset "+nameOf(scope)+" to go", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		now, err := f.fileset(ctx, scope)
		return now == nil, err
	})
}
