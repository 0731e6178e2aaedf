// Package hammerspace simulates the REST interface of a Hammerspace Anvil. The namespace is
// mounted; a share is one of its directories, with a size limit. Every change is a task: the answer
// is 202 with the address of the task.
//
// Requests and answers have the form of the REST interface v1.2 as Hammerspace's own CSI plugin
// uses it. Settings:
//
//	licence  "none": shares cannot be created or changed
//	resize   "ignored": a share's limit is not changed by a task that succeeds
//	order    "directory first": the directory of a share appears before the share
//	state    of the shares: "PUBLISHED" by default
//	health   of the cluster's state: "HEALTHY" by default
package hammerspace

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/simulator"
)

const (
	base    = "/mgmt/v1.2/rest"
	session = "JSESSIONID"
)

type product struct {
	server   *simulator.Server
	mux      *http.ServeMux
	sessions *simulator.Tokens

	mu     sync.Mutex
	shares []*share
	tasks  []task
}

type record = map[string]any

// New creates the Anvil.
func New(a *simulator.Server) (simulator.Product, error) {
	p := &product{server: a, mux: http.NewServeMux(), sessions: a.NewTokens(0)}
	for pattern, answer := range map[string]http.HandlerFunc{
		"POST " + base + "/login":           p.login,
		"GET " + base + "/cntl/state":       p.state,
		"GET " + base + "/shares":           p.list,
		"POST " + base + "/shares":          p.licensed(p.create),
		"GET " + base + "/shares/{name}":    p.get,
		"PUT " + base + "/shares/{name}":    p.licensed(p.change),
		"DELETE " + base + "/shares/{name}": p.remove,
		"GET " + base + "/tasks":            p.listTasks,
		"GET " + base + "/tasks/{id}":       p.getTask,
		"/":                                 func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "not found") },
	} {
		p.mux.HandleFunc(pattern, answer)
	}
	return p, nil
}

// Options implements simulator.Product.
func (p *product) Options() map[string]any {
	return p.server.Reached(map[string]any{
		"portal": "portal.example",
	})
}

func (p *product) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := r.Cookie(session)
	if r.URL.Path != base+"/login" && (err != nil || !p.sessions.Valid(c.Value)) {
		refuse(w, http.StatusUnauthorized, "the session has ended")
		return
	}
	p.mux.ServeHTTP(w, r)
}

// Refusal implements simulator.ErrorFormatter.
func (p *product) Refusal(status int) any { return failure(http.StatusText(status)) }

// failure is an error in the format of the Anvil: a list of messages.
func failure(text string) any { return []record{{"code": 0, "message": text}} }

func refuse(w http.ResponseWriter, status int, text string) { simulator.JSON(w, status, failure(text)) }

func (p *product) login(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || !p.server.Login(r.PostForm.Get("username"), r.PostForm.Get("password")) {
		refuse(w, http.StatusUnauthorized, "Invalid username or password")
		return
	}
	token, _ := p.sessions.Issue()
	http.SetCookie(w, &http.Cookie{Name: session, Value: token, Path: "/", Secure: true, HttpOnly: true})
	simulator.JSON(w, http.StatusOK, record{})
}

// licensed calls a handler if there is a licence.
func (p *product) licensed(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p.server.Setting("licence") == "none" {
			refuse(w, http.StatusForbidden, "no valid license for this operation")
			return
		}
		answer(w, r)
	}
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

func (p *product) state(w http.ResponseWriter, _ *http.Request) {
	total, used, free, err := p.server.Tree.Capacity()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	health := p.server.Setting("health")
	if health == "" {
		health = "HEALTHY"
	}
	simulator.JSON(w, http.StatusOK, record{
		"name": "array", "state": health,
		"capacity": record{"total": text(total), "used": text(used), "free": text(free)},
	})
}

// task is a job with the parameters of its request.
type task struct{ id, name, share string }

