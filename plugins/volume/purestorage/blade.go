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

// blade is a client of the array, for both modes.
type blade struct {
	client  *rest.Client
	options options
	api     string // "/api/2.12"
	name    string
	version string
	array   bool // rates are those of the array, not of one file system
}

func open(ctx context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	switch {
	case o.Mode == shared && o.Filesystem == "":
		return nil, status.Error(codes.InvalidArgument, "filesystem: must be set in the mode shared")
	case o.Mode == perScope && o.DataAddress == "":
		return nil, status.Error(codes.InvalidArgument, "data_address: must be set in the mode filesystem-per-scope")
	case o.Mode == perScope && o.Filesystem != "":
		return nil, status.Error(codes.InvalidArgument, "filesystem: cannot be set in the mode filesystem-per-scope, where every scope has its own")
	}
	client, err := rest.New(o.Options, login(o))
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "options: %v", err)
	}
	b := &blade{client: client, options: o, array: o.Mode == perScope}
	if err := b.open(ctx); err != nil {
		client.Close()
		return nil, err
	}
	if o.Mode == perScope {
		return &own{Mount: m, blade: b}, nil
	}
	if err := b.located(ctx, m); err != nil {
		client.Close()
		return nil, err
	}
	return &one{Directory: driver.NewDirectory(m, time.Duration(o.MaxAge)*time.Second), blade: b}, nil
}

// login exchanges the long-lived API token for a session.
func login(o options) *rest.Login {
	return rest.NewLogin(func(ctx context.Context, c *rest.Client, _ *rest.Session) (*rest.Session, error) {
		token, err := c.Secret(o.Token)
		if err != nil {
			return nil, err
		}
		r, err := c.Do(ctx, rest.Request{
			Method: http.MethodPost, Path: "/api/login", Anonymous: true, Again: true, Header: http.Header{"Api-Token": {token}},
		})
		if err != nil {
			return nil, err
		}
		session := r.Header.Get("X-Auth-Token")
		if session == "" {
			return nil, status.Error(codes.Unauthenticated, "the array's answer has no session")
		}
		return &rest.Session{Header: http.Header{"X-Auth-Token": {session}}}, nil
	})
}

// items is the common part of all responses.
type items[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"continuation_token"`
}

func (b *blade) open(ctx context.Context) error {
	var known struct {
		Versions []string `json:"versions"`
	}
	if err := b.client.JSON(ctx, rest.Request{Path: "/api/api_version", Anonymous: true}, &known); err != nil {
		return err
	}
	newest := -1
	for _, v := range known.Versions {
		minor, ok := strings.CutPrefix(v, "2.")
		if n, err := strconv.Atoi(minor); ok && err == nil {
			newest = max(newest, n)
		}
	}
	if newest < 0 {
		return status.Errorf(codes.FailedPrecondition, "the array has the interfaces %s, not one of 2", strings.Join(known.Versions, ", "))
	}
	b.api = "/api/2." + strconv.Itoa(newest)
	return b.identify(ctx)
}

func (b *blade) identify(ctx context.Context) error {
	var about items[struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}]
	if err := b.client.Get(ctx, b.api+"/arrays", nil, &about); err != nil {
		return err
	}
	if len(about.Items) > 0 {
		b.name, b.version = about.Items[0].Name, about.Items[0].Version
	}
	return nil
}

// located checks that the options refer to the mounted file system.
func (b *blade) located(ctx context.Context, m *driver.Mount) error {
	f, err := b.find(ctx, b.options.Filesystem)
	if err != nil {
		return err
	}
	if f == nil || f.Destroyed {
		return status.Errorf(codes.FailedPrecondition, "the array has no file system %q", b.options.Filesystem)
	}
	return m.Exported("/" + f.Name)
}

// health adds the array's state to the health of the mount.
func (b *blade) health(ctx context.Context, h *pb.HealthReport) {
	if h.State == pb.HealthReport_UNAVAILABLE {
		return
	}
	h.Metadata["array"], h.Metadata["purity"], h.Metadata["mode"] = b.name, b.version, b.options.Mode
	if err := b.identify(ctx); err != nil {
		h.State = pb.HealthReport_DEGRADED
		reason := "the array's management does not answer: " + status.Convert(driver.Error("", err)).Message()
		h.Reason = strings.TrimPrefix(h.Reason+"; "+reason, "; ")
	}
}

// Capacity implements driver.Sizer. It returns the array's capacity after data reduction.
func (b *blade) Capacity(ctx context.Context) (*pb.CapacityReport, error) {
	var found items[struct {
		Capacity int64 `json:"capacity"`
		Space    struct {
			Physical int64 `json:"total_physical"`
		} `json:"space"`
	}]
	if err := b.client.Get(ctx, b.api+"/arrays/space", nil, &found); err != nil {
		return nil, err
	}
	if len(found.Items) == 0 {
		return nil, driver.Retryable(15*time.Second, "the array does not know its own size at the moment")
	}
	s := found.Items[0]
	return &pb.CapacityReport{TotalBytes: s.Capacity, UsedBytes: s.Space.Physical, AvailableBytes: max(s.Capacity-s.Space.Physical, 0)}, nil
}

// window is the interval of the array's newest values.
const window = 30 * time.Second

// Performance implements driver.Meter.
func (b *blade) Performance(ctx context.Context) (*pb.PerformanceSample, error) {
	var found items[struct {
		Time       int64    `json:"time"` // milliseconds
		Reads      *float64 `json:"reads_per_sec"`
		Writes     *float64 `json:"writes_per_sec"`
		ReadBytes  *float64 `json:"read_bytes_per_sec"`
		WriteBytes *float64 `json:"write_bytes_per_sec"`
		ReadMicro  *float64 `json:"usec_per_read_op"`
		WriteMicro *float64 `json:"usec_per_write_op"`
	}]
	subject, path, q := pb.PerformanceSample_WHOLE_CLUSTER, b.api+"/arrays/performance", url.Values{"protocol": {"nfs"}}
	if !b.array {
		subject, path, q = pb.PerformanceSample_THIS_VOLUME, b.api+"/file-systems/performance", url.Values{"protocol": {"NFS"}, "names": {b.options.Filesystem}}
	}
	if err := b.client.Get(ctx, path, q, &found); err != nil {
		return nil, err
	}
	if len(found.Items) == 0 {
		return nil, driver.Retryable(window, "the array has no sample yet")
	}
	s := found.Items[0]
	return &pb.PerformanceSample{
		Subject: subject, WindowMs: window.Milliseconds(), AsOfUnixMs: s.Time,
		ReadOpsPerSecond: s.Reads, WriteOpsPerSecond: s.Writes, ReadBytesPerSecond: s.ReadBytes, WriteBytesPerSecond: s.WriteBytes,
		ReadLatencyUs: s.ReadMicro, WriteLatencyUs: s.WriteMicro,
	}, nil
}
