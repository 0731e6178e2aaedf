package storagetest

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/storage"
	"github.com/berthhq/berth/storage/storagepb"
)

// A test program with this environment variable runs a proxy on a free port. The value is the JSON
// of its configuration and the ticket key.
const childEnv = "STORAGE_TEST_PROXY"

type childConfig struct {
	Dir, Mount, VFS, Key string
}

// child runs the proxy of such a process, until the process is killed.
func child(text string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	key, err := hex.DecodeString(c.Key)
	if err != nil {
		return err
	}
	p, err := storage.New(storage.Config{Name: "child", Dir: c.Dir, ObjectStorages: []string{"127.0.0.1"}, Volumes: []storage.VolumeConfig{{
		Name: "main", Backend: c.VFS, MountPath: c.Mount, Create: true,
	}}})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = p.GRPC().Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	watch, err := storagepb.NewStorageClient(conn).Watch(context.Background(), &storagepb.WatchRequest{TicketKeys: [][]byte{key}})
	if err != nil {
		return err
	}
	if _, err := watch.Recv(); err != nil { // now the key is known
		return err
	}
	fmt.Println(httptest.NewServer(http.StripPrefix("/storage", p.Handler())).URL, l.Addr())
	return p.Run(context.Background())
}

// StartChild starts a proxy as a process of its own and points the host at it.
func (h *Host) StartChild() *exec.Cmd {
	h.TB.Helper()
	config, err := json.Marshal(childConfig{Dir: h.Config.Dir, Mount: h.Mount, VFS: VFS, Key: hex.EncodeToString(h.Signer.PublicKey())})
	if err != nil {
		h.TB.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+string(config))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.TB.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.TB.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		h.TB.Fatalf("child: %v", err)
	}
	url, control, _ := strings.Cut(strings.TrimSpace(line), " ")
	h.HTTP = &httptest.Server{URL: url}
	conn, err := grpc.NewClient(control, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		h.TB.Fatal(err)
	}
	h.TB.Cleanup(func() { conn.Close() })
	h.API, h.Objects = storagepb.NewStorageClient(conn), storagepb.NewObjectsClient(conn)
	return cmd
}

// Kill kills a child with SIGKILL.
func (h *Host) Kill(cmd *exec.Cmd) {
	h.TB.Helper()
	if err := cmd.Process.Kill(); err != nil {
		h.TB.Fatal(err)
	}
	_ = cmd.Wait() // killed
}

// ChildrenOf returns the child processes of a process.
func ChildrenOf(t *testing.T, pid int) (out []int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		raw, err := os.ReadFile(task)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, child := range strings.Fields(string(raw)) {
			if n, err := strconv.Atoi(child); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// Body reads the body of an answer.
func Body(t testing.TB, resp *http.Response) []byte {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// PluginPid returns the process of the plugin, once the plugins of earlier tests have ended.
func PluginPid(t *testing.T) int {
	t.Helper()
	var pids []int
	wait.Until(t, "one plugin", func() bool {
		pids = PluginPids(t)
		return len(pids) == 1
	})
	return pids[0]
}

// PluginPids returns the processes of all plugins that this test binary started.
func PluginPids(t *testing.T) (pids []int) {
	t.Helper()
	for _, pid := range ChildrenOf(t, os.Getpid()) {
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); exe == VFS {
			pids = append(pids, pid)
		}
	}
	return pids
}
