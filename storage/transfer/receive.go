package transfer

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// checksumNames are the algorithms of the checksum extension: sha1 because
// tus demands it, sha256 for those who mean it.
const checksumNames = "sha1,sha256"

// checksum is what a chunk must add up to.
type checksum struct {
	hash.Hash
	want []byte
}

// wantedSum reads Upload-Checksum; nil without one.
func wantedSum(r *http.Request) (*checksum, error) {
	const header = "Upload-Checksum"
	text := r.Header.Get(header)
	if text == "" {
		return nil, nil
	}
	name, sum, _ := strings.Cut(text, " ")
	c := &checksum{}
	switch name {
	case "sha1":
		c.Hash = sha1.New()
	case "sha256":
		c.Hash = sha256.New()
	default:
		return nil, badHeader(header, "algorithm %q is none of %s", name, checksumNames)
	}
	var err error
	if c.want, err = base64.StdEncoding.DecodeString(sum); err != nil || len(c.want) != c.Size() {
		return nil, badHeader(header, "%q is no %s in base64", sum, name)
	}
	return c, nil
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

// receive appends a request's body and makes it durable. A cut connection
// keeps what arrived; a body that is too long, or does not add up to its
// checksum, keeps nothing.
func (x *session) receive(body io.Reader, sum *checksum) (received int64, err error) {
	start := x.offset
	received, err = x.copy(body, sum)
	if x.file == nil { // already published; nothing was written
		return received, err
	}
	var refused *problem
	spoiled := errors.As(err, &refused) || err != nil && sum != nil
	if err == nil && sum != nil && !bytes.Equal(sum.Sum(nil), sum.want) {
		spoiled = true
		err = &problem{status: statusChecksum, code: "INVALID_ARGUMENT", field: "Upload-Checksum",
			detail: "Upload-Checksum: the chunk arrived damaged"}
	}
	if spoiled {
		x.offset = start
		if terr := x.file.Truncate(start); terr != nil {
			return received, written(terr)
		}
	}
	if serr := x.file.Sync(); serr != nil {
		return received, errors.Join(written(serr), x.forget(start))
	}
	return received, err
}

// forget gives up what came since start. A file system on a network takes bytes
// before its server does, and when it tells of an error in the end it does not say
// which of them are missing: the file may be long enough and have a hole.
func (x *session) forget(start int64) error {
	x.offset = start
	return x.file.Truncate(start)
}

// knows tells whether a file system has room for the bytes it takes, so that those
// before the one it refused are there. All that are not known for it, do not.
func knows(f *os.File) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return false
	}
	return slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC}, st.Type)
}

func (x *session) copy(body io.Reader, sum *checksum) (received int64, err error) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	start := x.offset
	left := x.Claims.Size - x.offset
	for {
		x.patience.more()
		n, rerr := body.Read(*buf)
		received += int64(n)
		if int64(n) > left {
			return received, tooLarge("Upload-Length", x.Claims.Size)
		}
		if n > 0 {
			if _, err := x.file.WriteAt((*buf)[:n], x.offset); err != nil {
				err = written(err)
				if !knows(x.file) {
					err = errors.Join(err, x.forget(start))
				}
				return received, err
			}
			if sum != nil {
				sum.Write((*buf)[:n])
			}
			x.offset += int64(n)
			left -= int64(n)
		}
		if errors.Is(rerr, io.EOF) {
			x.patience.over()
			return received, nil
		}
		if cause := x.patience.gone(); rerr != nil && cause != nil {
			return received, cause
		}
		if rerr != nil {
			// Nobody is there to answer; the client asks for the offset.
			return received, fmt.Errorf("receive upload: %w: %w", rerr, context.Canceled)
		}
	}
}
