package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/net/webdav"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// idle is how long a client can be silent while it sends a file.
const idle = time.Minute

// WebDAV serves the request of a client that sends an access token as the password. The path
// is relative to Prefix.
func (v *Views) WebDAV(w http.ResponseWriter, r *http.Request) error {
	_, token, ok := r.BasicAuth()
	if !ok {
		return challenge(w, r, "log in with an access token as the password")
	}
	t := &tree{views: v, protocol: "WebDAV", credentials: Credentials{Token: token, Peer: r.RemoteAddr, Forwarded: r.Header.Values("X-Forwarded-For")}}
	_, err := v.accounts.get(r.Context(), t.credentials)
	if errdefs.IsUnauthorized(err) {
		return challenge(w, r, "the access token is wrong or no longer valid")
	}
	if err != nil {
		return err
	}
	return v.dav(w, r, t)
}

func challenge(w http.ResponseWriter, r *http.Request, words string) error {
	w.Header().Set("WWW-Authenticate", `Basic realm="Berth folders", charset="UTF-8"`)
	problem.WriteHTTP(w, r, problem.Unauthenticated("%s", words))
	return nil
}

func (v *Views) dav(w http.ResponseWriter, r *http.Request, t *tree) error {
	x := &request{t: t, size: r.ContentLength}
	r = r.Clone(r.Context())
	r.URL.Path = v.cfg.Prefix + strings.TrimPrefix(r.URL.Path, Path)
	r.Body = &body{ReadCloser: r.Body, control: http.NewResponseController(w)}
	if err := x.checked(r, v.cfg.Prefix); err != nil {
		return err
	}
	h := w.Header()
	// A browser must save a file of a folder, not run it.
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Referrer-Policy", "no-referrer")
	if r.Method == http.MethodGet {
		h.Set("Content-Disposition", "attachment")
	}
	a := &response{ResponseWriter: w, request: x, method: r.Method}
	(&webdav.Handler{
		Prefix: v.cfg.Prefix, FileSystem: davFS{t, x}, LockSystem: lockSystem{r.Context(), t, x},
	}).ServeHTTP(a, r)
	if a.status == 0 && errors.Is(x.failed, context.Canceled) {
		return x.failed
	}
	return nil
}

// Path is the path at which package storage mounts WebDAV.
const Path = "/dav"

// request is the state of one request.
type request struct {
	t        *tree
	size     int64              // of the body; -1 if the client does not send it
	when     transfer.Condition // for the file that a PUT replaces; nil without a condition
	modified *time.Time         // of the file that a PUT creates; nil: now
	locked   bool               // a lock is held for the duration of the request
	replaced bool               // a PUT replaced a file
	quota    bool               // the request reads properties of RFC 4331
	rooms    map[string]*room   // results of this request, by folder
	failed   error              // an error that package webdav has no status for
}

// refuse records why the request fails.
func (x *request) refuse(err error) error {
	x.failed = err
	return err
}

// checked rejects requests that would cost too much or would fail half-way.
func (x *request) checked(r *http.Request, prefix string) error {
	switch r.Method {
	case "PROPFIND":
		if d := r.Header.Get("Depth"); d != "0" && d != "1" {
			return fmt.Errorf("header Depth: %q, wants 0 or 1 (propfind-finite-depth): %w", d, errdefs.ErrPermissionDenied)
		}
		return x.asked(r)
	case "LOCK":
		text, _, _ := strings.Cut(r.Header.Get("Timeout"), ",")
		n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(text), "Second-"))
		if longest := int(longestLock / time.Second); err != nil || n < 1 || n > longest {
			n = longest
		}
		r.Header.Set("Timeout", "Second-"+strconv.Itoa(n))
	case "COPY", "MOVE":
		return x.pair(r, prefix)
	case "PUT":
		if r.Header.Get("Content-Range") != "" {
			return fmt.Errorf("header Content-Range: a part of a file cannot be put: %w", errdefs.ErrInvalidArgument)
		}
		var err error
		if x.modified, err = modified(r.Header); err != nil {
			return err
		}
		return x.conditional(r, prefix)
	}
	return nil
}

// conditional checks the condition of a PUT before its body is read. Publishing checks it
// again.
func (x *request) conditional(r *http.Request, prefix string) (err error) {
	if x.when, err = condition(r.Header); err != nil || x.when == nil {
		return err
	}
	at, err := x.t.file(r.Context(), strings.TrimPrefix(r.URL.Path, prefix), true)
	if err != nil {
		return err
	}
	return x.t.in(at.folder, func(f *volume.Folder) error {
		there, err := f.Stat(at.path)
		switch {
		case errdefs.IsNotFound(err):
			return x.when(nil)
		case err != nil:
			return err
		}
		return x.when(&there)
	})
}

