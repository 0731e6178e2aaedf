package lazy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Names in the directory of an image.
const (
	rootName   = "root"   // where its files are mounted
	socketName = "socket" // of the process
	logName    = "log"
)

// answer is the line that the process writes once it serves the files, or cannot.
type answer struct {
	Files      int
	Error      string
	Unsuitable bool // the image can be used only after it was pulled as a whole
}

// Main is the process of one image. It reads a Request from in, mounts the files, writes one line to out,
// and serves the files until they are unmounted.
func Main(in io.Reader, out io.WriteCloser) error {
	debug.SetMemoryLimit(memory)
	debug.SetGCPercent(25) // most of it is buffers that are used once
	var r Request
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	serve, files, err := start(r)
	a := answer{Files: files}
	if err != nil {
		a = answer{Error: err.Error(), Unsuitable: errdefs.IsInvalidArgument(err) || errdefs.IsDataLoss(err)}
	}
	if told := json.NewEncoder(out).Encode(a); err == nil && told != nil {
		err = errors.Join(told, detach(r.Dir)) // the agent has ended
	}
	out.Close()
	if err != nil {
		return err
	}
	serve()
	return nil
}

func start(r Request) (serve func(), files int, err error) {
	// The path of a socket is limited to 107 bytes, so it is relative.
	if err := os.Chdir(r.Dir); err != nil {
		return nil, 0, err
	}
	i, err := open(context.Background(), r)
	if err != nil {
		return nil, 0, err
	}
	l, err := net.Listen("unix", socketName)
	if err != nil {
		return nil, 0, err
	}
	if err := errors.Join(os.Chmod(socketName, 0o600), os.MkdirAll(rootName, 0o700)); err != nil {
		return nil, 0, err
	}
	at := filepath.Join(r.Dir, rootName)
	s, err := fuse.NewServer(newFileSystem(i), at, &fuse.MountOptions{
		DirectMountStrict: true, DirectMountFlags: unix.MS_RDONLY | unix.MS_NODEV, AllowOther: true,
		Options: []string{"default_permissions"}, FsName: "berth-lazy", Name: "berth",
		MaxWrite: 1 << 20, MaxReadAhead: 1 << 20, MaxBackground: readers, EnableSymlinkCaching: true,
		Logger: log.New(os.Stderr, "", log.LstdFlags),
	})
	if err != nil {
		return nil, 0, fmt.Errorf("mount the files of the image: %w", err)
	}
	go s.Serve()
	if err := s.WaitMount(); err != nil {
		return nil, 0, fmt.Errorf("mount the files of the image: %w", err)
	}
	go control(l, r, i)
	return func() {
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM) // the machine shuts down
		go func() {
			<-stop
			_ = unix.Unmount(at, unix.MNT_DETACH)
			os.Exit(0)
		}()
		signal.Ignore(syscall.SIGHUP, syscall.SIGINT)
		s.Wait()
	}, len(i.tree.nodes), nil
}

// control answers agents. Only root can open the socket.
func control(l net.Listener, r Request, i *image) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(i.status()) })
	// An agent that was started again completes the image with it.
	mux.HandleFunc("GET /request", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(r) })
	// The answer never ends, so its end means that the process has ended.
	mux.HandleFunc("GET /alive", func(w http.ResponseWriter, q *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-q.Context().Done()
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	_ = server.Serve(l)
}

// detach removes the mount. Open files stay readable while the process serves them.
func detach(dir string) error {
	err := unix.Unmount(filepath.Join(dir, rootName), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // not mounted
		return nil
	}
	return err
}
