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
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/storage/volume"
)

// checksumNames are the algorithms of the checksum extension: sha1 because tus requires it,
// sha256 for security, crc32c (four bytes, big endian) as a cheap check against transmission
// errors.
const checksumNames = "sha1,sha256,crc32c"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the expected checksum of a chunk.
type checksum struct {
	hash.Hash
	want []byte
}

// wantedSum returns the checksum from Upload-Checksum, or nil without the header.
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
	case "crc32c":
		c.Hash = crc32.New(castagnoli)
	default:
		return nil, problem.Invalid(header, "algorithm %q is not one of %s", name, checksumNames)
	}
	var err error
	if c.want, err = base64.StdEncoding.DecodeString(sum); err != nil || len(c.want) != c.Size() {
		return nil, problem.Invalid(header, "%q is not a %s checksum in base64", sum, name)
	}
	return c, nil
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

// receive appends the body of a request to the upload and makes it durable. If the connection
// is cut, it keeps the bytes that arrived; if the body is too long or does not match its
// checksum, it keeps none of them.
func (x *lockedUpload) receive(body io.Reader, sum *checksum) (received int64, err error) {
	start := x.offset
	received, err = x.copy(body, sum)
	if x.file == nil { // already published; nothing was written
		return received, err
	}
	var refused *problem.Error
	spoiled := errors.As(err, &refused) || err != nil && sum != nil
	if err == nil && sum != nil && !bytes.Equal(sum.Sum(nil), sum.want) {
		spoiled = true
		err = problem.Invalid("Upload-Checksum", "the chunk arrived damaged").WithStatus(problem.StatusChecksum)
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
	var w unwritten
	if errors.As(err, &w) && !knows(x.file) {
		err = errors.Join(err, x.forget(start))
	}
	return received, err
}

// unwritten is an error of a write.
type unwritten struct{ error }

func (u unwritten) Unwrap() error { return u.error }

// forget drops the bytes after start. A network file system accepts bytes before its server
// has stored them, and an error that it reports later does not say which of them are missing:
// the file can have its full length and a hole. Sync waits for pending writes, which could
// otherwise extend the file again.
func (x *lockedUpload) forget(start int64) error {
	x.offset = start
	var errs error
	for range 3 {
		errs = errors.Join(x.file.Sync(), x.file.Truncate(start), x.file.Sync())
		info, err := x.file.Stat()
		if err == nil && errs == nil && info.Size() == start {
			return nil
		}
		errs = errors.Join(errs, err)
	}
	return fmt.Errorf("truncate upload to byte %d: %w", start, errors.Join(errs, errdefs.ErrUnavailable))
}

// knows reports whether a file system checks for free space when it accepts bytes, so that all
// bytes before a failed write are stored. It returns false for unknown file systems.
func knows(f *os.File) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return false
	}
	return slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC}, st.Type)
}

// ahead is the number of bytes after which the kernel starts to write an upload to disk.
const ahead = 4 << 20

func (x *lockedUpload) copy(body io.Reader, sum *checksum) (received int64, err error) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	left, begun := x.Claims.Size-x.offset, x.offset
	for {
		x.deadline.extendRead()
		n, rerr := body.Read(*buf)
		received += int64(n)
		if int64(n) > left {
			return received, problem.TooLarge("Upload-Length", x.Claims.Size)
		}
		if n > 0 {
			if _, err := x.file.WriteAt((*buf)[:n], x.offset); err != nil {
				return received, unwritten{written(err)}
			}
			if sum != nil {
				sum.Write((*buf)[:n])
			}
			x.offset += int64(n)
			left -= int64(n)
			x.wrote()
			if x.offset-begun >= ahead {
				// This starts the writes without waiting; Sync waits and returns errors.
				_ = unix.SyncFileRange(int(x.file.Fd()), begun, x.offset-begun, unix.SYNC_FILE_RANGE_WRITE)
				begun = x.offset
			}
		}
		if errors.Is(rerr, io.EOF) {
			x.deadline.clearRead()
			return received, nil
		}
		if cause := x.deadline.endCause(); rerr != nil && cause != nil {
			return received, cause
		}
		if rerr != nil {
			// The client has disconnected. It requests the offset when it resumes.
			return received, fmt.Errorf("receive upload: %w: %w", rerr, context.Canceled)
		}
	}
}

// begin creates the files of the upload unless they exist.
func (s *Server) begin(r *http.Request, v *volume.Volume, u *upload) error {
	st, err := v.Staging(u.Claims.Scope)
	if err != nil {
		return err
	}
	defer st.Close()
	release, err := s.locks.take(r.Context(), u.id, func() {})
	if err != nil {
		return err
	}
	defer release()
	old, err := readUpload(st, u.id)
	if err == nil {
		return again(st, old, u)
	}
	if !errdefs.IsNotFound(err) {
		return err
	}
	if err := reserve(r.Context(), v, u.Claims.Scope, volume.Room{Writer: u.id, Size: u.Claims.Size}, u.Claims.Size); err != nil {
		return err
	}
	if err := s.make(v, st, u); err != nil {
		v.Withdraw(u.Claims.Scope, u.id)
		return err
	}
	return nil
}

// make creates the files of an upload, and publishes an empty file at once.
func (s *Server) make(v *volume.Volume, st *volume.Staging, u *upload) error {
	// The bytes come before the note: a note without bytes means a published upload.
	part, err := st.Open(u.part(), unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
	if err != nil {
		return err
	}
	if err := u.save(st); err != nil {
		return errors.Join(err, part.Close())
	}
	if u.Claims.Size > 0 {
		return part.Close()
	}
	if err := s.publishMatching(v, &lockedUpload{upload: u, staging: st, file: part}); err != nil {
		// If these files stayed, the next request with the ticket would find an upload to
		// resume.
		return errors.Join(err, st.Remove(u.part()), st.Remove(u.note()))
	}
	return nil
}

// again answers a request with a ticket that was already used.
func again(st *volume.Staging, old, u *upload) error {
	part, err := st.Open(old.part(), unix.O_RDONLY)
	if err == nil {
		part.Close()
	}
	if err != nil || old.Ended || !old.sameFile(u.Claims) {
		return fmt.Errorf("ticket was used for an upload that has ended: %w", errdefs.ErrConflict)
	}
	return nil
}

func checkLength(r *http.Request, size int64) error {
	if r.Header.Get("Upload-Defer-Length") != "" {
		return problem.Invalid("Upload-Defer-Length", "is not supported, the ticket fixes the length")
	}
	length, err := number(r, "Upload-Length")
	if err != nil {
		return err
	}
	if length > size {
		return problem.TooLarge("Upload-Length", size)
	}
	if length < size {
		return problem.Invalid("Upload-Length", "is %d, the ticket is for %d bytes", length, size)
	}
	return nil
}
