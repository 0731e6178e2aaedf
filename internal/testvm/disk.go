package testvm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Disk is a scratch disk that is created for each environment.
type Disk struct {
	Name    string
	FS      string   // type of the file system
	Mkfs    []string // arguments of mkfs.FS
	Bytes   int64
	Options string // of mount
}

// XFS returns a disk with project quotas.
func XFS(name string) Disk {
	return Disk{Name: name, FS: "xfs", Mkfs: []string{"-q"}, Bytes: 512 << 20, Options: "prjquota"}
}

// Ext4 returns a disk with project quotas.
func Ext4(name string) Disk {
	return Disk{Name: name, FS: "ext4", Mkfs: []string{"-q", "-O", "quota,project", "-E", "quotatype=prjquota"}, Bytes: 512 << 20, Options: "prjquota"}
}

// make creates the disk's image in dir and returns its path.
func (d Disk) make(dir string) (string, error) {
	mkfs, err := tool("mkfs." + d.FS)
	if err != nil {
		return "", err
	}
	image := filepath.Join(dir, d.Name+".img")
	f, err := os.Create(image)
	if err != nil {
		return "", err
	}
	if err := errors.Join(f.Truncate(d.Bytes), f.Close()); err != nil {
		return "", err
	}
	if out, err := exec.Command(mkfs, append(d.Mkfs, image)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", mkfs, err, out)
	}
	return image, nil
}

// tool finds an administrator's program, whose directory may not be in PATH.
func tool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", impossible(name + " is not installed (make setup)")
}

// MountLoop creates the disks in dir and mounts each below at. down unmounts them.
func MountLoop(disks []Disk, dir, at string) (down func() error, err error) {
	var mounted []string
	down = func() (err error) {
		for _, m := range mounted {
			if e := unix.Unmount(m, 0); e != nil {
				err = errors.Join(err, fmt.Errorf("unmount %s: %w", m, e), unix.Unmount(m, unix.MNT_DETACH))
			}
		}
		return err
	}
	if os.Geteuid() != 0 {
		return down, impossible("only root mounts loop devices")
	}
	for _, d := range disks {
		image, err := d.make(dir)
		if err != nil {
			return down, err
		}
		where := filepath.Join(at, d.Name)
		if err := os.Mkdir(where, 0o755); err != nil {
			return down, err
		}
		// mount(8) attaches a free loop device and detaches it at the unmount.
		out, err := exec.Command("mount", "-t", d.FS, "-o", "loop,"+d.Options, image, where).CombinedOutput()
		if err != nil {
			return down, impossible(fmt.Sprintf("mount %s with %s: %v: %s", d.FS, d.Options, err, firstLine(out)))
		}
		mounted = append(mounted, where)
	}
	return down, nil
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return line
}
