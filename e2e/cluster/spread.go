package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/service"
)

// SpreadOptions are the options of a cluster of separate processes.
type SpreadOptions struct {
	Managers int
	Agents   []int // number of mock accelerators of each agent
	Proxies  int   // storage proxies, each of which serves all volumes
	Volumes  []Volume
}

// Spread is a platform whose managers, storage proxies and agents are separate processes, as if on
// separate machines. The agents are called node-1, node-2 and so on, the proxies proxy-1. People
// reach the managers through one address, as behind a load balancer.
type Spread struct {
	*Platform
	Managers []*Process
	Agents   []*Process
	Proxies  []*Process
	Wires    []*Wire // connection to each storage proxy

	proxies      int
	volumes      []Volume
	stores       *service.Stores
	registry     *registry.Registry
	registryHost string
	registryID   string
	door         *Wire
	stop         context.CancelFunc // ends the servers of this process: the registry
}

// StartSpread starts all processes, and returns when every agent is connected with all accelerators
// and its image can be used.
func StartSpread(opt SpreadOptions) (*Spread, error) {
	p, err := prepare()
	if err != nil {
		return nil, err
	}
	p.offers = opt.Agents
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s := &Spread{Platform: p, proxies: opt.Proxies, volumes: opt.Volumes, door: &Wire{}}
	for _, step := range []func(context.Context) error{
		s.openVolumes,
		s.openStores,
		s.openRegistry,
		func(ctx context.Context) error { return s.startManagers(ctx, opt.Managers) },
		s.offerMinimal,
		s.joinProxies,
		s.joinAgents,
		s.complete,
	} {
		if err := step(ctx); err != nil {
			return nil, s.discard(fmt.Errorf("%w\nthe log:\n%s", err, p.log.Tail(80)))
		}
	}
	return s, nil
}

func (s *Spread) openStores(ctx context.Context) (err error) {
	s.stores, err = service.Start(ctx, service.Config{
		Dir: filepath.Join(s.data, "stores"), Volatile: true, Logger: slog.New(slog.NewTextHandler(s.log, nil)),
	})
	return err
}