// start answers with a task, which does the work.
func (p *product) start(w http.ResponseWriter, name, share string, work func() error) {
	job := p.server.Jobs.Start(name+" "+share, work)
	p.mu.Lock()
	p.tasks = append(p.tasks, task{id: job.ID, name: name, share: share})
	p.mu.Unlock()
	w.Header().Set("Location", p.server.URL+base+"/tasks/"+job.ID)
	w.WriteHeader(http.StatusAccepted)
}

func (p *product) taskRecord(t task) record {
	job, _ := p.server.Jobs.Get(t.id)
	out := record{
		"uuid": t.id, "name": t.name, "status": "NONE", "exitValue": "NONE", "statusMessage": "",
		"paramsMap": record{"name": t.share},
	}
	switch job.State {
	case simulator.Running:
		out["status"] = "EXECUTING"
	case simulator.Done:
		out["status"], out["exitValue"] = "COMPLETED", "0"
	case simulator.Failed:
		out["status"], out["exitValue"], out["statusMessage"] = "FAILED", "1", job.Err.Error()
	}
	return out
}

func (p *product) listTasks(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []record{}
	for _, t := range p.tasks {
		all = append(all, p.taskRecord(t))
	}
	simulator.JSON(w, http.StatusOK, all)
}

func (p *product) getTask(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.tasks, func(t task) bool { return t.id == r.PathValue("id") })
	if i < 0 {
		refuse(w, http.StatusNotFound, "no such task")
		return
	}
	simulator.JSON(w, http.StatusOK, p.taskRecord(p.tasks[i]))
}

// share is a directory with a limit.
type share struct {
	name, path, comment string
	uoid                string
	limit               int64 // 0 = none
	exports             []export
	info                map[string]string
	made, removed       bool
}

type export struct {
	Subnet      string `json:"subnet"`
	Permissions string `json:"accessPermissions"`
	RootSquash  bool   `json:"rootSquash"`
}

func (s *share) inside() string { return strings.Trim(s.path, "/") }

func (p *product) record(s *share) record {
	u, err := p.server.Tree.Usage(s.inside())
	if err != nil {
		u = simulator.Usage{} // the directory is being created or removed
	}
	state := p.server.Setting("state")
	switch {
	case s.removed:
		state = "REMOVED"
	case state == "":
		state = "PUBLISHED"
	}
	out := record{
		"name": s.name, "path": s.path, "comment": s.comment, "extendedInfo": s.info, "exportOptions": s.exports,
		"shareState": state, "uoid": record{"uuid": s.uoid, "objectType": "SHARE"},
		"space":  record{"used": text(u.Bytes), "total": text(s.limit), "available": text(max(0, s.limit-u.Bytes))},
		"inodes": record{"used": text(u.Files + u.Directories + 1)},
	}
	if s.limit > 0 {
		out["shareSizeLimit"] = text(s.limit)
	}
	return out
}

func (p *product) list(w http.ResponseWriter, r *http.Request) {
	if err := simulator.Query(r.URL.Query()); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []record{}
	for _, s := range p.shares {
		if s.made {
			all = append(all, p.record(s))
		}
	}
	simulator.JSON(w, http.StatusOK, all)
}

// find returns an existing share. The caller has the lock.
func (p *product) find(name string) *share {
	i := slices.IndexFunc(p.shares, func(s *share) bool { return s.name == name && s.made })
	if i < 0 {
		return nil
	}
	return p.shares[i]
}

func (p *product) get(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.find(r.PathValue("name"))
	if s == nil {
		refuse(w, http.StatusNotFound, "no such share")
		return
	}
	simulator.JSON(w, http.StatusOK, p.record(s))
}

