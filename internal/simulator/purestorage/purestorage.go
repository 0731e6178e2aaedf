// Package purestorage simulates the REST interface 2 of a FlashBlade: file systems, each with an
// optional hard limit. The file system "berth" is mounted. The file systems "berth-SCOPE" are
// directories at its top, as if they were mounted there.
//
// Requests and answers have the form of Pure's own exporter, Ansible collection and py-pure-client.
// Settings:
//
//	versions  of the interface: "1.8,2.0,2.4,2.12" by default
package purestorage

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/berthhq/berth/internal/simulator"
)

const (
	base    = "berth"
	prefix  = "berth-"
	api     = "/api/2.12"
	address = "192.0.2.10" // of data
)

type product struct {
	server *simulator.Server
	mux    *http.ServeMux
	token  string // of the API, with which a client logs in
	file   string
	tokens *simulator.Tokens

	mu    sync.Mutex
	all   []*filesystem
	pages map[string][]record
}

type record = map[string]any

// New creates the array.
func New(a *simulator.Server) (simulator.Product, error) {
	p := &product{server: a, mux: http.NewServeMux(), token: "T-" + simulator.Random(), tokens: a.NewTokens(0), pages: map[string][]record{}}
	p.all = []*filesystem{{name: base, tree: "."}}
	var err error
	if p.file, err = a.Secret("token", p.token); err != nil {
		return nil, err
	}
	for pattern, answer := range map[string]http.HandlerFunc{
		"GET /api/api_version":                     p.versions,
		"POST /api/login":                          p.login,
		"GET " + api + "/arrays":                   p.about,
		"GET " + api + "/arrays/space":             p.space,
		"GET " + api + "/arrays/performance":       p.performance,
		"GET " + api + "/file-systems":             p.list,
		"POST " + api + "/file-systems":            p.create,
		"PATCH " + api + "/file-systems":           p.change,
		"DELETE " + api + "/file-systems":          p.eradicate,
		"GET " + api + "/file-systems/performance": p.performance,
		"/": p.unknown,
	} {
		p.mux.HandleFunc(pattern, answer)
	}
	return p, nil
}

// Options implements simulator.Product.
func (p *product) Options() map[string]any {
	return map[string]any{
		"url": p.server.URL, "ca_file": p.server.CAFile, "token_file": p.file,
		"mode": "filesystem-per-scope", "prefix": prefix, "data_address": address,
	}
}

func (p *product) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if open := r.URL.Path == "/api/login" || r.URL.Path == "/api/api_version"; !open && !p.tokens.Valid(r.Header.Get("X-Auth-Token")) {
		simulator.JSON(w, http.StatusUnauthorized, p.Refusal(http.StatusUnauthorized))
		return
	}
	p.mux.ServeHTTP(w, r)
}

// Refusal implements simulator.ErrorFormatter.
func (p *product) Refusal(status int) any { return failure("", http.StatusText(status)) }

func failure(context, message string) record {
	return record{"errors": []record{{"context": context, "message": message}}}
}

// refuse sends the error for every invalid request, in the format of the array.
func refuse(w http.ResponseWriter, context, format string, args ...any) {
	simulator.JSON(w, http.StatusBadRequest, failure(context, fmt.Sprintf(format, args...)))
}

func (p *product) unknown(w http.ResponseWriter, r *http.Request) {
	simulator.JSON(w, http.StatusNotFound, failure(r.URL.Path, "Not found."))
}

func (p *product) versions(w http.ResponseWriter, _ *http.Request) {
	v := p.server.Setting("versions")
	if v == "" {
		v = "1.8,2.0,2.4,2.12"
	}
	simulator.JSON(w, http.StatusOK, record{"versions": strings.Split(v, ",")})
}

func (p *product) login(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Api-Token") != p.token {
		simulator.JSON(w, http.StatusUnauthorized, failure("", "Invalid API token."))
		return
	}
	session, _ := p.tokens.Issue()
	w.Header().Set("X-Auth-Token", session)
	simulator.JSON(w, http.StatusOK, record{"username": "pureuser"})
}

func (p *product) about(w http.ResponseWriter, _ *http.Request) {
	simulator.JSON(w, http.StatusOK, record{"items": []record{{"name": "array", "os": "Purity//FB", "version": "4.3.1"}}})
}

func (p *product) space(w http.ResponseWriter, _ *http.Request) {
	total, used, _, err := p.server.Tree.Capacity()
	if err != nil {
		refuse(w, "", "%v", err)
		return
	}
	simulator.JSON(w, http.StatusOK, record{"items": []record{{
		"name": "array", "capacity": total, "parity": 1,
		"space": record{"data_reduction": 1, "snapshots": 0, "total_physical": used, "unique": used, "virtual": used},
	}}})
}

// performance returns the rates of the array, or of one of its file systems.
func (p *product) performance(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	if err := simulator.Query(v, "names", "protocol", "start_time", "end_time", "resolution"); err != nil {
		refuse(w, "", "%v", err)
		return
	}
	name := "array"
	if strings.HasSuffix(r.URL.Path, "/file-systems/performance") {
		name = v.Get("names")
		p.mu.Lock()
		known := p.find(name) != nil
		p.mu.Unlock()
		if !known || v.Get("protocol") != "NFS" {
			refuse(w, name, absent)
			return
		}
	}
	x := p.server.Tree.Rates(30 * time.Second)
	simulator.JSON(w, http.StatusOK, record{"items": []record{{
		"name": name, "time": x.At.UnixMilli(),
		"reads_per_sec": x.Reads, "writes_per_sec": x.Writes, "others_per_sec": 0,
		"read_bytes_per_sec": x.BytesRead, "write_bytes_per_sec": x.BytesWritten,
		"usec_per_read_op": x.ReadMicros, "usec_per_write_op": x.WriteMicros, "usec_per_other_op": 0,
	}}})
}
