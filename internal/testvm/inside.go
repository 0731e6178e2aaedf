package testvm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// shareKey on the kernel's command line becomes an environment variable of init.
	shareKey  = "BERTH_TEST_VM_SHARE"
	insideTmp = "/run/tmp"
)

// Init returns at once, unless this process is the first of a VM that Boot started. In the VM it
// sets up the system, runs the command and turns the VM off.
func Init() {
	share := os.Getenv(shareKey)
	if os.Getpid() != 1 || share == "" {
		return
	}
	err := begin(share)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test VM:", err)
	}
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {} // the kernel panics when the first process exits
}

func begin(share string) error {
	if err := mountSystem(share); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(Share, outputFile))
	if err != nil {
		return err
	}
	code, err := work(out)
	if err != nil {
		fmt.Fprintln(out, "test VM:", err)
		code = 1
	}
	status, err := os.Create(filepath.Join(Share, statusFile))
	if err != nil {
		return err
	}
	_, err = status.WriteString(strconv.Itoa(code))
	// Only these files are synced: a sync of everything would block on a file system whose server
	// is stopped.
	return errors.Join(err, out.Sync(), out.Close(), status.Sync(), status.Close())
}

// mountSystem mounts the few writable directories. The root is the host's and read-only.
func mountSystem(share string) error {
	for _, m := range []struct{ fs, at, data string }{
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""},
		{"tmpfs", "/run", ""},
		{"tmpfs", "/dev/shm", ""},
		{"hostfs", Share, share},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("none", m.at, m.fs, 0, m.data); err != nil {
			return fmt.Errorf("mount %s at %s: %w", m.fs, m.at, err)
		}
	}
	return os.MkdirAll(insideTmp, 0o1777)
}

func work(out *os.File) (int, error) {
	raw, err := os.ReadFile(filepath.Join(Share, jobFile))
	if err != nil {
		return 0, err
	}
	var j job
	if err := json.Unmarshal(raw, &j); err != nil {
		return 0, err
	}
	modules := j.Machine.Modules
	for _, d := range j.Machine.Disks {
		if d.FS == "ext4" {
			modules = append(modules, "quota_v2") // the format of its quota files
		}
	}
	for _, m := range modules {
		if err := load(m); err != nil {
			return 0, err
		}
	}
	if err := loopbackUp(); err != nil {
		return 0, err
	}
	for i, d := range j.Machine.Disks {
		at := Mounted(d.Name)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return 0, err
		}
		if err := unix.Mount(fmt.Sprintf("/dev/ubd%c", 'b'+i), at, d.FS, 0, d.Options); err != nil {
			return 0, fmt.Errorf("mount %s: %w", d.Name, err)
		}
	}
	return run(j, out)
}

func run(j job, out *os.File) (int, error) {
	c := exec.Command(j.Command[0], j.Command[1:]...)
	c.Dir = j.Dir
	c.Stdout, c.Stderr = out, out
	c.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=" + insideTmp, "HOME=" + insideTmp}, j.Env...)
	err := c.Run()
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.ExitCode(), nil
	}
	return 0, err
}

func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return nil
}