func (p *product) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name    string            `json:"name"`
		Path    string            `json:"path"`
		Comment string            `json:"comment"`
		Info    map[string]string `json:"extendedInfo"`
		Limit   int64             `json:"shareSizeLimit"`
		Exports []export          `json:"exportOptions"`
	}
	err := simulator.Decode(r, &in)
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, err.Error())
		return
	case in.Name == "" || len(in.Name) > 80 || !strings.HasPrefix(in.Path, "/") || in.Exports == nil || in.Limit < 0:
		refuse(w, http.StatusBadRequest, "name, path and exportOptions are required")
		return
	}
	s := &share{
		name: in.Name, path: in.Path, comment: in.Comment, uoid: uuid.NewString(),
		limit: in.Limit, exports: in.Exports, info: in.Info,
	}
	p.mu.Lock()
	p.shares = slices.DeleteFunc(p.shares, func(o *share) bool { return !o.made && p.failed(o.name) })
	taken := slices.ContainsFunc(p.shares, func(o *share) bool { return o.name == s.name || o.path == s.path })
	if !taken {
		p.shares = append(p.shares, s)
	}
	p.mu.Unlock()
	if taken {
		refuse(w, http.StatusBadRequest, "a share of this name or path exists, or is being created")
		return
	}
	early := p.server.Setting("order") == "directory first"
	if early {
		if err := p.server.Tree.Make(s.inside(), 0o777); err != nil {
			refuse(w, http.StatusInternalServerError, err.Error())
			return
		}
	}
	p.start(w, "share-create", s.name, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !early {
			if err := p.server.Tree.Make(s.inside(), 0o777); err != nil {
				return err
			}
		}
		s.made = true
		return p.server.Tree.Limit(s.inside(), s.bytes())
	})
}

// failed reports whether the last task of a share has.
func (p *product) failed(name string) bool {
	state := simulator.Queued
	for _, t := range p.tasks {
		if t.share == name {
			job, _ := p.server.Jobs.Get(t.id)
			state = job.State
		}
	}
	return state == simulator.Failed
}

func (s *share) bytes() *int64 {
	if s.limit == 0 {
		return nil
	}
	return &s.limit
}

// change replaces a share by the request, which must be complete.
func (p *product) change(w http.ResponseWriter, r *http.Request) {
	var in map[string]json.RawMessage
	if err := simulator.Decode(r, &in); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	p.mu.Lock()
	s := p.find(r.PathValue("name"))
	whole := s != nil
	if s != nil {
		for field := range p.record(s) {
			_, ok := in[field]
			whole = whole && (ok || field == "shareSizeLimit")
		}
	}
	p.mu.Unlock()
	var limit json.Number
	switch raw := in["shareSizeLimit"]; {
	case s == nil:
		refuse(w, http.StatusNotFound, "no such share")
		return
	case !whole || raw != nil && json.Unmarshal(raw, &limit) != nil:
		refuse(w, http.StatusBadRequest, "the share is not complete")
		return
	}
	n, _ := limit.Int64() // 0 without a limit
	p.start(w, "share-update", s.name, func() error {
		if p.server.Setting("resize") == "ignored" {
			return nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		s.limit = n
		return p.server.Tree.Limit(s.inside(), s.bytes())
	})
}

// remove deletes a share, and with delete-path also its contents.
func (p *product) remove(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if err := simulator.Query(q, "delete-path", "delete-delay"); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	p.mu.Lock()
	s := p.find(r.PathValue("name"))
	again := s != nil && s.removed
	if s != nil {
		s.removed = true
	}
	p.mu.Unlock()
	switch {
	case s == nil:
		refuse(w, http.StatusNotFound, "no such share")
		return
	case again:
		refuse(w, http.StatusBadRequest, "Cannot remove a share with state REMOVED.")
		return
	}
	p.start(w, "share-delete", s.name, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if q.Get("delete-path") == "true" {
			if err := p.server.Tree.Remove(s.inside(), true); err != nil {
				return err
			}
		}
		p.shares = slices.DeleteFunc(p.shares, func(o *share) bool { return o == s })
		return nil
	})
}
