package vast

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/berthhq/berth/internal/simulator"
)

type quota struct {
	id          int64
	name, path  string
	hard, files *int64
	job         string // the job that counts existing files
}

// allowed answers for users that may do something with quotas.
func (p *product) allowed(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p.server.Setting("quota") == "refused" {
			refuse(w, http.StatusForbidden, "You do not have permission to perform this action.")
			return
		}
		answer(w, r)
	}
}

func (p *product) record(q *quota) record {
	u, err := p.server.Tree.Usage(inside(q.path))
	if err != nil {
		u = simulator.Usage{} // not counted yet, or deleted
	}
	sync := "SYNCHRONIZED"
	if job, _ := p.server.Jobs.Get(q.job); job.State != simulator.Done {
		sync = "SYNCHRONIZING"
	}
	return record{
		"id": q.id, "name": q.name, "path": q.path, "tenant_id": tenantID, "tenant_name": tenant, "state": "OK", "sync_state": sync,
		"hard_limit": q.hard, "hard_limit_inodes": q.files, "soft_limit": nil, "soft_limit_inodes": nil, "grace_period": nil,
		"used_capacity": u.Bytes, "used_effective_capacity": u.Bytes, "used_inodes": u.Files + u.Directories + 1,
	}
}

func (p *product) listQuotas(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p.mu.Lock()
	all := []*quota{}
	for _, one := range p.quotas {
		if path := q.Get("path"); path == "" || path == one.path {
			all = append(all, one)
		}
	}
	p.mu.Unlock()
	if t := q.Get("tenant_id"); t != "" && t != strconv.Itoa(tenantID) {
		all = nil
	}
	list(p, w, r, all, func(q *quota) record {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.record(q)
	}, "path", "name", "tenant_id")
}

// one finds the quota that a request names.
func (p *product) one(answer func(http.ResponseWriter, *http.Request, *quota)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		p.mu.Lock()
		i := slices.IndexFunc(p.quotas, func(q *quota) bool { return q.id == id })
		p.mu.Unlock()
		if i < 0 {
			refuse(w, http.StatusNotFound, "Not found.")
			return
		}
		p.mu.Lock()
		q := p.quotas[i]
		p.mu.Unlock()
		answer(w, r, q)
	}
}

func (p *product) getQuota(w http.ResponseWriter, _ *http.Request, q *quota) {
	p.mu.Lock()
	defer p.mu.Unlock()
	simulator.JSON(w, http.StatusOK, p.record(q))
}

func (p *product) createQuota(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name      string `json:"name"`
		Path      string `json:"path"`
		Tenant    int    `json:"tenant_id"`
		CreateDir bool   `json:"create_dir"`
		Hard      *int64 `json:"hard_limit"`
		Files     *int64 `json:"hard_limit_inodes"`
	}
	if err := simulator.Decode(r, &in); err != nil || in.Name == "" || in.Tenant != tenantID || bad(in.Hard) || bad(in.Files) {
		refuse(w, http.StatusBadRequest, "name, path, tenant_id: %v", err)
		return
	}
	in.Path = strings.TrimRight(in.Path, "/")
	p.mu.Lock()
	taken := slices.ContainsFunc(p.quotas, func(q *quota) bool { return q.path == in.Path || q.name == in.Name })
	if taken || inside(in.Path) == "" || !p.server.Tree.IsDir(inside(in.Path)) {
		p.mu.Unlock()
		refuse(w, http.StatusBadRequest, "%s: no such directory, or a quota of the name or path exists", in.Path)
		return
	}
	q := &quota{id: p.next, name: in.Name, path: in.Path, hard: in.Hard, files: in.Files}
	p.next++
	p.quotas = append(p.quotas, q)
	p.mu.Unlock()
	job := p.server.Jobs.Start("count "+q.path, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.server.Tree.Limit(inside(q.path), q.hard)
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	q.job = job.ID
	simulator.JSON(w, http.StatusCreated, p.record(q))
}

func bad(n *int64) bool { return n != nil && *n <= 0 }

// changeQuota changes the given fields; null removes a limit.
func (p *product) changeQuota(w http.ResponseWriter, r *http.Request, q *quota) {
	var in struct {
		Hard  json.RawMessage `json:"hard_limit"`
		Files json.RawMessage `json:"hard_limit_inodes"`
	}
	err := simulator.Decode(r, &in)
	p.mu.Lock()
	defer p.mu.Unlock()
	hard, files := q.hard, q.files
	for raw, into := range map[*json.RawMessage]**int64{&in.Hard: &hard, &in.Files: &files} {
		if err == nil && *raw != nil {
			*into = nil
			err = json.Unmarshal(*raw, into)
		}
	}
	if err != nil || bad(hard) || bad(files) {
		refuse(w, http.StatusBadRequest, "a limit is a number above 0, or null: %v", err)
		return
	}
	q.hard, q.files = hard, files
	if err := p.server.Tree.Limit(inside(q.path), q.hard); err != nil {
		refuse(w, http.StatusInternalServerError, "%v", err)
		return
	}
	simulator.JSON(w, http.StatusOK, p.record(q))
}

func (p *product) deleteQuota(w http.ResponseWriter, _ *http.Request, q *quota) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quotas = slices.DeleteFunc(p.quotas, func(other *quota) bool { return other == q })
	if at := inside(q.path); p.server.Tree.IsDir(at) {
		if err := p.server.Tree.Limit(at, nil); err != nil {
			refuse(w, http.StatusInternalServerError, "%v", err)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}
