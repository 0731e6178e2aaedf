package kernel

import (
	"context"
	"fmt"
	"os"

	"github.com/berthhq/berth/agent/disk"
	"github.com/berthhq/berth/agent/mount"
	"github.com/berthhq/berth/internal/resource"
)

// makeDisk creates the limited directory that contains everything the container can write.
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

// Disk returns the disk space that the kernel uses and its limit.
func (k *Kernel) Disk() (disk.Usage, error) {
	if k.m.cfg.Disks == nil {
		return disk.Usage{}, nil
	}
	return k.m.cfg.Disks.Usage(mount.Files{Dir: k.m.dir(k.ID)}.Disk())
}

// diskFull returns a message if the kernel has used up its disk space, and "" otherwise.
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
