package kernel

import (
	"context"
	"fmt"
	"os"

	"github.com/berthhq/berth/agent/disk"
	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/internal/resource"
)

// makeDisk makes the directory of all that the container can fill.
func (k *Kernel) makeDisk(ctx context.Context) error {
	at := k.files().Disk()
	if k.m.cfg.Disks != nil {
		return k.m.cfg.Disks.Make(ctx, at, k.rec.request.DiskBytes)
	}
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	return os.Mkdir(at, 0o711)
}

func (k *Kernel) removeDisk() error { return k.m.removeDisk(k.ID) }

func (m *Manager) removeDisk(kernel string) error {
	at := mount.Files{Dir: m.dir(kernel)}.Disk()
	if m.cfg.Disks != nil {
		return m.cfg.Disks.Remove(at)
	}
	return os.RemoveAll(at)
}

// Disk returns what the kernel has written on the machine's disk, and what it may.
func (k *Kernel) Disk() (disk.Usage, error) {
	if k.m.cfg.Disks == nil {
		return disk.Usage{}, nil
	}
	return k.m.cfg.Disks.Usage(mount.Files{Dir: k.m.dir(k.ID)}.Disk())
}

// diskFull says that the kernel has used up its disk, or "".
func (k *Kernel) diskFull() string {
	u, err := k.Disk()
	switch {
	case err != nil || !u.Full():
		return ""
	case u.FullOfFiles():
		return fmt.Sprintf("the session had used up the %d files of its disk", u.MaxInodes)
	}
	return fmt.Sprintf("the session had used up its disk of %s", resource.FormatBytes(u.MaxBytes))
}
