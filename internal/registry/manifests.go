package registry

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/internal/registry/store"
)

// maxPage is the largest number of names in one answer.
const maxPage = 1000

func (r *Registry) ping(w http.ResponseWriter, _ *http.Request, _ place, _ access) error {
	return answer(w, "application/json", struct{}{})
}

func answer(w http.ResponseWriter, kind string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, err = w.Write(b)
	return err
}

func (r *Registry) catalog(w http.ResponseWriter, req *http.Request, _ place, _ access) error {
	names := []string{}
	if err := r.store.Repositories(func(name string) error {
		names = append(names, name)
		return nil
	}); err != nil {
		return err
	}
	slices.Sort(names)
	names, err := page(w, req, names)
	if err != nil {
		return err
	}
	return answer(w, "application/json", map[string]any{"repositories": names})
}

func (r *Registry) tags(w http.ResponseWriter, req *http.Request, at place, _ access) error {
	names, err := r.store.Tags(at.repository)
	if err != nil {
		return err
	}
	if names, err = page(w, req, names); err != nil {
		return err
	}
	return answer(w, "application/json", map[string]any{"name": at.repository, "tags": names})
}

// page returns the part of sorted names that n and last ask for, and links to the next one.
func page(w http.ResponseWriter, req *http.Request, names []string) ([]string, error) {
	q, n := req.URL.Query(), maxPage
	if text := q.Get("n"); text != "" {
		v, err := strconv.Atoi(text)
		if err != nil || v < 0 {
			return nil, &refusal{http.StatusBadRequest, "PAGINATION_NUMBER_INVALID", fmt.Sprintf("n %.20q is not a number", text)}
		}
		n = min(v, maxPage)
	}
	if last := q.Get("last"); last != "" {
		i, found := slices.BinarySearch(names, last)
		if found {
			i++
		}
		names = names[i:]
	}
	if n >= len(names) {
		return names, nil
	}
	if names = names[:n]; n > 0 {
		next := url.Values{"n": {strconv.Itoa(n)}, "last": {names[n-1]}}
		w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, req.URL.EscapedPath(), next.Encode()))
	}
	return names, nil
}

func (r *Registry) referrers(w http.ResponseWriter, req *http.Request, at place, _ access) error {
	d, err := store.ParseDigest(at.name)
	if err != nil {
		return err
	}
	list, err := r.store.Referrers(at.repository, d)
	if err != nil {
		return err
	}
	if kind := req.URL.Query().Get("artifactType"); kind != "" {
		list = slices.DeleteFunc(list, func(d ocispec.Descriptor) bool { return d.ArtifactType != kind })
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	if list == nil {
		list = []ocispec.Descriptor{}
	}
	return answer(w, ocispec.MediaTypeImageIndex, ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: list,
	})
}

// resolve returns the digest that a path names.
func (r *Registry) resolve(at place) (digest.Digest, error) {
	if strings.Contains(at.name, ":") {
		return store.ParseDigest(at.name)
	}
	if !store.ValidTag(at.name) {
		return "", &refusal{http.StatusNotFound, "MANIFEST_UNKNOWN", fmt.Sprintf("%.200q is not a tag", at.name)}
	}
	return r.store.Resolve(at.repository, at.name)
}

func (r *Registry) getManifest(w http.ResponseWriter, req *http.Request, at place, a access) error {
	d, err := r.resolve(at)
	if err != nil {
		return err
	}
	m, err := r.store.Manifest(at.repository, d)
	if err != nil {
		return err
	}
	if a.grant != nil {
		if err := r.store.UseManifest(at.repository, d); err != nil {
			return err
		}
	}
	h := w.Header()
	h.Set("Docker-Content-Digest", d.String())
	h.Set("Etag", `"`+d.String()+`"`)
	if slices.Contains([]string{d.String(), `"` + d.String() + `"`}, req.Header.Get("If-None-Match")) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", m.MediaType)
	h.Set("Content-Length", strconv.Itoa(len(m.Body)))
	if req.Method == http.MethodHead {
		return nil
	}
	_, err = w.Write(m.Body)
	return err
}

func (r *Registry) putManifest(w http.ResponseWriter, req *http.Request, at place, _ access) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, store.MaxManifest))
	if err != nil {
		return &refusal{http.StatusRequestEntityTooLarge, "MANIFEST_INVALID", fmt.Sprintf("read the manifest: %v; it can have %d bytes", err, store.MaxManifest)}
	}
	m, err := store.ParseManifest(body, req.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	var tags []string
	m.Digest = digest.FromBytes(body)
	if strings.Contains(at.name, ":") {
		want, err := store.ParseDigest(at.name)
		if err != nil {
			return &refusal{http.StatusBadRequest, "DIGEST_INVALID", err.Error()}
		}
		if m.Digest = want.Algorithm().FromBytes(body); m.Digest != want {
			return &refusal{http.StatusBadRequest, "DIGEST_INVALID", fmt.Sprintf("the manifest has the digest %s instead of %s", m.Digest, want)}
		}
		tags = req.URL.Query()["tag"]
	} else {
		tags = []string{at.name}
	}
	for _, t := range tags {
		if !store.ValidTag(t) || len(tags) > 100 {
			return &refusal{http.StatusBadRequest, "TAG_INVALID", fmt.Sprintf("%.200q is not a tag, or the request has more than 100", t)}
		}
	}
	if err := r.store.PutManifest(at.repository, m, tags...); err != nil {
		return err
	}
	h := w.Header()
	if m.Subject != nil {
		h.Set("OCI-Subject", m.Subject.Digest.String())
	}
	for _, t := range req.URL.Query()["tag"] {
		h.Add("OCI-Tag", t)
	}
	h.Set("Docker-Content-Digest", m.Digest.String())
	h.Set("Location", "/v2/"+at.repository+"/manifests/"+m.Digest.String())
	w.WriteHeader(http.StatusCreated)
	return nil
}

func (r *Registry) deleteManifest(w http.ResponseWriter, _ *http.Request, at place, _ access) error {
	var err error
	if strings.Contains(at.name, ":") {
		var d digest.Digest
		if d, err = store.ParseDigest(at.name); err == nil {
			err = r.store.DeleteManifest(at.repository, d)
		}
	} else if _, err = r.resolve(at); err == nil {
		err = r.store.Untag(at.repository, at.name)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
