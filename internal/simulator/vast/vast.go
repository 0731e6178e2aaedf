// Package vast simulates the REST interface of a VAST cluster with one tenant and one view, /berth,
// which is mounted. A quota belongs to a path. A folder can be moved to the trash of the cluster,
// which removes it later.
//
// Requests and answers have the form of the REST interface v1 as VAST's own CSI plugin uses it.
// Settings:
//
//	quota    "refused": the user has no permission to read or set quotas
//	trash    "disabled": folders cannot be deleted, as before it is turned on in the cluster's settings
//	state    of the cluster: "ONLINE" by default
//	pages    "always": lists are paged without a request for it, as in newer versions
//
// The product sets two for tests: token_file, a file with a token that does not expire, and token,
// its content.
package vast

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berthhq/berth/internal/simulator"
)

const (
	base     = "/api/v1"
	root     = "/berth"
	tenantID = 1
	tenant   = "default"
)

type product struct {
	server  *simulator.Server
	mux     *http.ServeMux
	access  *simulator.Tokens
	refresh *simulator.Tokens

	mu     sync.Mutex
	quotas []*quota
	next   int64
}

type record = map[string]any

// New creates the cluster.
func New(a *simulator.Server) (simulator.Product, error) {
	p := &product{server: a, mux: http.NewServeMux(), access: a.NewTokens(0), refresh: a.NewTokens(0), next: 1}
	token := simulator.Random()
	file, err := a.Secret("token", token)
	if err != nil {
		return nil, err
	}
	a.Set("token", token)
	a.Set("token_file", file)
	for pattern, answer := range map[string]http.HandlerFunc{
		"POST " + base + "/token/{$}":                   p.login,
		"POST " + base + "/token/refresh/{$}":           p.renew,
		"GET " + base + "/versions/{$}":                 p.versions,
		"GET " + base + "/tenants/{$}":                  p.tenants,
		"GET " + base + "/clusters/{$}":                 p.clusters,
		"GET " + base + "/quotas/{$}":                   p.allowed(p.listQuotas),
		"POST " + base + "/quotas/{$}":                  p.allowed(p.createQuota),
		"GET " + base + "/quotas/{id}/{$}":              p.allowed(p.one(p.getQuota)),
		"PATCH " + base + "/quotas/{id}/{$}":            p.allowed(p.one(p.changeQuota)),
		"DELETE " + base + "/quotas/{id}/{$}":           p.allowed(p.one(p.deleteQuota)),
		"DELETE " + base + "/folders/delete_folder/{$}": p.deleteFolder,
		"/": func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "Not found.") },
	} {
		p.mux.HandleFunc(pattern, answer)
	}
	return p, nil
}

// Options implements simulator.Product. The disk behind the array does not limit numbers
// of files.
func (p *product) Options() map[string]any {
	return p.server.Reached(map[string]any{
		"path": root, "file_limits": false,
	})
}

func (p *product) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case strings.HasPrefix(r.URL.Path, base+"/token/"):
	case kind == "Api-Token" && token == p.server.Setting("token"):
	case kind == "Bearer" && p.access.Valid(token):
	default:
		refuse(w, http.StatusForbidden, "Token is invalid or expired")
		return
	}
	p.mux.ServeHTTP(w, r)
}

// Refusal implements simulator.ErrorFormatter.
func (p *product) Refusal(status int) any { return record{"detail": http.StatusText(status)} }

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	simulator.JSON(w, status, record{"detail": fmt.Sprintf(format, args...)})
}

func (p *product) login(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	if err := simulator.Decode(r, &q); err != nil || !p.server.Login(q.Username, q.Password) {
		refuse(w, http.StatusUnauthorized, "No active account found with the given credentials")
		return
	}
	access, _ := p.access.Issue()
	refresh, _ := p.refresh.Issue()
	simulator.JSON(w, http.StatusOK, record{"access": access, "refresh": refresh})
}

