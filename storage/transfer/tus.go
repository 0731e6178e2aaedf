package transfer

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/volume"
)

const (
	tusVersion    = "1.0.0"
	tusExtensions = "creation,termination,expiration,checksum"
)

var uploadName = regexp.MustCompile(`^[0-9a-f]{32}$`)

// options returns the protocol version, the extensions and the limits to a tus client.
func (s *Server) options(w http.ResponseWriter, _ *http.Request) error {
	h := w.Header()
	h.Set("Tus-Resumable", tusVersion)
	h.Set("Tus-Version", tusVersion)
	h.Set("Tus-Extension", tusExtensions)
	h.Set("Tus-Checksum-Algorithm", checksumNames)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// speaks checks the protocol version of the client and sets the header with the server's version.
func speaks(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Tus-Resumable", tusVersion)
	w.Header().Set("Cache-Control", "no-store")
	if r.Header.Get("Tus-Resumable") == tusVersion {
		return nil
	}
	w.Header().Set("Tus-Version", tusVersion)
	return problem.Changed("Tus-Resumable", "the server supports only version %s", tusVersion)
}

// number parses a header with a number of bytes.
func number(r *http.Request, header string) (int64, error) {
	text := r.Header.Get(header)
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, problem.Invalid(header, "%q is not a number of bytes", text)
	}
	return int64(n), nil
}

// create begins the upload that a ticket allows. A repeated request with the same ticket, as
// after a lost answer, returns the same upload.
func (s *Server) create(w http.ResponseWriter, r *http.Request) error {
	if err := speaks(w, r); err != nil {
		return err
	}
	c, err := s.claims(w, r, ticket.Upload)
	if err != nil {
		return err
	}
	if err := checkLength(r, c.Size); err != nil {
		return err
	}
	v, err := s.cfg.Volumes.Get(c.Volume)
	if err != nil {
		return err
	}
	if err := checkTarget(v, c); err != nil {
		return err
	}
	changed, err := modified(r)
	if err != nil {
		return err
	}
	u := &upload{Claims: c, Created: time.Now().UTC(), Modified: changed, Match: r.Header.Get("If-Match"), id: uploadID(c)}
	if err := s.begin(r, v, u); err != nil {
		return err
	}
	where := "uploads/" + u.id // relative, because the server may be below a prefix
	if strings.HasSuffix(r.URL.Path, "/") {
		where = u.id
	}
	w.Header().Set("Location", where)
	expires(w)
	w.WriteHeader(http.StatusCreated)
	return nil
}

// checkTarget rejects early the targets that publishing would reject.
func checkTarget(v *volume.Volume, c ticket.Claims) error {
	path, err := volume.CleanNew(c.Path)
	if err != nil {
		return err
	}
	f, err := v.Folder(c.Scope, c.Folder)
	if err != nil {
		return err
	}
	defer f.Close()
	e, err := f.Stat(path)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if e.Mode&unix.S_IFMT == unix.S_IFDIR {
		return fmt.Errorf("upload to %q: is a directory: %w", path, errdefs.ErrFailedPrecondition)
	}
	return nil
}

// offset returns the number of received bytes. A client that has sent all bytes sends no
// further request, so an upload whose publishing was interrupted is published here.
func (s *Server) offset(w http.ResponseWriter, r *http.Request) error {
	if err := speaks(w, r); err != nil {
		return err
	}
	x, err := s.lockUpload(w, r, r.PathValue("id"))
	if err != nil {
		return err
	}
	defer x.close()
	if err := s.finish(x); err != nil {
		return err
	}
	w.Header().Set("Upload-Offset", strconv.FormatInt(x.offset, 10))
	w.Header().Set("Upload-Length", strconv.FormatInt(x.Claims.Size, 10))
	expires(w)
	w.WriteHeader(http.StatusOK)
	return nil
}

