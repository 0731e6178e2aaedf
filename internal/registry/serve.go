package registry

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/registry/store"
)

// The kinds of resources that paths name.
const (
	ping      = "ping"
	catalog   = "catalog"
	tags      = "tags"
	manifest  = "manifests"
	blob      = "blobs"
	upload    = "uploads"
	referrers = "referrers"
)

// place is a resource.
type place struct {
	kind, repository string
	name             string // tag or digest, id of an upload
}

// parse returns the resource of a path.
func parse(path string) (place, bool) {
	switch path {
	case "/v2", "/v2/":
		return place{kind: ping}, true
	case "/v2/_catalog":
		return place{kind: catalog}, true
	}
	rest, ok := strings.CutPrefix(path, "/v2/")
	if !ok {
		return place{}, false
	}
	if name, ok := strings.CutSuffix(rest, "/tags/list"); ok {
		return place{kind: tags, repository: name}, store.ValidRepository(name)
	}
	before, last, ok := cutLast(rest)
	if !ok {
		return place{}, false
	}
	if name, ok := strings.CutSuffix(before, "/blobs/uploads"); ok {
		return place{kind: upload, repository: name, name: last}, store.ValidRepository(name)
	}
	if name, ok := strings.CutSuffix(rest, "/blobs/uploads"); ok {
		return place{kind: upload, repository: name}, store.ValidRepository(name)
	}
	name, kind, ok := cutLast(before)
	switch kind {
	case manifest, blob, referrers:
		return place{kind: kind, repository: name, name: last}, ok && store.ValidRepository(name)
	}
	return place{}, false
}

func cutLast(s string) (before, last string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// serve answers a request that is permitted.
func (r *Registry) serve(w http.ResponseWriter, req *http.Request, a access) {
	at, ok := parse(req.URL.Path)
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if !ok {
		deny(w, http.StatusNotFound, "NAME_INVALID", "no repository has this path")
		return
	}
	handlers := map[string]map[string]func(http.ResponseWriter, *http.Request, place, access) error{
		ping:      {"GET": r.ping},
		catalog:   {"GET": r.catalog},
		tags:      {"GET": r.tags},
		referrers: {"GET": r.referrers},
		manifest:  {"GET": r.getManifest, "HEAD": r.getManifest, "PUT": r.putManifest, "DELETE": r.deleteManifest},
		blob:      {"GET": r.getBlob, "HEAD": r.getBlob, "DELETE": r.deleteBlob},
		upload:    {"POST": r.startUpload, "GET": r.getUpload, "PATCH": r.patchUpload, "PUT": r.putUpload, "DELETE": r.cancelUpload},
	}
	h := handlers[at.kind][req.Method]
	if h == nil {
		deny(w, http.StatusMethodNotAllowed, "UNSUPPORTED", req.Method+" is not supported here")
		return
	}
	if err := h(w, req, at, a); err != nil {
		r.fail(w, req, at, err)
	}
}

// refusal is an error with its answer.
type refusal struct {
	status  int
	code    string
	message string
}

func (e *refusal) Error() string { return e.message }

// unknown are the codes of missing resources.
var unknown = map[string]string{
	manifest: "MANIFEST_UNKNOWN", blob: "BLOB_UNKNOWN", upload: "BLOB_UPLOAD_UNKNOWN", tags: "NAME_UNKNOWN",
}

// fail answers with an error.
func (r *Registry) fail(w http.ResponseWriter, req *http.Request, at place, err error) {
	var said *refusal
	var full *store.FullError
	var part *store.MissingError
	switch {
	case errors.As(err, &said):
		deny(w, said.status, said.code, said.message)
	case errors.As(err, &full):
		r.log.Error("the disk of the registry is full", "free", full.Free, "reserve", full.Reserve)
		deny(w, http.StatusInsufficientStorage, "INSUFFICIENT_STORAGE", full.Error())
	case errors.As(err, &part):
		deny(w, http.StatusBadRequest, "MANIFEST_BLOB_UNKNOWN", part.Error())
	case errdefs.IsNotFound(err):
		deny(w, http.StatusNotFound, unknown[at.kind], at.kind+" "+at.name+" does not exist in "+at.repository)
	case errdefs.IsInvalidArgument(err):
		code := "MANIFEST_INVALID"
		if at.kind != manifest {
			code = "DIGEST_INVALID"
		}
		deny(w, http.StatusBadRequest, code, err.Error())
	case errdefs.IsOutOfRange(err):
		deny(w, http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID", err.Error())
	case errdefs.IsAborted(err):
		deny(w, http.StatusConflict, "BLOB_UPLOAD_INVALID", err.Error())
	case req.Context().Err() != nil: // the client is gone
	default:
		r.log.Error("answer a request of the registry", "method", req.Method, "path", req.URL.Path, "error", err)
		deny(w, http.StatusInternalServerError, "UNKNOWN", "internal error of the registry")
	}
}

// deny writes an error in the format of the specification.
func deny(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	type one struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.NewEncoder(w).Encode(map[string][]one{"errors": {{code, message}}})
}

func challenge(w http.ResponseWriter, why string) {
	w.Header().Set("WWW-Authenticate", `Basic realm="berth"`)
	deny(w, http.StatusUnauthorized, "UNAUTHORIZED", why)
}
