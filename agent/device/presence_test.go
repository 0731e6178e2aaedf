package device

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/internal/testenv/wait"
)

// logged collects log lines.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}

// looking runs a manager with a mock plugin of one device whose scans are faulty from the start.
func looking(t *testing.T, look string, log *logged) (m *Manager, order func(look string)) {
	t.Helper()
	path, err := buildMock()
	if err != nil {
		t.Fatal(err)
	}
	dir := short(t)
	faults := filepath.Join(dir, "state/mock/faults")
	if err := os.MkdirAll(faults, 0o700); err != nil {
		t.Fatal(err)
	}
	order = func(look string) {
		t.Helper()
		file := filepath.Join(faults, "look")
		err := os.Remove(file)
		if look != "" {
			err = os.WriteFile(file, []byte(look), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if look != "" {
		order(look)
	}
	m, err = New(Config{
		Dir: dir, Node: "n", Version: "test", Incarnation: "1", Logger: slog.New(slog.NewTextHandler(log, nil)),
		Plugins: []PluginConfig{{Path: path, Force: true, ConfigJSON: []byte(`{"devices": 1}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { m.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	m.AwaitReports(ctx, timeout)
	return m, order
}

func reported(m *Manager) *agentpb.Plugin {
	for _, p := range describe(m).Plugins {
		if p.Name == "mock" {
			return p
		}
	}
	return &agentpb.Plugin{}
}

// checked reports whether the preflight consists of one check with the level and text.
func checked(p *agentpb.Plugin, level agentpb.PluginCheck_Level, text string) bool {
	return len(p.Checks) == 1 && p.Checks[0].Name == "driver" && p.Checks[0].Level == level && p.Checks[0].Text == text
}

// If the first scan of a plugin fails, there is no device to report the reason with.
func TestAFirstLookThatFails(t *testing.T) {
	log := &logged{}
	m, order := looking(t, "failed mock-smi prints no JSON", log)
	p := reported(m)
	if p.State != agentpb.Plugin_RUNNING || p.Message != "mock-smi prints no JSON" {
		t.Errorf("plugin %v", p)
	}
	if !log.has("plugin does not see all of its hardware") || !log.has("mock-smi prints no JSON") {
		t.Errorf("log: %s", log.text.String())
	}
	wait.Until(t, "the preflight reports it", func() bool {
		return checked(reported(m), agentpb.PluginCheck_ERROR, "mock-smi prints no JSON")
	})
	order("")
	wait.Until(t, "no device has a problem", func() bool {
		p := reported(m)
		return p.Message == "" && find(m, "mock:gpu-0") != nil && checked(p, agentpb.PluginCheck_OK, "1 imaginary devices")
	})
	if !log.has("plugin sees all of its hardware again") {
		t.Errorf("log: %s", log.text.String())
	}
	order("partial 2000 devices, of which the first 1024 are shown")
	wait.Until(t, "a warning", func() bool {
		return checked(reported(m), agentpb.PluginCheck_WARNING, "2000 devices, of which the first 1024 are shown")
	})
}

// While scans fail, devices are unknown instead of lost, also after the plugin was restarted and
// knows none of them.
func TestDevicesStayWhileALookFails(t *testing.T) {
	m, order := looking(t, "", &logged{})
	order("failed mock-smi prints no JSON")
	withheld := func(why string) func() bool {
		return func() bool {
			d := find(m, "mock:gpu-0")
			return d != nil && !d.Allocatable && d.Health == agentpb.Device_UNKNOWN && len(d.RejectReasons) == 1 && d.RejectReasons[0] == why
		}
	}
	wait.Until(t, "the device is withheld", withheld("mock-smi prints no JSON"))
	order("failed mock-smi does not end")
	kill(t, m)
	wait.Until(t, "the device is withheld by the next process", withheld("mock-smi does not end"))
	order("")
	wait.Until(t, "the device is back", func() bool { d := find(m, "mock:gpu-0"); return d != nil && d.Allocatable })
}

func TestAPluginWhoseLookHangsIsRestarted(t *testing.T) {
	log := &logged{}
	m, order := looking(t, "", log)
	m.hangTimeout = 10 * time.Millisecond
	order("hanging the driver does not answer")
	wait.Until(t, "it is restarted", func() bool { return reported(m).Restarts > 0 })
	if !log.has("its scan of the hardware has not ended for 10ms") {
		t.Errorf("log: %s", log.text.String())
	}
	order("")
	wait.Until(t, "it sees its device", func() bool { d := find(m, "mock:gpu-0"); return d != nil && d.Allocatable })
}

func TestRestartOfAPlugin(t *testing.T) {
	m, _ := looking(t, "", &logged{})
	if err := m.Restart("other", "a test"); !errdefs.IsNotFound(err) {
		t.Errorf("a plugin that does not exist: %v", err)
	}
	if err := m.Restart("mock", "a test"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it is another process", func() bool { p := reported(m); return p.Restarts == 1 && p.State == agentpb.Plugin_RUNNING })

	path := m.plugins[0].cfg.Path
	m.plugins[0].cfg.Path += "-gone"
	kill(t, m)
	wait.Until(t, "it is given up", func() bool { return reported(m).State == agentpb.Plugin_DISABLED })
	m.plugins[0].cfg.Path = path
	wait.Until(t, "it runs again", func() bool {
		if err := m.Restart("mock", "a test"); err != nil {
			t.Fatal(err)
		}
		return reported(m).State == agentpb.Plugin_RUNNING
	})
	wait.Until(t, "its device can be had", func() bool { d := find(m, "mock:gpu-0"); return d != nil && d.Allocatable })
}
