package main

import (
	"context"
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

// volume is one open volume.
type volume struct {
	*driver.Mount
	walk    *driver.Walker
	client  *rest.Client
	options options
	quotas  string // the path of quotas in the version of the API
	modern  bool   // the API has thresholds_on
	cluster string
	version string
	reason  string // why there are no limits
}

func open(ctx context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	client, err := rest.New(o.Options, login(o))
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "options: %v", err)
	}
	v := &volume{Mount: m, client: client, options: o}
	if err := v.open(ctx); err != nil {
		client.Close()
		return nil, err
	}
	v.walk = driver.NewWalker(m, time.Duration(o.MaxAge)*time.Second)
	return v, nil
}

// login starts a session: a cookie that is valid for hours. Requests with it must have the cluster
// as their Referer and repeat the CSRF token.
func login(o options) *rest.Login {
	return rest.NewLogin(func(ctx context.Context, c *rest.Client, _ *rest.Session) (*rest.Session, error) {
		password, err := c.Secret(o.Password)
		if err != nil {
			return nil, err
		}
		r, err := c.Do(ctx, rest.Request{
			Method: http.MethodPost, Path: "/session/1/session", Anonymous: true, Again: true,
			Body: map[string]any{"username": o.Username, "password": password, "services": []string{"platform", "namespace"}},
		})
		if err != nil {
			return nil, err
		}
		var about struct {
			Absolute int64 `json:"timeout_absolute"` // seconds
		}
		if err := r.Decode(&about); err != nil {
			return nil, err
		}
		s := &rest.Session{Header: http.Header{"Referer": {strings.TrimRight(o.URL, "/")}}}
		for _, k := range r.Cookies() {
			switch k.Name {
			case "isisessid":
				s.Cookies = append(s.Cookies, k)
			case "isicsrf":
				s.Cookies = append(s.Cookies, k)
				s.Header.Set("X-CSRF-Token", k.Value)
			}
		}
		if len(s.Cookies) == 0 {
			return nil, status.Error(codes.Unauthenticated, "the cluster's answer has no session")
		}
		if about.Absolute > 0 {
			s.Expires = time.Now().Add(time.Duration(about.Absolute) * time.Second)
		}
		return s, nil
	})
}

// modernAPI is the first version of the API in which a quota defines its unit of measurement.
const modernAPI = 8

func (v *volume) open(ctx context.Context) error {
	var newest struct {
		Latest string `json:"latest"`
	}
	if err := v.client.Get(ctx, "/platform/latest", nil, &newest); err != nil {
		return err
	}
	n, err := strconv.Atoi(newest.Latest)
	if err != nil {
		return status.Errorf(codes.FailedPrecondition, "the cluster's interface has the version %q", newest.Latest)
	}
	v.quotas, v.modern = "/platform/1/quota/quotas", n >= modernAPI
	if v.modern {
		v.quotas = "/platform/8/quota/quotas"
	}
	if !v.modern && v.options.Measure == "applogicalsize" {
		return status.Errorf(codes.InvalidArgument, "measure: the cluster's interface has the version %d, applogicalsize exists since %d", n, modernAPI)
	}
	var about struct {
		Name  string `json:"name"`
		OneFS struct {
			Release string `json:"release"`
		} `json:"onefs_version"`
	}
	if err := v.client.Get(ctx, "/platform/3/cluster/config", nil, &about); err != nil {
		return err
	}
	v.cluster, v.version = about.Name, about.OneFS.Release
	if err := v.located(ctx); err != nil {
		return err
	}
	v.reason, err = v.unlicensed(ctx)
	return err
}

// located checks that the options refer to the mounted directory.
func (v *volume) located(ctx context.Context) error {
	path := (&url.URL{Path: "/namespace" + v.options.Path}).EscapedPath()
	_, err := v.client.Do(ctx, rest.Request{Method: http.MethodHead, Path: path})
	if rest.IsStatus(err, http.StatusNotFound) {
		return status.Errorf(codes.FailedPrecondition, "the cluster has no directory %s", v.options.Path)
	}
	if err != nil {
		return err
	}
	if !strings.Contains(v.Source(), ":/ifs") { // mounted by another name of the export
		return nil
	}
	return v.Exported(v.options.Path)
}

// unlicensed returns why there are no quotas, or "".
func (v *volume) unlicensed(ctx context.Context) (string, error) {
	var licence struct {
		Status string `json:"status"`
	}
	if err := v.client.Get(ctx, "/platform/5/quota/license", nil, &licence); err != nil {
		return "", err
	}
	switch licence.Status {
	case "Licensed", "Evaluation":
		return "", nil
	}
	return "no limits: the cluster reports that SmartQuotas is " + licence.Status, nil
}

// Traits implements driver.Volume.
func (v *volume) Traits() driver.Traits {
	if v.reason != "" {
		return driver.Traits{Enforcement: pb.Enforcement_NONE}
	}
	return driver.Traits{Enforcement: pb.Enforcement_HARD}
}

// Close implements driver.Volume.
func (v *volume) Close() error {
	v.client.Close()
	return v.walk.Close()
}
