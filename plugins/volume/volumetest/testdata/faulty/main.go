// Command faulty is a plugin that violates the one requirement that the environment variable
// FAULT names, and satisfies all others. It proves that the suite can fail.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

var fault = os.Getenv("FAULT")

func main() {
	if fault == "prints" {
		fmt.Println("hello")
	}
	if fault == "serves anyone" && os.Getenv(volume.Contract().CookieKey) == "" {
		fmt.Println("1|1|unix|/tmp/x|grpc")
		return
	}
	volume.Serve(&crook{Plugin: driver.New(driver.Backend[options]{
		Vendor: "V", Name: "faulty", Version: "1", Defaults: options{Age: time.Second, Mode: "good"}, Open: open,
	})})
}

type options struct {
	Age    time.Duration `json:"age" about:"how old a usage may be"`
	Size   int           `json:"size" min:"1" max:"10" about:"of nothing"`
	Mode   string        `json:"mode" enum:"good,bad" about:"of nothing"`
	Secret driver.Secret `json:"password_file" about:"of nothing"`
}

func open(_ context.Context, m *driver.Mount, o options) (driver.Volume, error) {
	v := &whole{Directory: driver.NewDirectory(m, 0)}
	if fault == "logs its secret" && o.Secret != "" {
		text, err := o.Secret.Read()
		if err != nil {
			return nil, err
		}
		volume.Logger().Info("open", "password", text)
	}
	return v, nil
}

// whole is a volume that implements all optional interfaces, slowly.
type whole struct{ *driver.Directory }

func (w *whole) Traits() driver.Traits {
	t := w.Directory.Traits()
	if fault == "reports enforcement wrongly" {
		t.Enforcement = pb.Enforcement_HARD
	}
	return t
}

func (w *whole) CreateScope(ctx context.Context, scope string, limit *pb.Limit) error {
	switch fault {
	case "drops the first limit":
		limit = &pb.Limit{}
	case "keeps limits of deleted scopes":
		if limit.Bytes == nil {
			return w.MakeScope(scope)
		}
	}
	if err := w.Directory.CreateScope(ctx, scope, limit); err != nil {
		return err
	}
	if fault == "private scopes" {
		return os.Chmod(filepath.Join(w.Path(), scope), 0o700)
	}
	return nil
}

func (w *whole) GetScope(ctx context.Context, scope string) (*pb.Scope, error) {
	s, err := w.Directory.GetScope(ctx, scope)
	if err != nil {
		return nil, err
	}
	switch fault {
	case "follows links":
		out, _ := exec.Command("du", "-sLk", filepath.Join(w.Path(), scope)).Output()
		var n int64
		if _, err := fmt.Sscan(string(out), &n); err == nil {
			n <<= 10
			s.UsedBytes = &n
		}
	case "apparent sizes":
		var n int64
		_ = filepath.WalkDir(filepath.Join(w.Path(), scope), func(_ string, e fs.DirEntry, _ error) error {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
			return nil
		})
		s.UsedBytes = &n
	case "no age":
		s.AsOfUnixMs = 1
	}
	return s, nil
}

func (w *whole) SetScopeLimit(ctx context.Context, scope string, limit *pb.Limit) error {
	if fault == "zero is none" && limit.GetBytes() == 0 {
		limit = &pb.Limit{}
	}
	return w.Directory.SetScopeLimit(ctx, scope, limit)
}

func (w *whole) DeleteScope(ctx context.Context, scope string) error {
	switch fault {
	case "deletes what is full":
		_ = w.RemoveTree(ctx, scope)
	case "keeps limits of deleted scopes":
		return w.RemoveScope(scope)
	}
	return w.Directory.DeleteScope(ctx, scope)
}

func (w *whole) Capacity(ctx context.Context) (*pb.CapacityReport, error) {
	c, err := w.Directory.Capacity(ctx)
	if err == nil && fault == "half the disk" {
		c.TotalBytes /= 2
	}
	return c, err
}

