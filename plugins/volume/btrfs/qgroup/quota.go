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

// Mode is how a file system counts.
type Mode string

// The modes.
const (
	Off Mode = "off"
	// Full counts shared blocks against everyone who has them.
	Full Mode = "full"
	// Simple counts a block against the subvolume that wrote it for as long as
	// anyone has it: a clone is free for who has it. It costs less, never
	// rescans, and needs Linux 6.7.
	Simple Mode = "simple"
)

// Status is what a file system's quotas are like.
type Status struct {
	Mode Mode
	// Rescanning: a first count or a new one is under way, and figures rise to
	// what is true.
	Rescanning bool
	// Inconsistent: the kernel knows that figures are wrong; Rescan mends it.
	Inconsistent bool
}

// Exact reports whether figures, and so limits, can be relied on.
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

// ReadStatus reports whether and how quotas are kept.
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

// Enable turns quotas on. In full mode on a file system with data a rescan
// begins; until it ends limits refuse too little. Another mode than the one
// that is on is EEXIST: quotas would have to be turned off before.
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

// Disable turns quotas off. All groups and limits are forgotten.
func Disable(dir *os.File) error {
	if err := ioctl(dir, iocControl, &controlArgs{command: disable}); err != nil && !errors.Is(err, unix.ENOTCONN) {
		return fmt.Errorf("disable quotas: %w", err)
	}
	return nil
}

// Rescan begins to count again, unless that is under way; it does not wait.
func Rescan(dir *os.File) error {
	if err := ioctl(dir, iocRescan, &rescanArgs{}); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return fmt.Errorf("rescan quotas: %w", err)
	}
	return nil
}

// WaitRescan returns when no rescan is under way.
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

// Sync writes the whole file system out, after which figures are current.
func Sync(dir *os.File) error {
	if err := ioctl[byte](dir, iocSync, nil); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

// Reserved is what files of the group were promised since the last commit:
// together with Referenced it is what the kernel holds against the limit. Data
// written over old data counts twice until then. Without /sys, or before
// Linux 5.9, its error is ENOENT.
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
