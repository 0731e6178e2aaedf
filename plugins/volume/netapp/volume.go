package main

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// flexvol is one open volume.
type flexvol struct {
	*driver.Mount
	client  *rest.Client
	options options
	uuid    string
	version string
	reason  string // why there are no limits
	restart sync.Mutex
}

// info is the array's information about the volume.
type info struct {
	UUID  string `json:"uuid"`
	State string `json:"state"`
	NAS   struct {
		Path string `json:"path"`
	} `json:"nas"`
	Space struct {
		Size      int64 `json:"size"`
		Used      int64 `json:"used"`
		Available int64 `json:"available"`
	} `json:"space"`
	Files struct {
		Maximum int64 `json:"maximum"`
		Used    int64 `json:"used"`
	} `json:"files"`
	Quota struct {
		State string `json:"state"` // off, on, initializing, corrupt, mixed
	} `json:"quota"`
}

func open(ctx context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	client, err := rest.New(o.Options, rest.Basic{User: o.Username, Password: o.Password})
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "options: %v", err)
	}
	f := &flexvol{Mount: m, client: client, options: o}
	if err := f.open(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return f, nil
}

func (f *flexvol) open(ctx context.Context) error {
	var cluster struct {
		Version struct {
			Full string `json:"full"`
		} `json:"version"`
	}
	if err := f.client.Get(ctx, "/api/cluster", query("fields", "version"), &cluster); err != nil {
		return err
	}
	f.version = cluster.Version.Full
	var found struct {
		Records []info `json:"records"`
	}
	q := query("name", f.options.Volume, "svm.name", f.options.SVM, "fields", "uuid,state,nas.path,quota.state")
	if err := f.client.Get(ctx, "/api/storage/volumes", q, &found); err != nil {
		return err
	}
	if len(found.Records) == 0 {
		return status.Errorf(codes.FailedPrecondition, "the array has no volume %q on svm %q", f.options.Volume, f.options.SVM)
	}
	v := found.Records[0]
	f.uuid = v.UUID
	if v.NAS.Path != "" {
		if err := f.Exported(v.NAS.Path); err != nil {
			return err
		}
	}
	if err := f.prepareQuotas(ctx, v.Quota.State); err != nil {
		if code := status.Code(driver.Error("", err)); code == codes.Unavailable || ctx.Err() != nil {
			return err
		}
		f.reason = "no limits: " + status.Convert(driver.Error("", err)).Message()
	}
	return nil
}

// query returns parameters from pairs of names and values.
func query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q
}

// waits is how many seconds the array waits for a change before it responds that a job continues.
const waits = "15"

// change requests a change and returns when it is done, after waiting for the job that the response
// may name. All changes here can be repeated safely.
func (f *flexvol) change(ctx context.Context, method, path string, body any) error {
	r, err := f.client.Do(ctx, rest.Request{Method: method, Path: path, Query: query("return_timeout", waits), Body: body, Again: true})
	if err != nil || r.Status != http.StatusAccepted {
		return err
	}
	var accepted struct {
		Job struct {
			UUID string `json:"uuid"`
		} `json:"job"`
	}
	if err := r.Decode(&accepted); err != nil || accepted.Job.UUID == "" {
		return err
	}
	return f.wait(ctx, accepted.Job.UUID)
}

// wait waits for the end of a job.
func (f *flexvol) wait(ctx context.Context, job string) error {
	var failed error
	err := rest.Poll(ctx, "job "+job, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		var j struct {
			State   string `json:"state"` // queued, running, paused, success, failure, …
			Message string `json:"message"`
			Code    int64  `json:"code"`
			Error   struct {
				Message string `json:"message"`
				Code    string `json:"code"`
			} `json:"error"`
		}
		if err := f.client.Get(ctx, "/api/cluster/jobs/"+job, query("fields", "state,message,code,error"), &j); err != nil {
			return false, err
		}
		if j.State != "failure" {
			return j.State == "success", nil
		}
		if j.Error.Code == "" {
			j.Error.Code, j.Error.Message = strconv.FormatInt(j.Code, 10), j.Message
		}
		failed = f.client.Failed(job, j.Error.Code, j.Error.Message)
		return true, nil
	})
	if err != nil {
		return err
	}
	return failed
}

// all returns the items of all pages of a list.
func all[T any](ctx context.Context, f *flexvol, path string, q url.Values) func(yield func(T, error) bool) {
	type page struct {
		Records []T `json:"records"`
		Links   struct {
			Next struct {
				Href string `json:"href"`
			} `json:"next"`
		} `json:"_links"`
	}
	next := func(p *page, _ *rest.Response) (*rest.Request, error) {
		if p.Links.Next.Href == "" {
			return nil, nil
		}
		r, err := f.client.Link(p.Links.Next.Href)
		return &r, err
	}
	return rest.All(ctx, f.client, rest.Request{Path: path, Query: q}, func(p *page) []T { return p.Records }, next)
}

// Traits implements driver.Volume.
func (f *flexvol) Traits() driver.Traits {
	if f.reason != "" {
		return driver.Traits{Enforcement: pb.Enforcement_NONE}
	}
	return driver.Traits{Enforcement: pb.Enforcement_HARD, Inodes: f.options.FileLimits}
}

// Close implements driver.Volume.
func (f *flexvol) Close() error {
	f.client.Close()
	return nil
}