func (p *product) renew(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Refresh string `json:"refresh"`
	}
	if err := simulator.Decode(r, &q); err != nil || !p.refresh.Valid(q.Refresh) {
		refuse(w, http.StatusUnauthorized, "Token is invalid or expired")
		return
	}
	access, _ := p.access.Issue()
	simulator.JSON(w, http.StatusOK, record{"access": access})
}

// list answers with all entries, or with a page if requested.
func list[T any](p *product, w http.ResponseWriter, r *http.Request, all []T, show func(T) record, known ...string) {
	q := r.URL.Query()
	if err := simulator.Query(q, append(known, "page", "page_size")...); err != nil {
		refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	paged := q.Has("page") || q.Has("page_size") || p.server.Setting("pages") == "always"
	number, _ := strconv.Atoi(q.Get("page"))
	size, _ := strconv.Atoi(q.Get("page_size"))
	page, next := all, 0
	if paged {
		whole, _ := simulator.Page(p.server, all, 0, size) // the default page size
		page, next = simulator.Page(p.server, all, max(number-1, 0)*len(whole), size)
	}
	records := []record{}
	for _, one := range page {
		records = append(records, show(one))
	}
	if !paged {
		simulator.JSON(w, http.StatusOK, records)
		return
	}
	out := record{"count": len(all), "next": nil, "previous": nil, "results": records}
	if next > 0 {
		q.Set("page", strconv.Itoa(max(number, 1)+1))
		out["next"] = p.server.URL + r.URL.Path + "?" + url.Values(q).Encode()
	}
	simulator.JSON(w, http.StatusOK, out)
}

func self(r record) record { return r }

func (p *product) versions(w http.ResponseWriter, r *http.Request) {
	list(p, w, r, []record{{"id": 1, "name": "5.1.0", "sys_version": "5.1.0.45", "status": "success"}}, self, "status")
}

func (p *product) tenants(w http.ResponseWriter, r *http.Request) {
	all := []record{}
	if name := r.URL.Query().Get("name"); name == "" || name == tenant {
		all = append(all, record{"id": tenantID, "name": tenant})
	}
	list(p, w, r, all, self, "name")
}

func (p *product) clusters(w http.ResponseWriter, r *http.Request) {
	total, used, free, err := p.server.Tree.Capacity()
	if err != nil {
		refuse(w, http.StatusInternalServerError, "%v", err)
		return
	}
	state := p.server.Setting("state")
	if state == "" {
		state = "ONLINE"
	}
	rates := p.server.Tree.Rates(10 * time.Second)
	list(p, w, r, []record{{
		"id": 1, "name": "array", "state": state,
		"usable_capacity_bytes": total, "free_usable_capacity": free, "physical_space_in_use": used,
		"rd_iops": rates.Reads, "wr_iops": rates.Writes, "rd_bw": rates.BytesRead, "wr_bw": rates.BytesWritten,
		"rd_latency": rates.ReadMicros, "wr_latency": rates.WriteMicros,
	}}, self)
}

// inside returns the path in the tree for a path of the cluster, and "" if it is not below the
// view.
func inside(path string) string {
	below, ok := strings.CutPrefix(strings.TrimRight(path, "/"), root+"/")
	if !ok || strings.Contains("/"+below+"/", "/../") {
		return ""
	}
	return below
}

// deleteFolder moves a folder to the trash, which deletes it after a while.
func (p *product) deleteFolder(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Path   string `json:"path"`
		Tenant int    `json:"tenant_id"`
	}
	err := simulator.Decode(r, &q)
	path := inside(q.Path)
	switch {
	case err != nil || q.Tenant != tenantID:
		refuse(w, http.StatusBadRequest, "tenant_id and path are required")
	case p.server.Setting("trash") == "disabled":
		refuse(w, http.StatusBadRequest, "trash folder disabled")
	case path == "" || !p.server.Tree.IsDir(path):
		refuse(w, http.StatusBadRequest, "no such directory")
	default:
		p.server.Jobs.Start("trash "+path, func() error { return p.server.Tree.Remove(path, true) })
		w.WriteHeader(http.StatusNoContent)
	}
}
