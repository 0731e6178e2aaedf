package lazy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/containerd/errdefs"
)

// Mount is the file system of an image, whose process may have been started by an earlier agent.
type Mount struct {
	dir    string
	client *http.Client
	gone   chan struct{}
}

// Check returns an error with the reason why this machine cannot start images before they are complete.
func Check() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("the agent is not root: %w", errdefs.ErrFailedPrecondition)
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("/dev/fuse cannot be opened, so the kernel lacks FUSE: %w: %w", err, errdefs.ErrFailedPrecondition)
	}
	return f.Close()
}

// Start starts the process of an image and returns when its files can be read. An error of the class
// InvalidArgument or DataLoss means that the image must be pulled as a whole.
func Start(ctx context.Context, command []string, r Request) (*Mount, error) {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if err := run(ctx, command, r.Dir, text); err != nil {
		return nil, errors.Join(err, Remove(r.Dir))
	}
	m, err := Attach(ctx, r.Dir)
	if err != nil {
		return nil, errors.Join(err, Remove(r.Dir))
	}
	return m, nil
}

// run starts the process and waits for its answer.
func run(ctx context.Context, command []string, dir string, request []byte) error {
	log, err := os.OpenFile(filepath.Join(dir, logName), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr, cmd.Dir = log, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the agent
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the process: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			_ = cmd.Process.Kill()
		case <-ended:
		}
	}()
	_, writeErr := in.Write(request)
	in.Close()
	var a answer
	err = json.NewDecoder(out).Decode(&a)
	close(ended)
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return errors.Join(fmt.Errorf("the process ended before it served the files: %w", err), writeErr)
	case a.Unsuitable:
		return fmt.Errorf("%s: %w", a.Error, errdefs.ErrInvalidArgument)
	case a.Error != "":
		return fmt.Errorf("%s: %w", a.Error, errdefs.ErrUnavailable)
	}
	return nil
}

// Attach connects to the process of an image. It returns NotFound if there is none.
func Attach(ctx context.Context, dir string) (*Mount, error) {
	m := &Mount{dir: dir, gone: make(chan struct{})}
	m.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		// A path through the directory's descriptor is short enough for a socket.
		d, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socketName))
	}}}
	res, err := m.get(context.WithoutCancel(ctx), "alive")
	if err != nil {
		return nil, fmt.Errorf("image in %s: no process serves it: %w: %w", dir, err, errdefs.ErrNotFound)
	}
	go func() {
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		close(m.gone)
	}()
	return m, nil
}

func (m *Mount) get(ctx context.Context, what string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://lazy/"+what, nil)
	if err != nil {
		return nil, err
	}
	return m.client.Do(req)
}

func (m *Mount) load(ctx context.Context, what string, into any) error {
	res, err := m.get(ctx, what)
	if err != nil {
		return fmt.Errorf("ask the process of the image: %w: %w", err, errdefs.ErrUnavailable)
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(into)
}

// Root returns the directory with the files of the image.
func (m *Mount) Root() string { return Root(m.dir) }

// Root returns the directory with the files of the image of a directory.
func Root(dir string) string { return filepath.Join(dir, rootName) }

// Gone is closed when the process has ended.
func (m *Mount) Gone() <-chan struct{} { return m.gone }

// Status returns the state.
func (m *Mount) Status(ctx context.Context) (s Status, err error) {
	return s, m.load(ctx, "status", &s)
}

// Request returns the request that the process was started with.
func (m *Mount) Request(ctx context.Context) (r Request, err error) {
	return r, m.load(ctx, "request", &r)
}

// Remove unmounts the files, which ends the process once no container uses them, and removes the directory.
func Remove(dir string) error {
	if err := detach(dir); err != nil {
		return fmt.Errorf("unmount the image in %s: %w", dir, err)
	}
	return os.RemoveAll(dir)
}
