package builder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/distribution/reference"
	"github.com/moby/buildkit/cache/remotecache"
	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/cmd/buildkitd/config"
	"github.com/moby/buildkit/control"
	"github.com/moby/buildkit/frontend"
	dockerfile "github.com/moby/buildkit/frontend/dockerfile/builder"
	"github.com/moby/buildkit/frontend/gateway/forwarder"
	"github.com/moby/buildkit/session"
	"github.com/moby/buildkit/session/secrets/secretsprovider"
	"github.com/moby/buildkit/solver"
	"github.com/moby/buildkit/solver/bboltcachestorage"
	spb "github.com/moby/buildkit/sourcepolicy/pb"
	"github.com/moby/buildkit/util/db/boltutil"
	"github.com/moby/buildkit/worker"
	"github.com/moby/buildkit/worker/base"
	"github.com/tonistiigi/fsutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/berthhq/berth/agent/build"
)

// The name of the frontend and of the format of caches.
const (
	frontendName = "dockerfile.v0"
	cacheName    = "project"
)

// run builds the image of a request.
func run(ctx context.Context, r build.Request, out *events) (*build.Result, *build.Error) {
	watch, disk := &watch{}, &space{root: r.Root}
	looking, stop := context.WithCancel(ctx)
	defer stop()
	go disk.watch(looking)
	done, err := try(ctx, r, out, watch)
	if err == nil {
		return done, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, &build.Error{Message: disk.explain(watch.message(err)), Step: watch.failed()}
}

func try(ctx context.Context, r build.Request, out *events, watch *watch) (*build.Result, error) {
	out.send(build.Event{Phase: "waiting"})
	if err := lock(ctx, r.Root, func() {
		fmt.Fprintln(out, "Waiting for another build of the project on this machine.")
	}); err != nil {
		return nil, fmt.Errorf("lock the project's cache: %w", err)
	}
	if err := writeResolvConf(r); err != nil {
		return nil, err
	}
	files, err := unpack(ctx, r)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(files.dir)
	out.send(build.Event{Phase: "building"})
	c, err := connect(ctx, r)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := shrink(ctx, c, r.CacheBytes); err != nil {
		return nil, fmt.Errorf("shrink the project's cache: %w", err)
	}
	target, err := newOutput(ctx, r)
	if err != nil {
		return nil, err
	}
	display, err := watch.show(ctx, out)
	if err != nil {
		return nil, err
	}
	resp, err := c.Solve(ctx, nil, files.options(r, target), display.statuses)
	display.wait()
	if err != nil {
		return nil, err
	}
	done := target.result(resp.ExporterResponse["containerimage.digest"])
	done.Steps, done.Cached = watch.counts()
	return done, nil
}

// daemon is a BuildKit in this process.
type daemon struct {
	*client.Client
	control *control.Controller
	server  *grpc.Server
}

func (d *daemon) Close() {
	_ = d.Client.Close()
	d.server.Stop()
	_ = d.control.Close()
}

// connect starts BuildKit on the project's cache. A cache that cannot be opened is emptied.
func connect(ctx context.Context, r build.Request) (*daemon, error) {
	c, err := newController(ctx, r)
	if err != nil {
		if empty := emptied(r.Root); empty != nil {
			return nil, errors.Join(err, empty)
		}
		if err := writeResolvConf(r); err != nil {
			return nil, err
		}
		if c, err = newController(ctx, r); err != nil {
			return nil, err
		}
	}
	pipe := bufconn.Listen(1 << 20)
	d := &daemon{control: c, server: grpc.NewServer(grpc.MaxRecvMsgSize(64<<20), grpc.MaxSendMsgSize(64<<20))}
	c.Register(d.server)
	go d.server.Serve(pipe) //nolint:errcheck // it ends with the process
	d.Client, err = client.New(ctx, "", client.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	return d, err
}

func newController(ctx context.Context, r build.Request) (*control.Controller, error) {
	sessions, err := session.NewManager()
	if err != nil {
		return nil, err
	}
	w, err := newWorker(ctx, r, registries(r.Registries))
	if err != nil {
		return nil, err
	}
	workers := &worker.Controller{}
	if err := workers.Add(w); err != nil {
		return nil, err
	}
	results, err := bboltcachestorage.NewStore(filepath.Join(r.Root, "results.db"))
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	past, err := boltutil.SafeOpen(filepath.Join(r.Root, "history.db"), 0o600, nil)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	entries := int64(1)
	return control.NewController(control.Opt{
		SessionManager: sessions, WorkerController: workers, CacheStore: results, HistoryDB: past,
		Frontends:                 map[string]frontend.Frontend{frontendName: forwarder.NewGatewayForwarder(workers.Infos(), dockerfile.Build)},
		CacheManager:              solver.NewCacheManager(ctx, "local", results, worker.NewCacheResultStorage(workers)),
		ResolveCacheExporterFuncs: map[string]remotecache.ResolveCacheExporterFunc{cacheName: exported(r.Cache)},
		ResolveCacheImporterFuncs: map[string]remotecache.ResolveCacheImporterFunc{cacheName: imported(r.Cache)},
		LeaseManager:              w.LeaseManager(), ContentStore: w.ContentStore(), GarbageCollect: w.GarbageCollect,
		HistoryConfig: &config.HistoryConfig{MaxEntries: &entries},
	})
}

var _ worker.Worker = (*base.Worker)(nil)

// shrink removes what was not used for the longest time.
func shrink(ctx context.Context, c *daemon, limit int64) error {
	if limit <= 0 {
		return nil
	}
	return c.Prune(ctx, nil, client.PruneAll, client.WithKeepOpt(0, 0, limit, 0))
}

// sourceRules permit the files of the build and the named images. A step can fetch what it wants from the
// network of the sandbox; the builder itself, which is outside, fetches nothing else.
func sourceRules(r build.Request) *spb.Policy {
	p := &spb.Policy{Version: 1, Rules: []*spb.Rule{
		{Action: spb.PolicyAction_DENY, Selector: &spb.Selector{Identifier: ".*", MatchType: spb.MatchType_REGEX}},
		{Action: spb.PolicyAction_ALLOW, Selector: &spb.Selector{Identifier: "^local://", MatchType: spb.MatchType_REGEX}},
	}}
	for _, ref := range r.Images {
		p.Rules = append(p.Rules, &spb.Rule{
			Action: spb.PolicyAction_ALLOW, Selector: &spb.Selector{Identifier: "docker-image://" + ref, MatchType: spb.MatchType_EXACT},
		})
	}
	return p
}

// attributes are the options of the Dockerfile frontend.
func attributes(r build.Request) (map[string]string, error) {
	out := map[string]string{"filename": dockerfileName, "build-arg:SOURCE_DATE_EPOCH": strconv.FormatInt(r.Epoch, 10)}
	for name, value := range r.Args {
		out["build-arg:"+name] = value
	}
	if r.Target != "" {
		out["target"] = r.Target
	}
	if r.NoCache {
		out["no-cache"] = ""
	}
	for name, ref := range r.Images {
		named, err := reference.ParseNormalizedNamed(name)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", name, err)
		}
		out["context:"+familiar(named)] = "docker-image://" + ref
	}
	return out, nil
}

// familiar returns the form in which the frontend looks up a name.
func familiar(n reference.Named) string {
	s := reference.FamiliarString(n)
	if tagged, ok := n.(reference.Tagged); ok && tagged.Tag() == "latest" {
		s = reference.FamiliarName(n)
	}
	return s
}

func (f unpacked) options(r build.Request, target *output) client.SolveOpt {
	export := client.CacheOptionsEntry{Type: cacheName, Attrs: map[string]string{attrTag: r.Cache.Export, "mode": "max", "compression": "zstd", "ignore-error": "true"}}
	opt := client.SolveOpt{
		Frontend: frontendName, FrontendAttrs: f.attributes, SourcePolicy: sourceRules(r), SharedKey: "build",
		LocalMounts: map[string]fsutil.FS{"context": f.context, "dockerfile": f.dockerfile},
		Session:     []session.Attachable{accounts{registries: r.Registries}, secretsprovider.FromMap(secrets(r.Secrets))},
		Exports: []client.ExportEntry{{Type: client.ExporterOCI, OutputStore: target, Attrs: map[string]string{
			"tar": "false", "rewrite-timestamp": "true", "compression": "zstd", "oci-mediatypes": "true",
		}}},
	}
	if r.Indexed { // the layers of base images too, because sessions start early only if all layers have an index
		opt.Exports[0].Attrs["compression"], opt.Exports[0].Attrs["force-compression"] = "estargz", "true"
	}
	if r.Cache.Name != "" && r.Cache.Export != "" {
		opt.CacheExports = append(opt.CacheExports, export)
	}
	for _, tag := range r.Cache.Import {
		opt.CacheImports = append(opt.CacheImports, client.CacheOptionsEntry{Type: cacheName, Attrs: map[string]string{attrTag: tag}})
	}
	return opt
}

func secrets(texts map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for name, text := range texts {
		out[name] = []byte(text)
	}
	return out
}

// stepForm is the form of the names of instructions, such as "[2/3] RUN make" and "[tools 1/2] COPY a b".
var stepForm = regexp.MustCompile(`^\[([^\]]+ )?\d+/\d+\] `)

// settle is how long the display may take for the last output.
const settle = 10 * time.Second
