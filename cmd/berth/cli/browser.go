package cli

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/output"
)

// OpenAddress opens the address of an app in the browser of a display. Without a display, or if only is
// true, it only prints the address.
func (a *App) OpenAddress(ctx context.Context, opened *client.OpenedApp, only bool) error {
	address := opened.Address
	if program := browser(a.Env); only || program == "" {
		address = opened.URL
	} else if err := browse(ctx, program, opened.URL); err != nil {
		a.Note("berth: %s", OneLine(err))
		address = opened.URL
	}
	return a.Printer().Print(opened, func() error {
		if address == opened.URL {
			a.Note("This address opens the app once, within %s:", output.Duration(opened.ExpiresAt.Sub(a.Now()).Round(time.Second)))
		}
		_, err := fmt.Fprintln(a.Out, output.Clean(address))
		return err
	})
}

// Browse opens an address in the browser of a display, and reports whether it did. After a failure, which it prints, people open
// the address themselves.
func (a *App) Browse(ctx context.Context, address string) bool {
	program := browser(a.Env)
	if program == "" {
		return false
	}
	if err := browse(ctx, program, address); err != nil {
		a.Note("berth: %s", OneLine(err))
		return false
	}
	return true
}

// browser returns the program that opens addresses on the display of this machine, or empty
// without a display.
func browser(env func(string) string) string {
	name := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		name = "open"
		if env("SSH_CONNECTION") != "" {
			return ""
		}
	case env("DISPLAY") == "" && env("WAYLAND_DISPLAY") == "":
		return ""
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// settle is how long a browser has to report a failure. Some programs return only when the
// browser ends.
const settle = 5 * time.Second

// browse opens an address. Only web addresses are passed on, because the program can start
// others than a browser.
func browse(ctx context.Context, program, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("the server returned %q, which is not a web address: %w", address, errdefs.ErrInternal)
	}
	cmd := exec.Command(program, address) // continues after berth ends
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open the browser: %w", err)
	}
	failed := make(chan error, 1)
	go func() { failed <- cmd.Wait() }()
	select {
	case err := <-failed:
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
	case <-time.After(settle):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
