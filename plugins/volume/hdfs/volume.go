package main

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/driver/rest"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// filesystem is one open volume.
type filesystem struct {
	*driver.Mount
	nodes       *namenodes
	options     options
	replication int64
	reason      string // why there are no limits
}

func open(ctx context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	nodes, err := connect(o)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "options: %v", err)
	}
	f := &filesystem{Mount: m, nodes: nodes, options: o, replication: o.Replication}
	if err := f.open(ctx); err != nil {
		nodes.close()
		return nil, err
	}
	return f, nil
}

func (f *filesystem) open(ctx context.Context) error {
	if err := f.look(ctx); err != nil {
		return err
	}
	if f.replication == 0 {
		n, err := f.nodes.replication(ctx)
		switch {
		case err != nil && rest.IsStatus(err, http.StatusBadRequest):
			return status.Error(codes.FailedPrecondition, "this Hadoop does not report the number of replicas: set the option replication")
		case err != nil:
			return fmt.Errorf("replication: %w", err)
		case n < 1:
			return status.Errorf(codes.FailedPrecondition, "the name node reports %d replicas of files", n)
		}
		f.replication = n
	}
	return f.mayLimit(ctx)
}

// look checks that the directory exists in HDFS.
func (f *filesystem) look(ctx context.Context) error {
	var out struct {
		Status struct {
			Type string `json:"type"`
		} `json:"FileStatus"`
	}
	err := f.nodes.do(ctx, http.MethodGet, "GETFILESTATUS", f.options.Path, nil, &out)
	if rest.IsStatus(err, http.StatusNotFound) || err == nil && out.Status.Type != "DIRECTORY" {
		return status.Errorf(codes.FailedPrecondition, "path: HDFS has no directory %s", f.options.Path)
	}
	return err
}

// nowhere is a directory that is never created.
const nowhere = driver.Own + "/no-such-directory"

// mayLimit checks whether quotas can be set, by setting one on a directory that does not exist.
// With permission, the response is that it does not exist, and nothing changes.
func (f *filesystem) mayLimit(ctx context.Context) error {
	err := f.setQuota(ctx, nowhere, none, none)
	switch {
	case err == nil || rest.IsStatus(err, http.StatusNotFound):
		return nil
	case rest.IsStatus(err, http.StatusBadRequest):
		f.reason = "no limits: this Hadoop cannot set quotas over WebHDFS; 3.3 can"
	case status.Code(driver.Error("", err)) == codes.PermissionDenied:
		f.reason = "no limits: user " + strconv.Quote(f.options.Username) + " is not a superuser of HDFS: " + status.Convert(driver.Error("", err)).Message()
	default:
		return fmt.Errorf("quotas: %w", err)
	}
	return nil
}

// inside returns the path in HDFS of a path below the mount.
func (f *filesystem) inside(p string) string { return path.Join(f.options.Path, p) }

// Traits implements driver.Volume.
func (f *filesystem) Traits() driver.Traits {
	if f.reason != "" {
		return driver.Traits{Enforcement: pb.Enforcement_NONE}
	}
	return driver.Traits{Enforcement: pb.Enforcement_HARD, Inodes: true}
}

// Health implements driver.Volume.
func (f *filesystem) Health(ctx context.Context) (*pb.HealthReport, error) {
	h, err := f.Mount.Health(ctx)
	if err != nil || h.State == pb.HealthReport_UNAVAILABLE {
		return h, err
	}
	h.Metadata["replication"] = strconv.FormatInt(f.replication, 10)
	if f.reason != "" {
		driver.Worse(h, pb.HealthReport_DEGRADED, f.reason)
	}
	if err := f.look(ctx); err != nil {
		driver.Worse(h, pb.HealthReport_DEGRADED, "WebHDFS does not answer: "+status.Convert(driver.Error("", err)).Message())
		return h, nil
	}
	if f.reason != "" {
		return h, nil
	}
	if err := f.setQuota(ctx, nowhere, none, none); err != nil && !rest.IsStatus(err, http.StatusNotFound) {
		driver.Worse(h, pb.HealthReport_DEGRADED, "limits cannot be set now: "+status.Convert(driver.Error("", err)).Message())
	}
	return h, nil
}

// Close implements driver.Volume.
func (f *filesystem) Close() error {
	f.nodes.close()
	return nil
}
