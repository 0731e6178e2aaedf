package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const mpsInContainer = "/usr/local/nvidia/berth/mps"

// servers are the plugin's MPS servers: at most one for a GPU. A server has clients of one trust
// domain only, because a crash of one client can crash the others. The zero value has no servers.
type servers struct {
	mu  sync.Mutex
	all map[string]*server // by GPU
}

type server struct {
	control
	domain  string
	holders map[string]bool // allocations
}

// mpsServer returns the control of a GPU's server. Its file names are short, because the paths of
// sockets are limited.
func mpsServer(h *driver.Host, gpu string) control {
	sum := sha256.Sum256([]byte(h.State() + "\x00" + gpu))
	name := fmt.Sprintf("%x", sum[:6])
	dir := h.State("mps", name)
	return control{
		host: h, gpu: gpu, dir: dir, pipe: filepath.Join(dir, "pipe"), log: filepath.Join(dir, "log"),
		// The memory that the server shares with its clients.
		shm: h.Dev("shm", "berth-mps-"+name),
	}
}

// join adds an allocation to a GPU's server, which is started for the first one.
func (s *servers) join(ctx context.Context, at *driver.Host, gpu, domain, allocation string) (control, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.all[gpu]; x != nil {
		if x.domain != domain {
			return control{}, status.Errorf(codes.ResourceExhausted, "device_id: the MPS server of %s serves another project", gpu)
		}
		x.holders[allocation] = true
		return x.control, nil
	}
	c := mpsServer(at, gpu)
	if err := c.start(ctx); err != nil {
		return control{}, status.Errorf(codes.Unavailable, "device_id: start the MPS server of %s: %v", gpu, errors.Join(err, c.end(ctx)))
	}
	s.add(c, domain, allocation)
	return c, nil
}

func (s *servers) add(c control, domain, allocation string) {
	if s.all == nil {
		s.all = map[string]*server{}
	}
	if s.all[c.gpu] == nil {
		s.all[c.gpu] = &server{c, domain, map[string]bool{}}
	}
	s.all[c.gpu].holders[allocation] = true
}

// leave removes an allocation and stops the server if it was the last one.
func (s *servers) leave(ctx context.Context, allocation string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for gpu, x := range s.all {
		if !x.holders[allocation] {
			continue
		}
		if len(x.holders) == 1 {
			if err := x.end(ctx); err != nil {
				return err
			}
			delete(s.all, gpu)
		}
		delete(x.holders, allocation)
	}
	return nil
}

// resume adopts the servers of an earlier process that live allocations use, and restarts those
// that have exited.
func (s *servers) resume(ctx context.Context, at *driver.Host, live []*pb.LiveAllocation) []*pb.RestoreProblem {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
	for _, l := range live {
		var h held
		if json.Unmarshal(l.GetState(), &h) == nil && h.GPU != "" {
			s.add(mpsServer(at, h.GPU), h.Domain, l.GetAllocationId())
		}
	}
	var out []*pb.RestoreProblem
	for _, gpu := range slices.Sorted(maps.Keys(s.all)) {
		x := s.all[gpu]
		if x.alive(ctx) {
			continue
		}
		if err := x.start(ctx); err != nil {
			for _, id := range slices.Sorted(maps.Keys(x.holders)) {
				out = append(out, &pb.RestoreProblem{AllocationId: id, DeviceId: gpu, Message: "its MPS server: " + err.Error()})
			}
		}
	}
	return out
}

// sweep stops the servers without allocations and returns a description of them.
func (s *servers) sweep(ctx context.Context, at *driver.Host) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := map[string]bool{}
	for _, x := range s.all {
		mine[x.dir] = true
	}
	var leaks []string
	dirs, _ := filepath.Glob(at.State("mps", "*"))
	for _, dir := range dirs {
		if mine[dir] {
			continue
		}
		gpu, err := os.ReadFile(filepath.Join(dir, "gpu"))
		if err != nil { // it was never started
			_ = os.RemoveAll(dir)
			continue
		}
		leak := "MPS server of " + strings.TrimSpace(string(gpu))
		if err := mpsServer(at, strings.TrimSpace(string(gpu))).end(ctx); err != nil {
			leak += ", which cannot be ended: " + err.Error()
		}
		leaks = append(leaks, leak)
	}
	_ = os.Remove(at.State("mps")) // fails unless it is empty
	return leaks
}

