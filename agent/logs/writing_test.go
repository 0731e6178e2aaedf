package logs

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/containerd/errdefs"
)

func newPipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	return read, write
}

// sleeper starts a process with these outputs and returns its pid.
func sleeper(t *testing.T, stdout, stderr *os.File) int {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

func TestForgedOutputIsNotRead(t *testing.T) {
	dir := t.TempDir()
	outRead, out := newPipe(t)
	errRead, stderr := newPipe(t)
	_, other := newPipe(t)
	file, err := os.CreateTemp(t.TempDir(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	device, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	if err := NotePipes(dir, outRead, errRead); err != nil {
		t.Fatal(err)
	}
	pipes, err := Pipes(dir, sleeper(t, out, stderr))
	if err != nil || len(pipes) != 2 {
		t.Fatalf("the pipes of the start: %v, %v", pipes, err)
	}
	if _, err := out.WriteString("line\n"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	if n, err := pipes[0].Read(buf); err != nil || string(buf[:n]) != "line\n" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	for _, f := range pipes {
		f.Close()
	}
	for name, forged := range map[string]*os.File{"another pipe": other, "a file": file, "a device": device} {
		if pipes, err := Pipes(dir, sleeper(t, out, forged)); !errdefs.IsFailedPrecondition(err) {
			t.Errorf("%s: %v, %v", name, pipes, err)
		}
	}
}

func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	if err := AwaitNoWriter(t.Context(), dir); !errdefs.IsNotFound(err) {
		t.Errorf("no writer: %v", err)
	}
	first, err := Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(dir); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("a second writer: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := AwaitNoWriter(short, dir); err == nil || short.Err() == nil {
		t.Errorf("while it is written: %v", err)
	}
	gone := make(chan error, 1)
	go func() { gone <- AwaitNoWriter(t.Context(), dir) }()
	first.Close()
	if err := <-gone; err != nil {
		t.Errorf("after the writer: %v", err)
	}
	second, err := Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}
