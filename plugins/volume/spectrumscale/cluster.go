package main

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

const base = "/scalemgmt/v2"

// filesystem is one open volume.
type filesystem struct {
	*driver.Mount
	client  *rest.Client
	options options
	at      string // of the file system in the API
	version string
	top     string // where the cluster has mounted the file system
	reason  string // why there are no limits
}

// info is the cluster's information about a file system.
type info struct {
	Name  string `json:"name"`
	Mount struct {
		Point  string `json:"mountPoint"`
		Status string `json:"status"`
	} `json:"mount"`
	Quota struct {
		Enforced   string `json:"quotasEnforced"` // "user;group;fileset", "none"
		PerFileset bool   `json:"perfilesetQuotas"`
	} `json:"quota"`
}

func open(ctx context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	client, err := rest.New(o.Options, rest.Basic{User: o.Username, Password: o.Password})
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "options: %v", err)
	}
	f := &filesystem{Mount: m, client: client, options: o, at: base + "/filesystems/" + url.PathEscape(o.Filesystem)}
	if err := f.open(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return f, nil
}

func (f *filesystem) open(ctx context.Context) error {
	var about struct {
		Info struct {
			Version string `json:"serverVersion"`
		} `json:"info"`
	}
	if err := f.client.Get(ctx, base+"/info", nil, &about); err != nil {
		return err
	}
	f.version = about.Info.Version
	fs, err := f.ask(ctx)
	if absent(err) {
		return status.Errorf(codes.FailedPrecondition, "the cluster has no file system %q", f.options.Filesystem)
	}
	if err != nil {
		return err
	}
	f.top = path.Join(fs.Mount.Point, f.options.Path)
	switch {
	case fs.Mount.Point == "":
		return status.Errorf(codes.FailedPrecondition, "the cluster does not report where file system %q is mounted", f.options.Filesystem)
	case !strings.Contains(fs.Quota.Enforced, "fileset"):
		f.reason = "no limits: the file system does not enforce quotas of filesets (mmchfs -Q yes)"
	case fs.Quota.PerFileset:
		f.reason = "no limits: the file system has quotas of users in each fileset, with which its interface refuses those of filesets (mmchfs --noperfileset-quota)"
	}
	return nil
}

func (f *filesystem) ask(ctx context.Context) (info, error) {
	var out struct {
		Filesystems []info `json:"filesystems"`
	}
	err := f.client.Get(ctx, f.at, nil, &out)
	if err == nil && len(out.Filesystems) == 0 {
		err = status.Error(codes.Internal, "the cluster does not report the file system")
	}
	if err != nil {
		return info{}, err
	}
	return out.Filesystems[0], nil
}

// absent reports whether an error means that a name in the request's path is unknown, which is a
// bad request in this API.
func absent(err error) bool {
	return rest.IsStatus(err, http.StatusNotFound) ||
		rest.IsStatus(err, http.StatusBadRequest) && strings.Contains(err.Error(), "Invalid value in '")
}

// all returns the items of all pages of a list.
func all[T any](ctx context.Context, f *filesystem, p string, q url.Values, items func(*list) *[]T) iter.Seq2[T, error] {
	next := func(l *list, _ *rest.Response) (*rest.Request, error) {
		if l.Paging.Next == "" {
			return nil, nil
		}
		r, err := f.client.Link(l.Paging.Next)
		return &r, err
	}
	return rest.All(ctx, f.client, rest.Request{Path: p, Query: q}, func(l *list) []T { return *items(l) }, next)
}

// list is a response with filesets or quotas.
type list struct {
	Filesets []fileset `json:"filesets"`
	Quotas   []quota   `json:"quotas"`
	Paging   struct {
		Next string `json:"next"`
	} `json:"paging"`
}

type jobs struct {
	Jobs []struct {
		ID     int64  `json:"jobId"`
		Status string `json:"status"`
		Result struct {
			Stderr []string `json:"stderr"`
		} `json:"result"`
	} `json:"jobs"`
}

// change requests a change, which is a job, and returns when the job has ended. A repetition is
// harmless: the caller detects existing objects.
func (f *filesystem) change(ctx context.Context, method, p string, body any) error {
	var accepted jobs
	if err := f.client.JSON(ctx, rest.Request{Method: method, Path: p, Body: body, Again: true}, &accepted); err != nil {
		return err
	}
	if len(accepted.Jobs) == 0 {
		return status.Errorf(codes.Internal, "%s %s: the cluster accepted it without naming a job", method, p)
	}
	return f.wait(ctx, accepted.Jobs[0].ID)
}

var code = regexp.MustCompile(`\bEFSS[A-Z][0-9]+[A-Z]\b`)

// wait waits for the end of a job.
func (f *filesystem) wait(ctx context.Context, id int64) error {
	name := fmt.Sprintf("job %d", id)
	return rest.Poll(ctx, name, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		var out jobs
		if err := f.client.Get(ctx, fmt.Sprintf("%s/jobs/%d", base, id), url.Values{"fields": {":all:"}}, &out); err != nil {
			return false, err
		}
		if len(out.Jobs) == 0 {
			return false, f.client.Failed(name, "", "the cluster no longer knows it")
		}
		switch j := out.Jobs[0]; j.Status {
		case "COMPLETED", "UNKNOWN": // IBM's own driver treats the second like the first
			return true, nil
		case "FAILED", "CANCELLED", "CANCELLING":
			text := strings.Join(j.Result.Stderr, " ")
			return false, f.client.Failed(name, code.FindString(text), j.Status+": "+text)
		}
		return false, nil
	})
}

// refresh makes the GUI read the filesets; otherwise it does so only periodically.
func (f *filesystem) refresh(ctx context.Context) error {
	q := url.Values{"taskId": {"FILESETS"}, "maxDelay": {"0"}}
	_, err := f.client.Do(ctx, rest.Request{Method: http.MethodPost, Path: base + "/refreshTask/enqueue", Query: q, Again: true})
	return err
}

// Traits implements driver.Volume.
func (f *filesystem) Traits() driver.Traits {
	if f.reason != "" {
		return driver.Traits{Enforcement: pb.Enforcement_NONE}
	}
	return driver.Traits{Enforcement: pb.Enforcement_HARD, Inodes: f.options.FileLimits}
}

// Close implements driver.Volume.
func (f *filesystem) Close() error {
	f.client.Close()
	return nil
}

// Health implements driver.Volume.
func (f *filesystem) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := f.Mount.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	h.Metadata["filesystem"], h.Metadata["scale"] = f.options.Filesystem, f.version
	if f.reason != "" {
		driver.Worse(h, pb.HealthReport_DEGRADED, f.reason)
	}
	fs, err := f.ask(ctx)
	switch {
	case err != nil:
		driver.Worse(h, pb.HealthReport_DEGRADED, "the cluster's GUI does not answer: "+status.Convert(driver.Error("", err)).Message())
	case fs.Mount.Status != "" && fs.Mount.Status != "mounted":
		driver.Worse(h, pb.HealthReport_DEGRADED, "the cluster reports that on its GUI node the file system is "+fs.Mount.Status)
	case f.reason == "" && !strings.Contains(fs.Quota.Enforced, "fileset"):
		driver.Worse(h, pb.HealthReport_DEGRADED, "limits are not enforced: the cluster reports that quotas are enforced for "+fs.Quota.Enforced)
	}
	return h, nil
}
