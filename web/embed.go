// Package web serves the single-page web interface that is built into dist.
//
// The manager mounts Handler as the last route of its listener. A binary that
// was compiled before the page was built still works: it answers with a short
// page that says how to build it.
package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
)

// The pattern also matches dist-missing.html, so that it always finds a file.
//
//go:embed all:dist*
var files embed.FS

const (
	index   = "index.html"
	missing = "dist-missing.html"
)

// asset is one file of the page.
type asset struct {
	contentType string
	cache       string
	plain       func() []byte
	gzipped     func() []byte // nil where compression does not pay; compressed by the first request
}

type handler struct {
	assets map[string]asset // by path below dist, without a leading slash
	index  asset
	built  bool
	// elsewhere tells the origins beside our own that the page may talk to; nil is none.
	elsewhere func(context.Context) []string
}

// load reads the embedded page once; the result is shared by all handlers.
var load = sync.OnceValue(func() *handler { return read(files) })

// Handler serves the page: hashed assets forever, index.html for every other
// path, so that the router in the page can show it. Other methods than GET and
// HEAD are refused. elsewhere returns the base URLs of storage proxies, with which the page
// exchanges files, and of models, to which it sends requests.
func Handler(elsewhere func(context.Context) []string) http.Handler {
	h := *load()
	h.elsewhere = elsewhere
	return &h
}

// Built reports whether the page was there when the program was compiled.
func Built() bool { return load().built }

func read(root fs.FS) *handler {
	h := &handler{assets: map[string]asset{}}
	dist, err := fs.Sub(root, "dist")
	if err == nil {
		err = fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			h.assets[name] = newAsset(name, func() []byte {
				data, _ := fs.ReadFile(dist, name) // a file of the program itself
				return data
			})
			return nil
		})
	}
	if page, ok := h.assets[index]; ok && err == nil {
		h.index, h.built = page, true
		return h
	}
	data, err := fs.ReadFile(root, missing)
	if err != nil {
		data = []byte("The web interface was not built.")
	}
	h.index = newAsset(index, func() []byte { return data })
	return h
}

func newAsset(name string, data func() []byte) asset {
	a := asset{plain: data, cache: "no-cache", contentType: contentType(name)}
	if strings.HasPrefix(name, "assets/") {
		a.cache = "public, max-age=31536000, immutable"
	}
	a.gzipped = sync.OnceValue(func() []byte { return pack(data()) })
	return a
}

// pack compresses a file, and returns nil where that does not pay.
func pack(data []byte) []byte {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil
	}
	if _, err := w.Write(data); err != nil || w.Close() != nil {
		return nil
	}
	if packed.Len() >= len(data)*9/10 {
		return nil
	}
	return bytes.Clone(packed.Bytes())
}

// contentType does not ask the host's MIME tables, which differ.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".json":
		return "application/json"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	protect(w.Header())
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	a, ok := h.assets[name]
	switch {
	case ok:
	case strings.HasPrefix(name, "assets/"):
		// An old page asks for a chunk of a former build: index.html in its
		// place would only fail later and less clearly.
		http.NotFound(w, r)
		return
	default:
		a = h.index
	}
	var origins []string
	if h.elsewhere != nil && strings.HasPrefix(a.contentType, "text/html") {
		origins = h.elsewhere(r.Context())
	}
	w.Header().Set("Content-Security-Policy", policy(r.Host, origins...))
	a.send(w, r)
}

func (a asset) send(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Type", a.contentType)
	head.Set("Cache-Control", a.cache)
	head.Set("Vary", "Accept-Encoding")
	var body []byte
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		body = a.gzipped()
	}
	if body != nil {
		head.Set("Content-Encoding", "gzip")
	} else {
		body = a.plain()
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if coding == "gzip" || coding == "*" {
			quality = strings.ReplaceAll(quality, " ", "")
			return quality != "q=0" && !strings.HasPrefix(quality, "q=0.000")
		}
	}
	return false
}

// protect sets what keeps a page of another origin, or injected text, from
// acting as this one.
func protect(head http.Header) {
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// policy names the host for WebSockets: not every browser lets 'self' cover
// them. A host that could end the directive is left out, and of the URLs those that
// are no other origin.
func policy(host string, urls ...string) string {
	others := ""
	if host != "" && strings.IndexFunc(host, notInHost) < 0 {
		others = fmt.Sprintf(" ws://%s wss://%s", host, host)
	}
	for _, text := range urls {
		u, err := url.Parse(text)
		if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.IndexFunc(u.Host, notInHost) < 0 {
			others += " " + u.Scheme + "://" + u.Host
		}
	}
	return "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
		"img-src 'self' data:; connect-src 'self'" + others +
		"; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
}

func notInHost(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune(".-:[]_", r)
}
