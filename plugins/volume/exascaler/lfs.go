package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	"github.com/berthhq/berth/plugins/volume/xfs/prjquota"
)

// longest is what one lfs may take: it waits for servers that are away.
const longest = time.Minute

// lfs runs the program and returns what it says.
func (v *volume) lfs(ctx context.Context, args ...string) (string, error) {
	what := "lfs " + args[0]
	out, err := v.program.Run(ctx, args...)
	if err != nil {
		return "", driver.Error(what, err)
	}
	if out.Code != 0 {
		return "", driver.Error(what, meaning(strings.Join(strings.Fields(out.Stderr), " "), out.Code))
	}
	return out.Stdout, nil
}

// errnos are what lfs says in words, in the order in which they are looked for.
var errnos = []unix.Errno{
	unix.EPERM, unix.EACCES, unix.ENOENT, unix.EOPNOTSUPP, unix.ENOTTY, unix.EDQUOT, unix.ENOSPC,
	unix.EIO, unix.EBUSY, unix.ENOTCONN, unix.ETIMEDOUT, unix.ESTALE, unix.EAGAIN, unix.ESHUTDOWN, unix.EINTR, unix.ENODEV,
}

// meaning makes an error of what lfs says when it fails.
func meaning(text string, code int) error {
	if text == "" {
		text = fmt.Sprintf("ended with %d", code)
	}
	lower := strings.ToLower(text)
	for _, e := range errnos {
		if !strings.Contains(lower, e.Error()) {
			continue
		}
		switch e {
		case unix.EAGAIN, unix.ESHUTDOWN, unix.EINTR, unix.ENODEV:
			return driver.Retryable(5*time.Second, "%s", text)
		}
		return fmt.Errorf("%s: %w", text, e)
	}
	return status.Error(codes.Internal, text)
}

// quota is what lfs quota tells of a project. A limit of 0 is none.
type quota struct {
	kib, maxKiB       int64
	inodes, maxInodes int64
	exact             bool // all servers have answered
}

// quota asks for that of a project.
func (v *volume) quota(ctx context.Context, id prjquota.ID) (quota, error) {
	out, err := v.lfs(ctx, "quota", "-q", "-p", fmt.Sprint(id), v.Path())
	if err != nil {
		return quota{}, err
	}
	return parseQuota(out)
}

// columns are kbytes, quota, limit and grace, and the same of files.
const columns = 8

// parseQuota reads the row of numbers. It may stand on a line of its own below a long
// name, numbers that are over a limit have a star, those that not all servers have told
// brackets; around it there may be a head and remarks.
func parseQuota(text string) (quota, error) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < columns {
			continue
		}
		f = f[len(f)-columns:]
		q, err := quota{exact: true}, error(nil)
		for i, into := range map[int]*int64{0: &q.kib, 2: &q.maxKiB, 4: &q.inodes, 6: &q.maxInodes} {
			n, whole, ok := number(f[i])
			if !ok {
				err = errors.New("no number")
				break
			}
			*into, q.exact = n, q.exact && whole
		}
		if err == nil {
			return q, nil
		}
	}
	return quota{}, status.Errorf(codes.Internal, "lfs quota: no numbers in its output %.200q", text)
}

func number(text string) (n int64, whole, ok bool) {
	bare := strings.TrimSuffix(text, "*")
	inner := strings.TrimSuffix(strings.TrimPrefix(bare, "["), "]")
	inner = strings.TrimSuffix(inner, "*")
	n, err := strconv.ParseInt(inner, 10, 64)
	return n, inner == strings.TrimSuffix(bare, "*"), err == nil
}

// limit sets both limits of a project; 0 lifts one.
func (v *volume) limit(ctx context.Context, id prjquota.ID, kib, inodes int64) error {
	_, err := v.lfs(ctx, "setquota", "-p", fmt.Sprint(id), "-b", "0", "-B", fmt.Sprint(kib), "-i", "0", "-I", fmt.Sprint(inodes), v.Path())
	return err
}

// of tells the project of a directory; 0 also where what is made in it would be in none.
func (v *volume) of(ctx context.Context, d *os.File, path string) (prjquota.ID, error) {
	if v.options.Assign == "ioctl" {
		id, inherited, err := prjquota.Of(d)
		if !inherited {
			id = 0
		}
		return id, driver.Error("", err)
	}
	out, err := v.lfs(ctx, "project", "-d", path)
	if err != nil {
		return 0, err
	}
	f := strings.Fields(out) // "1000 P /mnt/lustre/x"
	if len(f) < 3 {
		return 0, status.Errorf(codes.Internal, "lfs project: what it says is no project: %.200q", out)
	}
	id, err := strconv.ParseUint(f[0], 10, 32)
	if err != nil {
		return 0, status.Errorf(codes.Internal, "lfs project: %q is no number of a project", f[0])
	}
	if f[1] != "P" {
		id = 0
	}
	return prjquota.ID(id), nil
}

// assign puts an empty directory, and what will be made in it, into a project.
func (v *volume) assign(ctx context.Context, d *os.File, path string, id prjquota.ID) error {
	if v.options.Assign == "ioctl" {
		return driver.Error("", prjquota.Assign(d, id))
	}
	_, err := v.lfs(ctx, "project", "-p", fmt.Sprint(id), "-s", path)
	return err
}

// away is a target that does not answer: "OST0001 : inactive device".
var away = regexp.MustCompile(`(?m)^\s*(\S+)\s*:\s+(\S.*)$`)

// targets tells which servers' targets are away or full; the error is lfs's own.
func (v *volume) targets(ctx context.Context) ([]string, error) {
	out, err := v.lfs(ctx, "df", v.Path())
	if err != nil {
		return nil, err
	}
	var wrong []string
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if m := away.FindStringSubmatch(line); m != nil && m[1] != "filesystem_summary" {
			wrong = append(wrong, m[1]+": "+strings.TrimSpace(m[2]))
		} else if len(f) >= 6 && strings.HasSuffix(f[0], "_UUID") && f[3] == "0" {
			wrong = append(wrong, f[0]+": no space left")
		}
	}
	return wrong, nil
}
