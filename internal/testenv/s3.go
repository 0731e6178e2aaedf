package testenv

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// S3Server is an S3 server of one test.
type S3Server struct {
	URL       string
	AccessKey string
	Secret    string
	Region    string
	Root      string // a directory with one for each bucket
}

// S3 starts a versitygw for this test. Without its program, which make test builds, the
// test is skipped.
func S3(t testing.TB) S3Server {
	t.Helper()
	bin := filepath.Join(Root(t), "bin", "tools", "versitygw")
	if _, err := os.Stat(bin); err != nil {
		t.Skipf("needs an S3 server: make bin/tools/versitygw (%v)", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	s := S3Server{URL: "http://" + address, AccessKey: "berth-test", Secret: "a secret of the test", Region: "us-east-1", Root: t.TempDir()}
	cmd := exec.Command(bin, "--access", s.AccessKey, "--secret", s.Secret, "--region", s.Region, "--port", address, "--quiet", "posix", s.Root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getenv("BERTH_TEST_LOG") != "" {
		cmd.Stderr = os.Stderr
	}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // the kernel sends its signal when the thread ends
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(s.URL)
		if err == nil {
			resp.Body.Close()
			return s
		}
		if time.Now().After(end) {
			t.Fatal(fmt.Errorf("versitygw does not answer: %w", err))
		}
	}
}