// pair checks source and target before the target is removed.
func (x *request) pair(r *http.Request, prefix string) error {
	u, err := url.Parse(r.Header.Get("Destination"))
	if err != nil || u.Path == "" {
		return fmt.Errorf("header Destination: %q is not an address: %w", r.Header.Get("Destination"), errdefs.ErrInvalidArgument)
	}
	from, to := strings.TrimPrefix(r.URL.Path, prefix), strings.TrimPrefix(u.Path, prefix)
	a, b := strings.TrimSuffix(from, "/")+"/", strings.TrimSuffix(to, "/")+"/"
	if a != b && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
		return fmt.Errorf("header Destination: one of %q and %q contains the other: %w", to, from, errdefs.ErrPermissionDenied)
	}
	ctx := r.Context()
	if r.Method == "MOVE" {
		_, target, err := x.t.movable(ctx, from, to)
		if err != nil {
			return err
		}
		if err := x.t.parent(target); err != nil {
			return fmt.Errorf("%v: %w", err, errdefs.ErrConflict)
		}
		if r.Header.Get("Overwrite") == "" {
			r.Header.Set("Overwrite", "T") // RFC 4918, 10.6
		}
		return nil
	}
	if _, err := x.t.inside(ctx, from, false); err != nil {
		return err
	}
	if _, err := x.t.stat(ctx, from); err != nil {
		return err
	}
	_, err = x.t.inside(ctx, to, true)
	return err
}

// body sets a deadline for every read of a request's body.
type body struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *body) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(idle))
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// response replaces the status and the message of a rejected request.
type response struct {
	http.ResponseWriter
	request *request
	method  string
	status  int
	begun   bool
}

func (a *response) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	err := a.request.failed
	if err == nil || status < 400 {
		if a.method == "PUT" && status == http.StatusCreated {
			if a.request.replaced {
				status = http.StatusNoContent
			}
			if a.request.modified != nil {
				a.Header().Set("X-OC-Mtime", "accepted")
			}
		}
		a.status = status
		a.ResponseWriter.WriteHeader(status)
		return
	}
	words := ""
	if status, words = transfer.Status(err); status == http.StatusNotFound && a.method != "GET" && a.method != "HEAD" && a.method != "PROPFIND" && a.method != "DELETE" {
		status = http.StatusConflict // a parent directory does not exist
	}
	a.status, a.begun = status, true
	h := a.Header()
	for _, name := range []string{"ETag", "Content-Length", "Content-Disposition"} {
		h.Del(name)
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	a.ResponseWriter.WriteHeader(status)
	_, _ = io.WriteString(a.ResponseWriter, words+"\n") // the client may have disconnected
}

func (a *response) Write(p []byte) (int, error) {
	if a.begun {
		return len(p), nil
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(p)
}

// ReadFrom lets io.Copy use sendfile(2).
func (a *response) ReadFrom(src io.Reader) (int64, error) {
	if rest, ok := src.(*io.LimitedReader); ok && !a.begun {
		if file, ok := rest.R.(*reading); ok {
			if a.status == 0 {
				a.status = http.StatusOK
			}
			sent, err := file.sendTo(a.ResponseWriter, rest.N)
			rest.N -= sent
			return sent, err
		}
	}
	return io.Copy(struct{ io.Writer }{a}, src)
}

// Unwrap implements the convention of http.ResponseController.
func (a *response) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// condition returns the condition that If-Match and If-None-Match set for the file that a
// request would replace (RFC 9110, 13.1), or nil without these headers.
func condition(h http.Header) (transfer.Condition, error) {
	match, err := readTags(h, "If-Match")
	if err != nil {
		return nil, err
	}
	none, err := readTags(h, "If-None-Match")
	if err != nil || match == nil && none == nil {
		return nil, err
	}
	return func(there *volume.Entry) error {
		switch {
		case match != nil && !match.has(there, false):
			return problem.Changed("If-Match", "the file does not exist, or is not the one that the tag names")
		case none != nil && none.has(there, true):
			return problem.Changed("If-None-Match", "the file exists")
		}
		return nil
	}, nil
}

// tags are the entity tags of a header; any stands for "*".
type tags struct {
	any  bool
	list []string
}

// has reports whether a file matches one of the tags. Weak tags match only where weak is true,
// as the tags of WebDAV are strong.
func (t *tags) has(there *volume.Entry, weak bool) bool {
	if there == nil {
		return false
	}
	is := entityTag(there.Size, there.Modified)
	for _, tag := range t.list {
		if strong, found := strings.CutPrefix(tag, "W/"); strong == is && (weak || !found) {
			return true
		}
	}
	return t.any
}

func readTags(h http.Header, name string) (*tags, error) {
	values := h.Values(name)
	if len(values) == 0 {
		return nil, nil
	}
	text := strings.TrimSpace(strings.Join(values, ","))
	if text == "*" {
		return &tags{any: true}, nil
	}
	t := &tags{}
	for text != "" {
		rest, weak := strings.CutPrefix(text, "W/")
		end := -1
		if strings.HasPrefix(rest, `"`) {
			end = strings.IndexByte(rest[1:], '"') + 2
		}
		if end < 2 {
			return nil, fmt.Errorf("header %s: %q is not an entity tag: %w", name, text, errdefs.ErrInvalidArgument)
		}
		tag := rest[:end]
		if weak {
			tag = "W/" + tag
		}
		t.list = append(t.list, tag)
		text = strings.TrimLeft(rest[end:], ", \t")
	}
	return t, nil
}

// entityTag returns a tag that changes when a file is replaced or written to.
func entityTag(size int64, modified time.Time) string {
	return fmt.Sprintf(`"%x-%x"`, size, modified.UnixNano())
}
