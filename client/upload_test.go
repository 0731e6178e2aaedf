package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/containerd/errdefs"
)

// tusServer keeps uploads in memory as a storage proxy does: a ticket creates one upload, a newer
// ticket continues it, and a complete upload is published.
type tusServer struct {
	t         *testing.T
	mu        sync.Mutex
	tickets   map[string]bool // valid ones
	byTicket  map[string]string
	uploads   map[string]*tusUpload
	published [][]byte
	patches   int
	// If set, they can answer a PATCH in place of the server, before or after the bytes were
	// stored.
	before, after func(n int, w http.ResponseWriter) (answered bool)
}

type tusUpload struct {
	length int64
	data   []byte
	done   bool
}

func newTus(t *testing.T, tickets ...string) *tusServer {
	s := &tusServer{t: t, tickets: map[string]bool{}, byTicket: map[string]string{}, uploads: map[string]*tusUpload{}}
	for _, x := range tickets {
		s.tickets[x] = true
	}
	return s
}

func (s *tusServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ticket := r.Header.Get("Authorization")
	if r.Header.Get("Tus-Resumable") != "1.0.0" {
		s.t.Errorf("%s without a version", r.Method)
	}
	if !s.tickets[ticket] {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodPost {
		s.create(w, r, ticket)
		return
	}
	u := s.uploads[r.URL.Path]
	switch {
	case u == nil:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodHead:
		w.Header().Set("Upload-Offset", strconv.Itoa(len(u.data)))
		w.Header().Set("Upload-Length", strconv.FormatInt(u.length, 10))
	default:
		s.patch(w, r, u)
	}
}

func (s *tusServer) create(w http.ResponseWriter, r *http.Request, ticket string) {
	id := s.byTicket[ticket]
	if id == "" {
		id = fmt.Sprint("/storage/uploads/", len(s.uploads)+1)
		length, err := strconv.ParseInt(r.Header.Get("Upload-Length"), 10, 64)
		if err != nil {
			s.t.Error(err)
		}
		s.byTicket[ticket], s.uploads[id] = id, &tusUpload{length: length}
		s.publish(s.uploads[id])
	} else if s.uploads[id].done {
		w.WriteHeader(http.StatusConflict)
		return
	}
	w.Header().Set("Location", "uploads/"+id[len("/storage/uploads/"):])
	w.WriteHeader(http.StatusCreated)
}

func (s *tusServer) publish(u *tusUpload) {
	if int64(len(u.data)) == u.length && !u.done {
		u.done = true
		s.published = append(s.published, u.data)
	}
}

func (s *tusServer) patch(w http.ResponseWriter, r *http.Request, u *tusUpload) {
	s.patches++
	n := s.patches
	if s.before != nil && s.before(n, w) {
		return
	}
	if r.Header.Get("Upload-Offset") != strconv.Itoa(len(u.data)) {
		w.WriteHeader(http.StatusConflict)
		return
	}
	b, err := io.ReadAll(r.Body)
	sum := sha256.Sum256(b)
	if err != nil || r.Header.Get("Upload-Checksum") != "sha256 "+base64.StdEncoding.EncodeToString(sum[:]) {
		w.WriteHeader(statusChecksumMismatch)
		return
	}
	u.data = append(u.data, b...)
	s.publish(u)
	if s.after != nil && s.after(n, w) {
		return
	}
	w.Header().Set("Upload-Offset", strconv.Itoa(len(u.data)))
	w.WriteHeader(http.StatusNoContent)
}

func hangUp(http.ResponseWriter) bool { panic(http.ErrAbortHandler) }

func TestUpload(t *testing.T) {
	data := make([]byte, 2*chunkBytes+1234)
	_, _ = rand.Read(data)
	const first, second = "Bearer first", "Bearer second"
	for name, c := range map[string]struct {
		data    []byte
		prepare func(*tusServer)
		renewed bool
	}{
		"plain":      {data: data},
		"empty file": {data: []byte{}},
		"cut before the bytes": {data: data, prepare: func(s *tusServer) {
			s.before = func(n int, w http.ResponseWriter) bool { return n == 2 && hangUp(w) }
		}},
		"answers lost": {data: data, prepare: func(s *tusServer) {
			s.after = func(n int, w http.ResponseWriter) bool { return n != 2 && hangUp(w) }
		}},
		"proxy restarting": {data: data, prepare: func(s *tusServer) {
			s.before = func(n int, w http.ResponseWriter) bool {
				if n == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				return n == 1
			}
		}},
		"damaged during the transfer": {data: data, prepare: func(s *tusServer) {
			s.before = func(n int, w http.ResponseWriter) bool {
				if n == 1 {
					w.WriteHeader(statusChecksumMismatch)
				}
				return n == 1
			}
		}},
		"upload deleted, ticket used": {data: data, renewed: true, prepare: func(s *tusServer) {
			s.before = func(n int, w http.ResponseWriter) bool {
				if n == 2 {
					clear(s.uploads)
					s.uploads["/storage/uploads/1"] = &tusUpload{length: -1, done: true}
					delete(s.tickets, first)
					s.tickets[second] = true
					w.WriteHeader(http.StatusNotFound)
				}
				return n == 2
			}
		}},
		"ticket over": {data: data, renewed: true, prepare: func(s *tusServer) {
			s.before = func(n int, w http.ResponseWriter) bool {
				if n == 2 {
					delete(s.tickets, first)
					s.tickets[second] = true
					w.WriteHeader(http.StatusUnauthorized)
				}
				return n == 2
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTus(t, first)
			if c.prepare != nil {
				c.prepare(s)
			}
			cl := serve(t, s.ServeHTTP)
			renewals, offset := 0, int64(0)
			u := Upload{
				Target: UploadTarget{Path: "f", URL: "/storage/uploads", Ticket: "first"},
				Source: bytes.NewReader(c.data), Size: int64(len(c.data)),
				Progress: func(o int64) { offset = o },
				Renew: func(context.Context) (UploadTarget, error) {
					renewals++
					return UploadTarget{Path: "f", URL: "/storage/uploads", Ticket: "second"}, nil
				},
			}
			if err := u.Run(t.Context(), cl); err != nil {
				t.Fatal(err)
			}
			if len(s.published) != 1 || !bytes.Equal(s.published[0], c.data) {
				t.Fatalf("%d files were published, or not these bytes", len(s.published))
			}
			if (renewals > 0) != c.renewed || offset != int64(len(c.data)) {
				t.Errorf("%d renewals, offset %d of %d", renewals, offset, len(c.data))
			}
		})
	}
}

func TestUploadOfEarlierRun(t *testing.T) {
	data := make([]byte, chunkBytes+99)
	_, _ = rand.Read(data)
	for name, c := range map[string]struct {
		there     int // bytes at the server
		patches   int
		forgotten bool
	}{
		"unfinished": {there: chunkBytes, patches: 1},
		"finished":   {there: len(data), patches: 2}, // its file may be deleted by now
		"forgotten":  {forgotten: true, patches: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTus(t, "Bearer new")
			if !c.forgotten {
				s.uploads["/storage/uploads/9"] = &tusUpload{length: int64(len(data)), data: data[:c.there:c.there], done: c.there == len(data)}
			}
			cl := serve(t, s.ServeHTTP)
			u := Upload{
				Target: UploadTarget{Path: "f", URL: "/storage/uploads", Ticket: "new"}, Location: "/storage/uploads/9",
				Source: bytes.NewReader(data), Size: int64(len(data)),
			}
			if err := u.Run(t.Context(), cl); err != nil {
				t.Fatal(err)
			}
			if len(s.published) != 1 || !bytes.Equal(s.published[0], data) || s.patches != c.patches {
				t.Errorf("%d published, %d patches, want %d", len(s.published), s.patches, c.patches)
			}
		})
	}
}

// The proxy stops permanently in the middle. Another proxy of the volume has the same bytes, and
// the upload continues there.
func TestUploadElsewhere(t *testing.T) {
	data := make([]byte, 2*chunkBytes+7)
	_, _ = rand.Read(data)
	s := newTus(t, "Bearer first", "Bearer second")
	gone := false
	cl := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if rest, is := strings.CutPrefix(r.URL.Path, "/other/"); is {
			r.URL.Path = "/storage/" + rest
		} else if gone {
			hangUp(w)
		}
		s.ServeHTTP(w, r)
	})
	s.after = func(n int, w http.ResponseWriter) bool { gone = true; return n == 1 && hangUp(w) }
	u := Upload{
		Target: UploadTarget{Path: "f", URL: "/storage/uploads", Ticket: "first"},
		Source: bytes.NewReader(data), Size: int64(len(data)),
		Renew: func(context.Context) (UploadTarget, error) {
			return UploadTarget{Path: "f", URL: "/other/uploads", Ticket: "second"}, nil
		},
	}
	if err := u.Run(t.Context(), cl); err != nil {
		t.Fatal(err)
	}
	if len(s.published) != 1 || !bytes.Equal(s.published[0], data) || s.patches != 3 {
		t.Errorf("%d files were published by %d chunks, or not these bytes", len(s.published), s.patches)
	}
}

func TestUploadRefused(t *testing.T) {
	s := newTus(t, "Bearer x")
	s.before = func(n int, w http.ResponseWriter) bool {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusInsufficientStorage)
		fmt.Fprint(w, `{"detail":"quota reached","code":"RESOURCE_EXHAUSTED","limit":100}`)
		return true
	}
	cl := serve(t, s.ServeHTTP)
	u := Upload{Target: UploadTarget{URL: "/storage/uploads", Ticket: "x", Path: "f"}, Source: bytes.NewReader([]byte("abc")), Size: 3}
	if err := u.Run(t.Context(), cl); !errdefs.IsResourceExhausted(err) || s.patches != 1 {
		t.Errorf("after %d patches: %v", s.patches, err)
	}
	u = Upload{Target: UploadTarget{URL: "/storage/uploads", Ticket: "x", Path: "f"}, Source: bytes.NewReader([]byte("ab")), Size: 3}
	if err := u.Run(t.Context(), cl); !errdefs.IsFailedPrecondition(err) {
		t.Errorf("file that became shorter: %v", err)
	}
}
