package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/berthhq/berth/manager"
)

// firstLogin is stored in the data directory, readable only by root, until the generated
// password is changed. The demo logs in with it.
type firstLogin struct {
	URL      string `json:"url"`
	Email    string `json:"email"`
	Password string `json:"password"`
}

// keepFirstLogin writes the file if the password is new, updates its URL as long as the password is
// valid, and then removes it.
func keepFirstLogin(ctx context.Context, m *manager.Manager, path string, now firstLogin) error {
	if now.Password == "" {
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		kept := firstLogin{}
		if err := json.Unmarshal(b, &kept); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		initial, err := m.InitialPassword(ctx, kept.Email)
		if err != nil {
			return err
		}
		if !initial {
			return os.Remove(path)
		}
		now.Email, now.Password = kept.Email, kept.Password
	}
	b, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// pageURL returns the URL of the page: the public one, or that of the listener.
func pageURL(cfg manager.Config) string {
	if cfg.PublicURL != "" {
		return strings.TrimRight(cfg.PublicURL, "/")
	}
	return "http://" + cfg.HTTP.Addr().String()
}

// printFirstLogin prints the password on a terminal. Otherwise it prints only the path of the
// file, because the output of a service stays in the journal.
func printFirstLogin(email, password, file string) {
	where := "in " + file
	if term.IsTerminal(int(os.Stdout.Fd())) {
		where = password
	}
	fmt.Printf("\n  First superadmin: %s\n  Password:         %s\n  (generated; change it after the first login)\n", email, where)
}

// usable waits until this machine's agent has recovered its kernels after a restart and is
// reachable, because only then sessions can start.
func (p *platform) usable(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.agent.Ready():
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !p.manager.Reaches(p.host) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
