package qgroup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// Mode is how a file system accounts usage.
type Mode string

// The modes.
const (
	Off Mode = "off"
	// Full counts shared blocks for each subvolume that uses them.
	Full Mode = "full"
	// Simple counts a block for the subvolume that wrote it, for as long as any subvolume uses it:
	// a clone does not count for its owner. It costs less, never needs a rescan, and requires Linux
	// 6.7.
	Simple Mode = "simple"
)

// Status is the state of a file system's quotas.
type Status struct {
	Mode Mode
	// Rescanning means that a scan is running and the usage is still too low.
	Rescanning bool
	// Inconsistent means that the kernel has marked the usage as wrong; Rescan repairs it.
	Inconsistent bool
}

// Exact reports whether usage, and therefore limits, are reliable.
func (s Status) Exact() bool { return s.Mode != Off && !s.Rescanning && !s.Inconsistent }

const (
	statusOn           = 1 << 0
	statusRescan       = 1 << 1
	statusInconsistent = 1 << 2
	statusSimple       = 1 << 3

	enableFull   = 1
	disable      = 2
	enableSimple = 4
)

// ReadStatus returns the state of the quotas.
func ReadStatus(dir *os.File) (Status, error) {
	s := Status{Mode: Off}
	err := search(dir, quotaTree, span{kind: groupStatus}, func(_ uint64, item []byte) {
		if len(item) < 24 { // version, generation, flags, …
			return
		}
		flags := binary.LittleEndian.Uint64(item[16:])
		switch {
		case flags&statusOn == 0:
			return
		case flags&statusSimple != 0:
			s.Mode = Simple
		default:
			s.Mode = Full
		}
		s.Rescanning = flags&statusRescan != 0
		s.Inconsistent = flags&statusInconsistent != 0 && !s.Rescanning
	})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return s, fmt.Errorf("read quota status: %w", err)
	}
	return s, nil
}

// Enable enables quotas. In full mode, a rescan of existing data begins; limits are too permissive
// until it ends. It returns EEXIST if another mode is enabled: quotas would have to be disabled
// first.
func Enable(dir *os.File, m Mode) error {
	have, err := ReadStatus(dir)
	if err != nil {
		return err
	}
	if have.Mode == m {
		return nil
	}
	if have.Mode != Off {
		return fmt.Errorf("enable %s quotas while they are %s: %w", m, have.Mode, unix.EEXIST)
	}
	command := map[Mode]uint64{Full: enableFull, Simple: enableSimple}[m]
	if err := ioctl(dir, iocControl, &controlArgs{command: command}); err != nil {
		return fmt.Errorf("enable %s quotas: %w", m, err)
	}
	return nil
}

// Disable disables quotas. All groups and limits are lost.
func Disable(dir *os.File) error {
	if err := ioctl(dir, iocControl, &controlArgs{command: disable}); err != nil && !errors.Is(err, unix.ENOTCONN) {
		return fmt.Errorf("disable quotas: %w", err)
	}
	return nil
}

// Rescan starts a rescan unless one is running, and does not wait for it.
func Rescan(dir *os.File) error {
	if err := ioctl(dir, iocRescan, &rescanArgs{}); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return fmt.Errorf("rescan quotas: %w", err)
	}
	return nil
}

// WaitRescan returns when no rescan is running.
func WaitRescan(ctx context.Context, dir *os.File) error {
	for {
		var args rescanArgs
		if err := ioctl(dir, iocRescanStatus, &args); err != nil && !errors.Is(err, unix.ENOTCONN) {
			return fmt.Errorf("status of rescan: %w", err)
		}
		if args.flags == 0 {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait for rescan: %w", ctx.Err())
		}
	}
}

// Sync writes the whole file system to disk, after which the usage is current.
func Sync(dir *os.File) error {
	if err := ioctl[byte](dir, iocSync, nil); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

// Reserved returns the bytes that were reserved for files of the group since the last commit. The
// kernel compares the sum of Referenced and Reserved with the limit. Overwritten data counts twice
// until the commit. It returns ENOENT without /sys, or before Linux 5.9.
func Reserved(dir *os.File, id ID) (int64, error) {
	var info infoArgs
	if err := ioctl(dir, iocInfo, &info); err != nil {
		return 0, fmt.Errorf("id of file system: %w", err)
	}
	file := fmt.Sprintf("/sys/fs/btrfs/%s/qgroups/%d_%d/rsv_data", uuid.UUID(info.fsid), id.Level(), uint64(id)&(1<<48-1))
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
}
