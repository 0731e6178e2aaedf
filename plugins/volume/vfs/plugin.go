package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/volumepb"
)

const optionsSchema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "usage_max_age_s": {
      "type": "integer", "minimum": 0, "default": 30,
      "description": "a scope's usage is measured again when it is older than this"
    }
  }
}`

type plugin struct {
	volumepb.UnimplementedVolumeServer

	mu      sync.Mutex
	volumes map[string]*directory
}

func newPlugin() *plugin { return &plugin{volumes: make(map[string]*directory)} }

func (p *plugin) Describe(context.Context, *volumepb.DescribeRequest) (*volumepb.DescribeResponse, error) {
	return &volumepb.DescribeResponse{
		Vendor: "Berth", Backend: "vfs", Version: "1.0.0", OptionsSchema: optionsSchema,
	}, nil
}

func (p *plugin) OpenVolume(_ context.Context, r *volumepb.OpenVolumeRequest) (*volumepb.OpenVolumeResponse, error) {
	if r.Volume == "" || !filepath.IsAbs(r.MountPath) {
		return nil, status.Error(codes.InvalidArgument, "volume and an absolute mount_path are required")
	}
	maxAge, err := options(r.OptionsJson)
	if err != nil {
		return nil, err
	}
	d, err := openDirectory(r.MountPath, maxAge)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	old := p.volumes[r.Volume]
	p.volumes[r.Volume] = d
	p.mu.Unlock()
	if old != nil {
		old.close()
	}
	return &volumepb.OpenVolumeResponse{
		Capabilities: []volumepb.Capability{
			volumepb.Capability_SCOPE, volumepb.Capability_QUOTA_BYTES,
			volumepb.Capability_CAPACITY, volumepb.Capability_LIST_SCOPES,
		},
		Enforcement: volumepb.Enforcement_COOPERATIVE,
	}, nil
}

// options reads options_json by its schema and names what is wrong.
func options(text string) (time.Duration, error) {
	var o struct {
		UsageMaxAge *int64 `json:"usage_max_age_s"`
	}
	if text == "" {
		text = "{}"
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		return 0, status.Errorf(codes.InvalidArgument, "options: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return 0, status.Error(codes.InvalidArgument, "options: text after the object")
	}
	if o.UsageMaxAge == nil {
		return 30 * time.Second, nil
	}
	if *o.UsageMaxAge < 0 || *o.UsageMaxAge > 86400 {
		return 0, status.Errorf(codes.InvalidArgument, "options: usage_max_age_s: %d is not within 0 and 86400", *o.UsageMaxAge)
	}
	return time.Duration(*o.UsageMaxAge) * time.Second, nil
}

func (p *plugin) CloseVolume(_ context.Context, r *volumepb.VolumeRef) (*volumepb.CloseVolumeResponse, error) {
	p.mu.Lock()
	d := p.volumes[r.Volume]
	delete(p.volumes, r.Volume)
	p.mu.Unlock()
	if d != nil {
		d.close()
	}
	return &volumepb.CloseVolumeResponse{}, nil
}

func (p *plugin) volume(name string) (*directory, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, ok := p.volumes[name]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "volume %q is not open", name)
	}
	return d, nil
}

func (p *plugin) Health(_ context.Context, r *volumepb.VolumeRef) (*volumepb.HealthReport, error) {
	d, err := p.volume(r.Volume)
	if err != nil {
		return nil, err
	}
	var st unix.Statfs_t
	if err := d.mounted(); err != nil {
		return &volumepb.HealthReport{State: volumepb.HealthReport_UNAVAILABLE, Reason: status.Convert(err).Message()}, nil
	}
	if err := unix.Statfs(d.path, &st); err != nil {
		return &volumepb.HealthReport{State: volumepb.HealthReport_UNAVAILABLE, Reason: "statfs: " + err.Error()}, nil
	}
	h := &volumepb.HealthReport{State: volumepb.HealthReport_HEALTHY}
	switch {
	case st.Flags&unix.ST_RDONLY != 0:
		h.State, h.Reason = volumepb.HealthReport_DEGRADED, "mounted read-only"
	case st.Blocks > 0 && st.Bavail == 0:
		h.State, h.Reason = volumepb.HealthReport_DEGRADED, "no space left"
	case st.Files > 0 && st.Ffree == 0:
		h.State, h.Reason = volumepb.HealthReport_DEGRADED, "no inodes left"
	}
	return h, nil
}

func (p *plugin) Capacity(_ context.Context, r *volumepb.VolumeRef) (*volumepb.CapacityReport, error) {
	d, err := p.volume(r.Volume)
	if err != nil {
		return nil, err
	}
	if err := d.mounted(); err != nil {
		return nil, err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(d.path, &st); err != nil {
		return nil, failure("statfs", err)
	}
	c := &volumepb.CapacityReport{
		TotalBytes:     int64(st.Blocks) * st.Bsize,
		UsedBytes:      int64(st.Blocks-st.Bfree) * st.Bsize,
		AvailableBytes: int64(st.Bavail) * st.Bsize,
		AsOfUnixMs:     time.Now().UnixMilli(),
	}
	if st.Files > 0 { // btrfs has no fixed number of inodes and says 0
		total, used := int64(st.Files), int64(st.Files-st.Ffree)
		c.TotalInodes, c.UsedInodes = &total, &used
	}
	return c, nil
}

// failure gives an operating system error its gRPC code.
func failure(doing string, err error) error {
	code := codes.Internal
	switch {
	case errors.Is(err, unix.ENOENT):
		code = codes.NotFound
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EROFS):
		code = codes.FailedPrecondition
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		code = codes.ResourceExhausted
	case errors.Is(err, unix.EIO), errors.Is(err, unix.ESTALE), errors.Is(err, unix.ENOTCONN):
		code = codes.Unavailable
	}
	return status.Errorf(code, "%s: %v", doing, err)
}