const (
	// mpsControl is NVIDIA's program that starts and controls a GPU's server.
	mpsControl = "nvidia-cuda-mps-control"
	// mpsTimeout is a quarter of Prepare's deadline.
	mpsTimeout = 15 * time.Second
)

// control starts, queries and stops the MPS server of one GPU.
type control struct {
	host                *driver.Host
	gpu                 string
	dir, pipe, log, shm string
}

// findControl finds NVIDIA's program in PATH or below the driver's root.
func findControl(h *driver.Host) (string, error) {
	file, err := h.Find(mpsControl)
	if own := h.Root("usr/bin", mpsControl); err != nil && driver.Exists(own) {
		return own, nil
	}
	return file, err
}

// command adds the directory of NVIDIA's programs to PATH, because the program starts another one.
func (c control) command(ctx context.Context, program, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{
		"PATH=" + filepath.Dir(program) + ":/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "CUDA_VISIBLE_DEVICES=" + c.gpu,
		"CUDA_MPS_PIPE_DIRECTORY=" + c.pipe, "CUDA_MPS_LOG_DIRECTORY=" + c.log,
	}
	cmd.WaitDelay = time.Second
	return cmd
}

// start starts the server with its own /dev/shm, which it shares with its clients but not with the
// rest of the host.
func (c control) start(ctx context.Context) error {
	program, err := findControl(c.host)
	if err != nil {
		return err
	}
	for _, dir := range []string{c.pipe, c.log} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := c.share(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.dir, "gpu"), []byte(c.gpu+"\n"), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mpsTimeout)
	defer cancel()
	cmd := c.command(ctx, program, "unshare", "--mount", "--propagation", "private", "sh", "-c",
		`mount --bind "$1" /dev/shm && exec "$2" -d`, "sh", c.shm, program)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it must outlive the plugin, as its clients do
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s -d: %w", mpsControl, err)
	}
	for !c.alive(ctx) {
		select {
		case <-ctx.Done():
			return errors.New("it does not answer")
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// share creates the directory that replaces /dev/shm. It returns an error if another user has
// created something at its path.
func (c control) share() error {
	if err := os.MkdirAll(c.shm, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(c.shm)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", c.shm)
	}
	return os.Chmod(c.shm, 0o777|os.ModeSticky) // the mode of /dev/shm, regardless of the umask
}

// send sends a command to the server.
func (c control) send(ctx context.Context, order string) error {
	program, err := findControl(c.host)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mpsTimeout)
	defer cancel()
	cmd := c.command(ctx, program, program)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(order+"\n"), &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %s: %w: %.100q", mpsControl, order, err, said.String())
	}
	return nil
}

func (c control) alive(ctx context.Context) bool { return c.send(ctx, "get_server_list") == nil }

// end stops the server, kills it if it does not exit, and removes its files.
func (c control) end(ctx context.Context) error {
	if pid := c.pid(); pid > 0 {
		_ = c.send(ctx, "quit")
		if !c.gone(ctx) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if !c.gone(ctx) {
			return fmt.Errorf("process %d has not ended", pid)
		}
	}
	return errors.Join(os.RemoveAll(c.shm), os.RemoveAll(c.dir))
}

// gone waits until the server has exited.
func (c control) gone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, mpsTimeout/3)
	defer cancel()
	for c.pid() > 0 {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}

// pid returns the pid of the server's control process, or 0. The pid in the file may have been
// reused by another process.
func (c control) pid() int {
	text, err := os.ReadFile(filepath.Join(c.pipe, mpsControl+".pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || !bytes.Contains(env, []byte("CUDA_MPS_PIPE_DIRECTORY="+c.pipe+"\x00")) {
		return 0
	}
	return pid
}