// append receives bytes at the end of the upload.
func (s *Server) append(w http.ResponseWriter, r *http.Request) error {
	if err := speaks(w, r); err != nil {
		return err
	}
	if t := r.Header.Get("Content-Type"); t != "application/offset+octet-stream" {
		return problem.Invalid("Content-Type", "must be application/offset+octet-stream").WithStatus(http.StatusUnsupportedMediaType)
	}
	sum, err := wantedSum(r)
	if err != nil {
		return err
	}
	at, err := number(r, "Upload-Offset")
	if err != nil {
		return err
	}
	x, err := s.lockUpload(w, r, r.PathValue("id"))
	if err != nil {
		return err
	}
	defer x.close()
	if at != x.offset {
		return problem.Aborted("is %d, the upload is at %d", at, x.offset).WithField("Upload-Offset").WithLimit(strconv.FormatInt(x.offset, 10))
	}
	if r.ContentLength > x.Claims.Size-at {
		return problem.TooLarge("Upload-Length", x.Claims.Size)
	}
	v, err := s.cfg.Volumes.Get(x.Claims.Volume)
	if err != nil {
		return err
	}
	v.Expect(x.Claims.Scope, volume.Room{Writer: x.id, Size: x.Claims.Size, There: x.offset})
	x.wrote = func() { v.Wrote(x.Claims.Scope, x.id, x.offset) }
	received, err := x.receive(r.Body, sum)
	w.(*exchange).received = received
	x.wrote()
	if err == nil {
		err = s.finish(x)
	}
	if err != nil {
		return s.explain(x.Claims, err)
	}
	w.Header().Set("Upload-Offset", strconv.FormatInt(x.offset, 10))
	expires(w)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// finish publishes the upload if all of its bytes have arrived.
func (s *Server) finish(x *lockedUpload) error {
	if x.file == nil || x.offset < x.Claims.Size {
		return nil
	}
	v, err := s.cfg.Volumes.Get(x.Claims.Volume)
	if err != nil {
		return err
	}
	if err := s.publishMatching(v, x); err != nil {
		return err
	}
	v.Stays(x.Claims.Scope, x.id, x.Claims.Size)
	return nil
}

// publishMatching publishes a complete upload. If the upload began with If-Match, the file
// that it replaces must still have the entity tag that a download returned.
func (s *Server) publishMatching(v *volume.Volume, x *lockedUpload) error {
	if x.Match == "" {
		return x.moveIntoFolder(v)
	}
	return s.publishWhen(v, x, func(there *volume.Entry) error {
		is := ""
		if there != nil {
			var err error
			if is, err = tagOf(v, x.Claims); err != nil {
				return err
			}
		}
		if is != x.Match {
			return problem.Changed("If-Match", "the file does not exist, or is not the one that the tag names")
		}
		return nil
	})
}

// tagOf returns the current entity tag of a file.
func tagOf(v *volume.Volume, c ticket.Claims) (string, error) {
	f, err := v.Folder(c.Scope, c.Folder)
	if err != nil {
		return "", err
	}
	defer f.Close()
	file, err := f.Open(c.Path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("stat file: %w", err)
	}
	return etag(info), nil
}

// terminate ends an upload and frees its storage.
func (s *Server) terminate(w http.ResponseWriter, r *http.Request) error {
	if err := speaks(w, r); err != nil {
		return err
	}
	x, err := s.lockUpload(w, r, r.PathValue("id"))
	if err != nil {
		return err
	}
	defer x.close()
	if x.file == nil {
		return fmt.Errorf("upload is complete: %w", errdefs.ErrFailedPrecondition)
	}
	x.Ended = true // the note stays, so that the ticket cannot be used again
	if err := x.save(x.staging); err != nil {
		return err
	}
	if err := x.staging.Remove(x.part()); err != nil {
		return err
	}
	v, err := s.cfg.Volumes.Get(x.Claims.Volume)
	if err != nil {
		return err
	}
	v.Withdraw(x.Claims.Scope, x.id)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func expires(w http.ResponseWriter) {
	w.Header().Set("Upload-Expires", time.Now().Add(lifetime).UTC().Format(http.TimeFormat))
}

// tooLate is the limit for modification times. ext4 stores times until 2446; times after the limit
// are mistakes.
var tooLate = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// modified returns the modification time from the metadata of a tus client: mtime, in seconds
// since 1970 with up to nine decimals. Nil means now. Other metadata is ignored.
func modified(r *http.Request) (*time.Time, error) {
	const header = "Upload-Metadata"
	for pair := range strings.SplitSeq(r.Header.Get(header), ",") {
		key, encoded, _ := strings.Cut(strings.TrimSpace(pair), " ")
		if key != "mtime" {
			continue
		}
		text, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, problem.Invalid(header, "mtime is not in base64")
		}
		whole, part, dotted := strings.Cut(string(text), ".")
		sec, err := strconv.ParseUint(whole, 10, 63)
		nsec := uint64(0)
		if err == nil && dotted {
			nsec, err = strconv.ParseUint((part + "000000000")[:9], 10, 63)
		}
		if err != nil || dotted && (part == "" || len(part) > 9) || sec >= uint64(tooLate.Unix()) {
			return nil, problem.Invalid(header, "mtime %q is not a number of seconds from 1970 to %d", text, tooLate.Year()-1)
		}
		at := time.Unix(int64(sec), int64(nsec)).UTC()
		return &at, nil
	}
	return nil, nil
}
