// Package volumetest is the conformance suite of the volume contract. It calls a plugin's program
// as the storage proxy would, and verifies the plugin's responses on the disk. Vendors run it from
// a test (Test) or with the command berth-volume-conformance, which are equivalent.
package volumetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/suite"
	"github.com/berthhq/berth/plugins/volume"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// Plugin describes the plugin to test.
type Plugin struct {
	Path string   // the program
	Env  []string // added to the plugin's environment
	// Options is options_json; empty = the plugin's defaults.
	Options string
	// Mount is the writable mount point of the product. Every check creates its own scopes there
	// and removes them. Empty = a new directory for each check, for plugins that need no product.
	Mount       string
	Environment Environment
}

// Environment describes the environment of the suite. The suite runs where the volume is mounted:
// on this machine, in a namespace, or in another kernel.
type Environment struct {
	// UID is the unprivileged user that writes like sessions do; 0 = 65534.
	UID int
	// As runs f with the privileges of that user; nil = in a thread of this process that changes to
	// the user, which requires root.
	As func(uid int, f func() error) error
	// Tolerance is the maximum ratio of stored bytes to the limit, such as 1.01. 0 = 1.02 for HARD
	// and 1.5 for DELAYED enforcement.
	Tolerance float64
	// Timeout limits the wait until the product shows a change; 0 = a minute.
	Timeout time.Duration
	// Pause is the delay of writers after every 4 MiB and every 20 files, for products that stop
	// them with a delay: the stored excess depends on the bytes written in that time.
	Pause time.Duration
	// NoBind means that the product does not work on a bind mount, which the suite uses to unmount
	// a volume from a plugin.
	NoBind bool
	// NoInodes means that the simulated product does not count files although the real one does.
	NoInodes bool
	// Names means that the product counts a file once for each of its names.
	Names bool
	// Lengths means that the mount shows lengths of files instead of stored bytes, so that a sparse
	// file looks as large as a full one.
	Lengths bool
}

// Check is one requirement of the contract.
type Check struct {
	Name string
	Want string // the requirement in one line
	run  func(context.Context, *bench) error
}

// Checks returns all checks in the order of the report.
func Checks() []Check {
	return slices.Concat(startChecks, optionChecks, volumeChecks, mountChecks, scopeChecks, limitChecks,
		usageChecks, treeChecks, cloneChecks, processChecks, effectChecks)
}

// Bare reports whether a check only needs the program and no product.
func (c Check) Bare() bool {
	return slices.ContainsFunc(startChecks, func(s Check) bool { return s.Name == c.Name })
}

func has(r *pb.OpenVolumeResponse, c pb.Capability) bool {
	return slices.Contains(r.GetCapabilities(), c)
}

func limited(r *pb.OpenVolumeResponse) bool {
	return has(r, pb.Capability_QUOTA_BYTES) || has(r, pb.Capability_QUOTA_INODES)
}

// checkTimeout is long enough for products that handle a call in a job.
const checkTimeout = 3 * time.Minute

// Run runs the named checks, or all, and reports each. They run one after the other, because
// changes of one on the volume are visible to others.
func Run(ctx context.Context, p Plugin, only []string, report func(suite.Result)) error {
	checks, err := suite.Only(Checks(), func(c Check) string { return c.Name }, only)
	if err == nil {
		p.Path, err = suite.IsProgram(p.Path)
	}
	if err != nil {
		return err
	}
	for _, c := range checks {
		report(p.run(ctx, c))
	}
	return ctx.Err()
}

// Test runs the suite as subtests. It skips it with -short: the suite takes a while, and the race
// detector, which short runs are for, cannot inspect another process.
func Test(t *testing.T, p Plugin) {
	t.Helper()
	if testing.Short() {
		t.Skip("the suite takes a while")
	}
	var err error
	if p.Path, err = suite.IsProgram(p.Path); err != nil {
		t.Fatal(err)
	}
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) { p.run(t.Context(), c).Show(t) })
	}
}

func (p Plugin) run(ctx context.Context, c Check) suite.Result {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	b, err := newBench(p)
	if err == nil {
		err = c.run(ctx, b)
	}
	closed := b.close()
	if err == nil || closed != nil {
		err = errors.Join(err, closed)
	}
	return suite.Conclude(suite.Check{Name: c.Name, Want: c.Want}, err, time.Since(began), b.log)
}

// Open starts a plugin until the end of the test and opens the volume "v", for a vendor's own
// tests. It returns the error of OpenVolume.
func Open(t *testing.T, program, mount, options string) (*volume.Client, *pb.OpenVolumeResponse, error) {
	t.Helper()
	c, err := volume.Launch(t.Context(), volume.Options{Path: program, SocketDir: os.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	r, err := c.OpenVolume(t.Context(), &pb.OpenVolumeRequest{Volume: "v", MountPath: mount, OptionsJson: options})
	return c, r, err
}

const (
	volumeName = "conformance"
	// timeout limits the wait until a product shows a change.
	timeout = time.Minute
)

// bench is the environment of one check, with the processes that it started.
type bench struct {
	plugin  Plugin
	dir     string
	mount   string
	log     *suite.Log
	clients []*volume.Client
	scopes  []string // created by the check; emptied and removed at its end
	undo    []func() error
}

func newBench(p Plugin) (*bench, error) {
	b := &bench{plugin: p, mount: p.Mount, log: &suite.Log{}}
	dir, err := os.MkdirTemp("", "vol")
	if err != nil {
		return b, err
	}
	b.dir = dir
	if b.mount == "" {
		b.mount = filepath.Join(dir, "mount")
		err = os.Mkdir(b.mount, 0o755)
	}
	// The users of sessions must be able to enter it.
	return b, errors.Join(err, os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "run"), 0o700))
}

