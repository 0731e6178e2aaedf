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

// longest limits one run of lfs, which waits for unreachable servers.
const longest = time.Minute

// lfs runs the program and returns its output.
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

// errnos are the errors that lfs prints as text, in the order of the search.
var errnos = []unix.Errno{
	unix.EPERM, unix.EACCES, unix.ENOENT, unix.EOPNOTSUPP, unix.ENOTTY, unix.EDQUOT, unix.ENOSPC,
	unix.EIO, unix.EBUSY, unix.ENOTCONN, unix.ETIMEDOUT, unix.ESTALE, unix.EAGAIN, unix.ESHUTDOWN, unix.EINTR, unix.ENODEV,
}

// meaning converts the output of a failed lfs to an error.
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

// quota is the output of lfs quota for a project. A limit of 0 means unlimited.
type quota struct {
	kib, maxKiB       int64
	inodes, maxInodes int64
	exact             bool // all servers have responded
}

// quota returns the quota of a project.
func (v *volume) quota(ctx context.Context, id prjquota.ID) (quota, error) {
	out, err := v.lfs(ctx, "quota", "-q", "-p", fmt.Sprint(id), v.Path())
	if err != nil {
		return quota{}, err
	}
	return parseQuota(out)
}

// columns are kbytes, quota, limit and grace, and the same for files.
const columns = 8

// parseQuota parses the row of numbers. After a long name, the row is on a separate line. Numbers
// above a limit have a star, and numbers that lack the values of some servers have brackets. There
// may be other lines before and after it.
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

// limit sets both limits of a project; 0 removes a limit.
func (v *volume) limit(ctx context.Context, id prjquota.ID, kib, inodes int64) error {
	_, err := v.lfs(ctx, "setquota", "-p", fmt.Sprint(id), "-b", "0", "-B", fmt.Sprint(kib), "-i", "0", "-I", fmt.Sprint(inodes), v.Path())
	return err
}

// of returns the project of a directory, or 0 if new files in it would not inherit the project.
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
		return 0, status.Errorf(codes.Internal, "lfs project: the output names no project: %.200q", out)
	}
	id, err := strconv.ParseUint(f[0], 10, 32)
	if err != nil {
		return 0, status.Errorf(codes.Internal, "lfs project: %q is not the number of a project", f[0])
	}
	if f[1] != "P" {
		id = 0
	}
	return prjquota.ID(id), nil
}

// assign adds an empty directory and all new files in it to a project.
func (v *volume) assign(ctx context.Context, d *os.File, path string, id prjquota.ID) error {
	if v.options.Assign == "ioctl" {
		return driver.Error("", prjquota.Assign(d, id))
	}
	_, err := v.lfs(ctx, "project", "-p", fmt.Sprint(id), "-s", path)
	return err
}

// away matches a target that does not respond: "OST0001 : inactive device".
var away = regexp.MustCompile(`(?m)^\s*(\S+)\s*:\s+(\S.*)$`)

// targets returns the servers' targets that are unreachable or full. The error is that of lfs.
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