func (w *whole) ListScopes(ctx context.Context) iter.Seq2[*pb.Scope, error] {
	all := w.Directory.ListScopes(ctx)
	return func(yield func(*pb.Scope, error) bool) {
		n := 0
		for s, err := range all {
			if n++; n == 1 && fault == "lists one twice" && !yield(s, err) {
				return
			}
			if n == 1 && fault == "lists one less" {
				continue
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

func (w *whole) Performance(context.Context) (*pb.PerformanceSample, error) {
	n := 10.0
	if fault == "counts" {
		n = 1e15
	}
	return &pb.PerformanceSample{Subject: pb.PerformanceSample_THIS_VOLUME, WindowMs: 1000, WriteOpsPerSecond: &n}, nil
}

func (w *whole) path(tree string) string { return filepath.Join(w.Path(), tree) }

func (w *whole) TreeUsage(ctx context.Context, tree string) (*pb.TreeUsageReport, error) {
	d, err := w.OpenTree(tree)
	if err != nil {
		return nil, err
	}
	u, err := volume.UsageAt(ctx, d)
	if err == nil && fault == "guesses trees" {
		u.Bytes *= 2
	}
	return u, err
}

func (w *whole) CloneTree(ctx context.Context, from, to string, report driver.Progress) error {
	mode := "-a"
	switch fault {
	case "clones what links lead to":
		mode = "-rL"
	case "clones by second names":
		mode = "-al"
	}
	for i, cmd := range []*exec.Cmd{exec.CommandContext(ctx, "mkdir", w.path(to)), exec.CommandContext(ctx, "sleep", "0.3"), exec.CommandContext(ctx, "cp", mode, w.path(from)+"/.", w.path(to))} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("%w: %s", err, out))
		}
		report(&pb.Progress{FilesDone: int64(i)})
	}
	return nil
}

func (w *whole) DeleteTree(ctx context.Context, tree string, _ driver.Progress) error {
	if fault == "does not delete" {
		return nil
	}
	return w.RemoveTree(ctx, tree)
}

func (w *whole) MountPlan(_ context.Context, scope string) (*pb.MountSpec, error) {
	m := &pb.MountSpec{FsType: "nfs", Source: "server:/" + scope}
	if fault == "sends secrets to nodes" {
		m.Options = []string{"password=abc"}
	}
	return m, nil
}

// crook causes violations that the driver package would prevent.
type crook struct {
	*driver.Plugin
	mount string
}

func (c *crook) Describe(ctx context.Context, q *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	d, err := c.Plugin.Describe(ctx, q)
	switch fault {
	case "changes":
		d.Version += "1"
	case "takes anything":
		d.OptionsSchema = strings.Replace(d.OptionsSchema, "false", "true", 1)
	}
	return d, err
}

func (c *crook) OpenVolume(ctx context.Context, q *pb.OpenVolumeRequest) (*pb.OpenVolumeResponse, error) {
	c.mount = q.GetMountPath()
	if fault == "ignores options" {
		q.OptionsJson = ""
	}
	if fault == "names no option" {
		if r, err := c.Plugin.OpenVolume(ctx, q); err == nil {
			return r, nil
		}
		return nil, status.Error(codes.InvalidArgument, "no")
	}
	r, err := c.Plugin.OpenVolume(ctx, q)
	if err != nil {
		return nil, err
	}
	switch fault {
	case "no scopes":
		r.Capabilities = r.Capabilities[1:]
	case "no enforcement":
		r.Enforcement = pb.Enforcement_NONE
	case "hides what it has":
		r.Capabilities = r.Capabilities[:2]
	}
	return r, nil
}

func (c *crook) CloneTree(q *pb.CopyRequest, out grpc.ServerStreamingServer[pb.Progress]) error {
	switch target := filepath.Join(c.mount, q.GetTo()); fault {
	case "clones onto what exists":
		_ = os.MkdirAll(target, 0o755)
		return out.Send(&pb.Progress{Finished: true})
	case "leaves what is cancelled":
		_ = os.MkdirAll(target, 0o755)
		<-out.Context().Done()
		return out.Context().Err()
	}
	return c.Plugin.CloneTree(q, out)
}

func (c *crook) CreateScope(ctx context.Context, q *pb.ScopeRequest) (*pb.Scope, error) {
	switch fault {
	case "writes to the bare mount point":
		_ = os.MkdirAll(filepath.Join(c.mount, q.GetScope()), 0o755)
	case "resets limits":
		if _, err := c.Plugin.SetScopeLimit(ctx, q); err != nil && status.Code(err) != codes.NotFound {
			return nil, err
		}
	case "takes any name":
		if len(q.GetScope()) == 31 {
			return &pb.Scope{Scope: q.GetScope(), Path: q.GetScope()}, nil
		}
	case "one at a time":
		if err := os.Mkdir(filepath.Join(c.mount, q.GetScope()), 0o755); err != nil {
			return nil, driver.Error("make scope", err)
		}
	}
	return c.Plugin.CreateScope(ctx, q)
}
