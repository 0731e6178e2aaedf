package runner

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/berthhq/berth/agent/logs"
)

// LogSpec is the only argument of the log command: the directory and the limits of the log. There
// is only one because the shim passes arguments in no particular order.
type LogSpec struct {
	Dir       string
	FileBytes int64
	Files     int
}

// String returns the format that ParseLogSpec parses: BYTES:FILES:DIR.
func (s LogSpec) String() string { return fmt.Sprintf("%d:%d:%s", s.FileBytes, s.Files, s.Dir) }

// ParseLogSpec is the inverse of LogSpec.String.
func ParseLogSpec(text string) (LogSpec, error) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return LogSpec{}, fmt.Errorf("log %q is not BYTES:FILES:DIR", text)
	}
	size, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return LogSpec{}, fmt.Errorf("log file size: %w", err)
	}
	files, err := strconv.Atoi(parts[1])
	if err != nil {
		return LogSpec{}, fmt.Errorf("number of log files: %w", err)
	}
	return LogSpec{Dir: parts[2], FileBytes: size, Files: files}, nil
}

// Log is the shim's binary logger, and replaces a logger that died: the container's stdout and
// stderr are descriptors 3 and 4, and closing descriptor 5 reports that it is ready. It exits when
// the container's last writer has exited. It ignores signals, because the shim sends SIGTERM while
// output may still be in the pipes.
func Log(spec string) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	s, err := ParseLogSpec(spec)
	if err != nil {
		return complain(exitUsage, "%v", err)
	}
	alive, err := logs.Claim(s.Dir)
	if err != nil {
		return complain(1, "%v", err)
	}
	defer alive.Close()
	output := []*os.File{os.NewFile(3, "stdout"), os.NewFile(4, "stderr")}
	if err := logs.NotePipes(s.Dir, output...); err != nil {
		return complain(1, "%v", err)
	}
	w, err := logs.NewWriter(s.Dir, s.FileBytes, s.Files)
	if err != nil {
		return complain(1, "%v", err)
	}
	ready := os.NewFile(5, "ready")
	// The second version of the shim's protocol expects one byte, to distinguish a ready logger
	// from a dead one.
	_, _ = ready.Write([]byte{1})
	ready.Close()

	var wg sync.WaitGroup
	for _, f := range output {
		wg.Go(func() { drain(f, w) })
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		return complain(1, "%v", err)
	}
	return 0
}

// drain never stops reading: when the disk is full, output is lost instead of blocking the
// container.
func drain(r io.Reader, w io.Writer) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			_, _ = w.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}