// startManagers starts the managers one after the other: the first one creates the shared state.
func (s *Spread) startManagers(ctx context.Context, n int) (err error) {
	if err := os.Mkdir(filepath.Join(s.data, "secrets"), 0o700); err != nil {
		return err
	}
	for i := range n {
		web, err := freePort("tcp")
		if err != nil {
			return err
		}
		nodes, err := freePort("tcp")
		if err != nil {
			return err
		}
		m := s.process("manager-" + strconv.Itoa(i+1))
		s.Managers = append(s.Managers, m)
		m.args = []string{"manager", "--http", web, "--cluster", nodes, "--secrets", filepath.Join(s.data, "secrets"),
			"--image-registry", s.registryHost, "--image-registry-key", filepath.Join(s.data, "registry", "push-key"),
			"--postgres", s.stores.Postgres.DSN("berth"), "--redis", s.stores.Redis.URL(), "--etcd", s.stores.Etcd.Endpoint()}
		if err := m.Start(); err != nil {
			return err
		}
		s.door.to = append(s.door.to, web)
		one := Platform{URL: "http://" + web}
		if err := s.until(ctx, "the manager answers", func() bool { return one.answers(ctx, "/readyz") }); err != nil {
			return err
		}
	}
	if s.URL, err = s.door.Open(); err != nil {
		return err
	}
	var first struct{ Email, Password string }
	text, err := os.ReadFile(filepath.Join(s.data, "secrets", "first-login.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &first); err != nil {
		return err
	}
	return s.adopt(ctx, first.Email, first.Password)
}

// openRegistry serves a registry, also for images that are made of sessions.
func (s *Spread) openRegistry(context.Context) (err error) {
	dir := filepath.Join(s.data, "registry")
	if s.registry, err = registry.Open(filepath.Join(dir, "blobs")); err != nil {
		return err
	}
	key, err := pushtoken.KeyIn(dir)
	if err != nil {
		return err
	}
	s.registry.AllowPush(key)
	l, err := registry.Listen(dir)
	if err != nil {
		return err
	}
	s.registryHost = l.Addr().String()
	serving, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { _ = s.registry.Serve(serving, l) }()
	return nil
}

// offerMinimal imports the minimal image, and makes the platform scan for it.
func (s *Spread) offerMinimal(ctx context.Context) error {
	if _, err := s.registry.Import(ctx, filepath.Join(s.images(), "minimal")); err != nil {
		return fmt.Errorf("%w (run make images)", err)
	}
	known, err := s.admin.CreateRegistry(ctx, client.CreateRegistryInput{Name: "local", Host: s.registryHost, PlainHTTP: true})
	if err != nil {
		return err
	}
	s.registryID = known.ID
	return s.scan(ctx)
}

// scan registers the images of the registry, and waits until that has ended.
func (s *Spread) scan(ctx context.Context) error {
	task, err := s.admin.ScanRegistry(ctx, s.registryID)
	if err != nil {
		return err
	}
	return s.until(ctx, "the registry was scanned", func() bool {
		all, err := s.admin.Tasks(ctx, client.TaskFilter{ID: task.ID})
		return err == nil && len(all) == 1 && all[0].Status == "DONE"
	})
}

// Offer adds a starter image to the registry, and skips the test if the image was not built.
func (s *Spread) Offer(t testing.TB, image string) {
	t.Helper()
	layout := filepath.Join(s.images(), image)
	if _, err := os.Stat(filepath.Join(layout, "index.json")); err != nil {
		t.Skipf("the image %s is not built: make images IMAGES=%s", image, image)
	}
	s.OfferLayout(t, layout)
}

// OfferLayout imports an image from an OCI layout.
func (s *Spread) OfferLayout(t testing.TB, layout string) {
	t.Helper()
	if _, err := s.registry.Import(t.Context(), layout); err != nil {
		t.Fatal(err)
	}
	if err := s.scan(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// joinAgents runs, for each agent, the join command that the platform returns.
func (s *Spread) joinAgents(ctx context.Context) error {
	var dirs []string
	for i, devices := range s.offers {
		token, err := s.admin.CreateJoinToken(ctx, "agent")
		if err != nil {
			return err
		}
		name := "node-" + strconv.Itoa(i+1)
		dirs = append(dirs, filepath.Join("agent", name))
		overlay, err := freePort("udp") // on separate machines, all agents use the same port
		if err != nil {
			return err
		}
		plugins := filepath.Join(s.data, name+".yaml")
		if err := os.WriteFile(plugins, fmt.Appendf(nil, "plugins: [{path: %s, force: true, config: {devices: %d, seed: 1}}]\n",
			filepath.Join(s.bin, "plugins/accelerator/mock"), devices), 0o644); err != nil {
			return err
		}
		x := s.process(name)
		s.Agents = append(s.Agents, x)
		x.args = append(strings.Fields(token.Command)[1:], "--name", name, "--data", filepath.Join(s.data, "agent", name), "--bin", s.bin,
			"--plugin-file", plugins, "--overlay", overlay, "--keep-sessions=false")
		if err := x.Start(); err != nil {
			return err
		}
	}
	if err := s.complete(ctx); err != nil {
		return err
	}
	return s.identify(dirs...)
}

// Agent returns the process of a node by its name.
func (s *Spread) Agent(name string) *Process {
	for _, x := range s.Agents {
		if x.name == name {
			return x
		}
	}
	return nil
}

var leading = regexp.MustCompile(`msg=leading epoch=(\d+)`)

// Leader returns the last manager that became leader, according to the managers' logs.
func (s *Spread) Leader(t testing.TB) *Process {
	t.Helper()
	var leader *Process
	last := 0
	for _, m := range s.Managers {
		for _, said := range leading.FindAllStringSubmatch(m.log.From(0), -1) {
			if epoch, _ := strconv.Atoi(said[1]); epoch > last {
				last, leader = epoch, m
			}
		}
	}
	if leader == nil {
		t.Fatal("no manager has logged that it leads")
	}
	return leader
}

// Close stops the roles with their sessions and then the stores, and returns the same findings as
// Platform.Close.
func (s *Spread) Close() error {
	err := s.finish()
	for _, x := range slices.Concat(s.Agents, s.Proxies, s.Managers) {
		if x.runs() { // stopped agents have ended their containers already
			err = errors.Join(err, x.end(syscall.SIGINT))
		}
	}
	return s.discard(err)
}

// discard ends remaining processes, the stores last, and deletes the data.
func (s *Spread) discard(err error) error {
	err = errors.Join(err, s.killAll())
	for _, w := range append(s.Wires, s.door) {
		err = errors.Join(err, w.Close())
	}
	if s.stop != nil {
		s.stop()
		err = errors.Join(err, s.registry.Close())
	}
	if s.stores != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		err = errors.Join(err, s.stores.Stop(ctx))
	}
	return s.remove(err)
}

// DSN returns the address of the managers' database.
func (s *Spread) DSN() string { return s.stores.Postgres.DSN("berth") }

// Containers returns, for every kernel that has a process on this machine, the names of the agents
// in whose cgroups the process is. It reads the cgroups, and no report of an agent.
func (s *Spread) Containers() (map[string][]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, f := range files {
		text, _ := os.ReadFile(f) // the process may have ended
		for i, agent := range s.agents {
			_, rest, ok := strings.Cut(string(text), "/berth/"+agent+"/")
			if !ok {
				continue
			}
			kernel, _, _ := strings.Cut(rest, "\n")
			kernel, _, _ = strings.Cut(kernel, "/")
			if name := s.Agents[i].name; !slices.Contains(found[kernel], name) {
				found[kernel] = append(found[kernel], name)
			}
		}
	}
	return found, nil
}
