package testenv

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// S3Server is an S3 server of one test.
type S3Server struct {
	URL       string
	AccessKey string
	Secret    string
	Region    string
	Root      string // directory with a subdirectory for each bucket
}

// S3 starts a versitygw for this test. The test is skipped without its program, which make test
// builds.
func S3(t testing.TB) S3Server {
	t.Helper()
	bin := filepath.Join(Root(t), "bin", "tools", "versitygw")
	if _, err := os.Stat(bin); err != nil {
		t.Skipf("needs an S3 server: make bin/tools/versitygw (%v)", err)
	}
	s := S3Server{AccessKey: "berth-" + uuid.NewString(), Secret: "a secret of the test", Region: "us-east-1", Root: t.TempDir()}
	var err error
	for range 10 { // another process may take the free port first
		if err = s.start(t, bin); err == nil {
			return s
		}
	}
	t.Fatal(err)
	return s
}

// start runs it on a free port until the end of the test.
func (s *S3Server) start(t testing.TB, bin string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := l.Addr().String()
	l.Close()
	s.URL = "http://" + address
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
		return err
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(s.AccessKey, s.Secret, ""), Region: s.Region})
	if err != nil {
		return err
	}
	for end := time.Now().Add(2 * time.Minute); ; {
		_, err := client.ListBuckets(t.Context())
		if err == nil { // the answer is from this server, because another one does not have the key
			return nil
		}
		select {
		case <-ended:
			return errors.New("versitygw ended at once")
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("versitygw does not answer: %w", err)
		}
	}
}
