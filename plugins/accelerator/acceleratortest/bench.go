package acceleratortest

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/berthhq/berth/internal/fixture"
	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

// site is one run of the suite: the plugin, and the machine that is shared by checks that do not
// change it.
type site struct {
	plugin  Plugin
	machine *fixture.Machine // nil without a fixture
	dir     string
	running sync.WaitGroup
	tree    func() (*fixture.Tree, error) // created once
}

func newSite(p Plugin) (*site, error) {
	var err error
	if p.Path, err = suite.IsProgram(p.Path); err != nil {
		return nil, err
	}
	s := &site{plugin: p}
	if p.Fixture != "" {
		m, err := fixture.Load(p.Fixture)
		if err != nil {
			return nil, err
		}
		s.machine = m
	}
	dir, err := os.MkdirTemp("", "acc")
	if err != nil {
		return nil, err
	}
	s.dir = dir
	s.tree = sync.OnceValues(func() (*fixture.Tree, error) { return s.machine.Render(filepath.Join(dir, "machine")) })
	return s, nil
}

func (s *site) close() error {
	s.running.Wait()
	var err error
	if s.machine != nil {
		if t, rendered := s.tree(); rendered == nil {
			err = t.Close()
		}
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// bench is the environment of one check: new directories, and the processes that it started.
type bench struct {
	plugin  Plugin
	site    *site
	dir     string
	log     *suite.Log
	logger  *slog.Logger
	clients []*accelerator.Client
	tree    *fixture.Tree // the check's own machine, set by ownMachine
	trees   []*fixture.Tree
}

func (s *site) bench() (*bench, error) {
	b := &bench{plugin: s.plugin, site: s, log: &suite.Log{}}
	b.logger = slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	dir, err := os.MkdirTemp(s.dir, "")
	if err != nil {
		return b, err
	}
	b.dir = dir
	if err := errors.Join(os.Mkdir(b.state(), 0o700), os.Mkdir(filepath.Join(dir, "run"), 0o700)); err != nil {
		return b, err
	}
	if s.machine == nil {
		return b, nil
	}
	if remembers(s.machine) { // checks could influence each other through the machine's programs
		return b, b.ownMachine("own")
	}
	t, err := s.tree()
	if err != nil {
		return b, err
	}
	b.standAt(t)
	return b, nil
}

// remembers reports whether a machine's programs keep state.
func remembers(m *fixture.Machine) bool {
	for _, cases := range m.Commands {
		if slices.ContainsFunc(cases, func(c fixture.Case) bool { return c.Script != "" }) {
			return true
		}
	}
	return false
}

// standAt points the plugin to the files of a machine.
func (b *bench) standAt(t *fixture.Tree) {
	b.plugin.Roots = t.Roots()
	if len(b.site.plugin.Config) == 0 {
		b.plugin.Config = t.Config()
	}
}

// ownMachine creates a separate machine for a check that changes hardware.
func (b *bench) ownMachine(name string) error {
	m := b.site.machine
	if m == nil {
		return suite.Skip("no fixture is given")
	}
	t, err := m.Render(filepath.Join(b.dir, name))
	if err != nil {
		return err
	}
	b.trees = append(b.trees, t)
	b.tree = t
	b.standAt(t)
	return nil
}

// bare reports whether there is no machine on which hardware could be found. A plugin that shows
// devices then simulates them.
func (b *bench) bare() bool {
	m := b.site.machine
	return m == nil || len(m.Files)+len(m.Nodes)+len(m.Commands)+len(m.Servers)+len(m.Libraries) == 0
}

func (b *bench) state() string { return filepath.Join(b.dir, "state") }

func (b *bench) close() error {
	var errs []error
	for _, c := range b.clients {
		errs = append(errs, c.Close())
	}
	for _, t := range b.trees {
		errs = append(errs, t.Close())
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// options disables TLS, which makes the start ten times faster; a separate check tests TLS.
func (b *bench) options() accelerator.Options {
	return accelerator.Options{
		Path: b.plugin.Path, Env: b.plugin.Env, SocketDir: filepath.Join(b.dir, "run"), Plain: true,
		StartTimeout: 2 * timeout, Logger: b.logger,
	}
}

// program describes the plugin's program for checks that start it themselves.
func (b *bench) program() suite.Program {
	return suite.Program{Path: b.plugin.Path, Env: b.plugin.Env, Dir: b.dir, Contract: accelerator.Contract(), Timeout: 2 * timeout}
}

// asking is the suite's description of itself as the host.
var asking = &pb.DescribeRequest{AgentVersion: "conformance", NodeName: "conformance", Incarnation: "1"}