func (b *bench) close() error {
	var errs []error
	if len(b.scopes) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		errs = append(errs, b.sweep(ctx))
		cancel()
	}
	for _, c := range b.clients {
		errs = append(errs, c.Close())
	}
	for i := len(b.undo) - 1; i >= 0; i-- {
		errs = append(errs, b.undo[i]())
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// sweep removes everything that the check created on a product's volume.
func (b *bench) sweep(ctx context.Context) error {
	if b.plugin.Mount == "" {
		return nil // a temporary directory
	}
	c, _, err := b.open(ctx)
	if err != nil {
		return fmt.Errorf("to remove created scopes: %w", err)
	}
	var errs []error
	for _, id := range b.scopes {
		err := b.empty(id)
		if err == nil {
			_, err = c.DeleteScope(ctx, ref(id))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove created scopes: %w", err))
		}
	}
	return errors.Join(errs...)
}

// empty removes the contents of a scope.
func (b *bench) empty(id string) error {
	entries, err := os.ReadDir(b.at(id))
	if os.IsNotExist(err) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(b.at(id, e.Name())))
	}
	return err
}

// at returns a path below the mount point.
func (b *bench) at(elem ...string) string {
	return filepath.Join(append([]string{b.mount}, elem...)...)
}

// options disables TLS, which is faster; a separate check tests TLS.
func (b *bench) options() volume.Options {
	return volume.Options{
		Path: b.plugin.Path, Env: b.plugin.Env, SocketDir: filepath.Join(b.dir, "run"), Plain: true,
		Logger: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// program describes the plugin's program for checks that start it themselves.
func (b *bench) program() suite.Program {
	return suite.Program{Path: b.plugin.Path, Env: b.plugin.Env, Dir: b.dir, Contract: volume.Contract(), Timeout: startTime}
}

// launch starts a process and calls only Describe.
func (b *bench) launch(ctx context.Context) (*volume.Client, error) {
	c, err := volume.Launch(ctx, b.options())
	if err == nil {
		b.clients = append(b.clients, c)
	}
	return c, err
}

// open starts a process and opens the volume in it.
func (b *bench) open(ctx context.Context) (*volume.Client, *pb.OpenVolumeResponse, error) {
	c, err := b.launch(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := c.OpenVolume(ctx, b.request())
	if err != nil {
		return nil, nil, fmt.Errorf("open volume: %w", err)
	}
	return c, r, nil
}

func (b *bench) request() *pb.OpenVolumeRequest {
	return &pb.OpenVolumeRequest{Volume: volumeName, MountPath: b.mount, OptionsJson: b.plugin.Options}
}

func this() *pb.VolumeRef { return &pb.VolumeRef{Volume: volumeName} }

// reserve returns the name of a scope that is removed at the end.
func (b *bench) reserve() string {
	var raw [16]byte
	rand.Read(raw[:]) // never fails
	id := hex.EncodeToString(raw[:])
	b.scopes = append(b.scopes, id)
	return id
}

// scope opens the volume and creates a scope.
func (b *bench) scope(ctx context.Context) (*volume.Client, *pb.OpenVolumeResponse, string, error) {
	c, r, err := b.open(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	id, err := b.create(ctx, c, nil)
	return c, r, id, err
}

// create creates a scope.
func (b *bench) create(ctx context.Context, c *volume.Client, limit *pb.Limit) (string, error) {
	id := b.reserve()
	_, err := c.CreateScope(ctx, &pb.ScopeRequest{Volume: volumeName, Scope: id, Limit: limit})
	if err != nil {
		return "", fmt.Errorf("create scope: %w", err)
	}
	return id, nil
}

func ref(id string) *pb.ScopeRef { return &pb.ScopeRef{Volume: volumeName, Scope: id} }

func bytesOf(n int64) *pb.Limit { return &pb.Limit{Bytes: &n} }

// want returns an error unless err has one of the codes.
func want(what string, err error, any ...codes.Code) error {
	got := status.Code(err)
	for _, code := range any {
		if got == code {
			return nil
		}
	}
	return fmt.Errorf("%s: %v (%v), want %v", what, got, err, any)
}

// eventually repeats ask until it succeeds, because products show changes with a delay.
func (b *bench) eventually(ctx context.Context, ask func() error) error {
	for end := time.Now().Add(cmp.Or(b.plugin.Environment.Timeout, timeout)); ; {
		err := ask()
		if err == nil || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
