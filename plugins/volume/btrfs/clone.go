package main

import (
	"context"
	"math"
	"os"
	"path"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/btrfs/qgroup"
	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/reflink"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// CloneTree implements driver.Cloner file by file. A snapshot would be faster, but it would be a
// subvolume inside the scope, to which the scope's limit does not apply.
func (f *filesystem) CloneTree(ctx context.Context, from, to string, report driver.Progress) error {
	room, err := f.room(from, to)
	if err != nil {
		return err
	}
	source, err := f.OpenTree(from)
	if err != nil {
		return err
	}
	defer source.Close()
	parent, err := f.OpenTree(path.Dir(to))
	if err != nil {
		return err
	}
	defer parent.Close()
	return reflink.Tree(ctx, source, parent, path.Base(to), func(d reflink.Done) error {
		report(&pb.Progress{FilesDone: d.Files, BytesDone: d.Bytes})
		if d.Shared > room {
			return status.Error(codes.ResourceExhausted, "to: the copy is larger than the free space of its scope")
		}
		return nil
	})
}

// room returns how many bytes can be cloned from one scope to another. The kernel counts blocks
// that are shared with another subvolume, but refuses only writes.
func (f *filesystem) room(from, to string) (int64, error) {
	source, _, _ := strings.Cut(from, "/")
	target, _, _ := strings.Cut(to, "/")
	room := int64(math.MaxInt64)
	if f.mode != qgroup.Full || source == target {
		return room, nil
	}
	err := f.with(target, func(root, _ *os.File, id qgroup.ID) error {
		g, used, err := figures(root, id)
		if err == nil && g.Limit != nil {
			room = max(0, *g.Limit-used)
		}
		return err
	})
	if driverCode(err) == codes.FailedPrecondition {
		return room, nil // a plain directory
	}
	return room, err
}

// nested returns the number of subvolumes that users created inside scopes.
func (f *filesystem) nested(root *os.File) (int, error) {
	children, err := qgroup.Children(root)
	if err != nil {
		return 0, err
	}
	top, err := qgroup.Subvolume(root)
	if err != nil {
		return 0, err
	}
	scopes, count := map[qgroup.ID]bool{}, 0
	for _, c := range children {
		if c.Parent == top && driver.IsScope(c.Name) {
			scopes[c.ID] = true
		}
	}
	for _, c := range children {
		if scopes[c.Parent] {
			count++
		}
	}
	return count, nil
}
