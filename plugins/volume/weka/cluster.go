package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

const base = "/api/v2"

// filesystem is one open volume.
type filesystem struct {
	*driver.Mount
	client  *rest.Client
	options options
	at      string // of the file system in the API
	release string
	reason  string // why there are no limits
}

// info is the cluster's information about a file system.
type info struct {
	UID       string `json:"uid"`
	Name      string `json:"name"`
	Status    string `json:"status"`
	Ready     bool   `json:"is_ready"`
	Total     int64  `json:"total_budget"`
	Used      int64  `json:"used_total"`
	Available int64  `json:"available_total"`
}

// login returns a session with an access token, using the last refresh token if there is one.
func login(o options) rest.Auth {
	return rest.NewLogin(func(ctx context.Context, c *rest.Client, old *rest.Session) (*rest.Session, error) {
		q := rest.Request{Method: http.MethodPost, Path: base + "/login", Anonymous: true, Again: true}
		if old != nil && old.Refresh != "" {
			q.Path, q.Body = q.Path+"/refresh", map[string]string{"refresh_token": old.Refresh}
		} else {
			password, err := c.Secret(o.Password)
			if err != nil {
				return nil, err
			}
			q.Body = map[string]string{"username": o.Username, "password": password, "org": o.Organization}
		}
		var out struct {
			Data struct {
				Access  string `json:"access_token"`
				Refresh string `json:"refresh_token"`
				Seconds int64  `json:"expires_in"`
			} `json:"data"`
		}
		if err := c.JSON(ctx, q, &out); err != nil {
			return nil, err
		}
		s := &rest.Session{Header: http.Header{"Authorization": {"Bearer " + out.Data.Access}}, Refresh: out.Data.Refresh}
		if out.Data.Seconds > 0 {
			s.Expires = time.Now().Add(time.Duration(out.Data.Seconds) * time.Second)
		}
		return s, nil
	})
}

// explain finds the class and the text of an error.
func explain(r *rest.Response) (code, message string) {
	var body struct {
		Message string `json:"message"`
		Data    struct {
			Class string `json:"exceptionClass"`
			Text  string `json:"exceptionText"`
		} `json:"data"`
	}
	_ = json.Unmarshal(r.Body, &body) // the body may not be JSON
	if body.Message == "" {
		body.Message = body.Data.Text
	}
	return body.Data.Class, body.Message
}

func open(ctx context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	client, err := rest.New(o.Options, login(o))
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "options: %v", err)
	}
	client.Explain = explain
	f := &filesystem{Mount: m, client: client, options: o}
	if err := f.open(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return f, nil
}

func (f *filesystem) open(ctx context.Context) error {
	cluster, err := get[struct {
		Release string `json:"release"`
	}](ctx, f, base+"/cluster", nil)
	if err != nil {
		return err
	}
	f.release = cluster.Release
	all, err := get[[]info](ctx, f, base+"/fileSystems", url.Values{"name": {f.options.Filesystem}})
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Name == f.options.Filesystem {
			f.at = base + "/fileSystems/" + url.PathEscape(one.UID)
		}
	}
	if f.at == "" {
		return status.Errorf(codes.FailedPrecondition, "the cluster has no file system %q that user %q can see", f.options.Filesystem, f.options.Username)
	}
	if !resolves(f.release) {
		f.reason = "no limits: WEKA " + f.release + " cannot report a directory's inode; 4.3 can"
		return nil
	}
	if _, err := f.resolve(ctx, ""); err != nil {
		return fmt.Errorf("path %s: %w", f.options.Path, err)
	}
	for _, err := range f.quotas(ctx) {
		if err == nil {
			break // one is enough to show the permission
		}
		if code := status.Code(driver.Error("", err)); code == codes.Unavailable || ctx.Err() != nil {
			return err
		}
		f.reason = "no limits: " + status.Convert(driver.Error("", err)).Message()
	}
	return nil
}

// resolves reports whether a release has resolvePath. It reports true for a release that cannot be
// parsed.
func resolves(release string) bool {
	first, rest, _ := strings.Cut(release, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	minor, merr := strconv.Atoi(second)
	return err != nil || merr != nil || major > 4 || major == 4 && minor >= 3
}

// get returns the data of a response.
func get[T any](ctx context.Context, f *filesystem, path string, q url.Values) (T, error) {
	var out struct {
		Data T `json:"data"`
	}
	err := f.client.Get(ctx, path, q, &out)
	return out.Data, err
}

// Traits implements driver.Volume.
func (f *filesystem) Traits() driver.Traits {
	if f.reason != "" {
		return driver.Traits{Enforcement: pb.Enforcement_NONE}
	}
	return driver.Traits{Enforcement: pb.Enforcement_HARD}
}

// Close implements driver.Volume.
func (f *filesystem) Close() error {
	f.client.Close()
	return nil
}
