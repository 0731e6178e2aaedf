// Package weka simulates the REST interface of a WEKA cluster with one file system, which is
// mounted. A quota belongs to the inode number of a directory; while the cluster counts its
// contents, the status of the quota is ADDING.
//
// Requests and answers have the form of the REST interface v2 as WEKA's own CSI plugin (csi-wekafs)
// uses it. Settings:
//
//	version       "4.4.2" by default; before 4.3 no path can be resolved
//	quota         "refused": the user has no permission to read or set quotas
//	data_service  "on": a directory that is not empty can have its first quota
//	state         "rebuilding": the file system is not ready
package weka

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/simulator"
)

const (
	base           = "/api/v2"
	filesystemName = "default"
)

type product struct {
	server  *simulator.Server
	mux     *http.ServeMux
	uid     string
	access  *simulator.Tokens
	refresh *simulator.Tokens

	mu     sync.Mutex
	inodes map[string]uint64 // by path; a directory that is created again gets another inode
	next   uint64
	quotas map[uint64]*quota
}

type record = map[string]any

// New creates the cluster.
func New(a *simulator.Server) (simulator.Product, error) {
	p := &product{
		server: a, mux: http.NewServeMux(), uid: uuid.NewString(), access: a.NewTokens(0), refresh: a.NewTokens(0),
		inodes: map[string]uint64{"": 1}, next: 10092623495168, quotas: map[uint64]*quota{},
	}
	of := base + "/fileSystems/{uid}"
	for pattern, answer := range map[string]http.HandlerFunc{
		"GET " + base + "/cluster":        p.cluster,
		"GET " + base + "/stats/realtime": p.realtime,
		"GET " + base + "/fileSystems":    p.filesystems,
		"GET " + of:                       p.ours(p.filesystem),
		"GET " + of + "/resolvePath":      p.ours(p.resolve),
		"GET " + of + "/quota":            p.ours(p.allowed(p.listQuotas)),
		"GET " + of + "/quota/{inode}":    p.ours(p.allowed(p.getQuota)),
		"PUT " + of + "/quota/{inode}":    p.ours(p.allowed(p.putQuota)),
		"DELETE " + of + "/quota/{inode}": p.ours(p.allowed(p.deleteQuota)),
		"POST " + base + "/login":         p.login,
		"POST " + base + "/login/refresh": p.renew,
		base + "/":                        p.unknown,
	} {
		p.mux.HandleFunc(pattern, answer)
	}
	return p, nil
}

// Options implements simulator.Product.
func (p *product) Options() map[string]any {
	return p.server.Reached(map[string]any{
		"filesystem": filesystemName,
	})
}

func (p *product) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !strings.HasPrefix(r.URL.Path, base+"/login") && !p.access.Valid(token) {
		simulator.JSON(w, http.StatusUnauthorized, p.Refusal(http.StatusUnauthorized))
		return
	}
	p.mux.ServeHTTP(w, r)
}

// Refusal implements simulator.ErrorFormatter.
func (p *product) Refusal(status int) any {
	return failure("HttpException", http.StatusText(status))
}

func failure(class, text string) record {
	return record{"message": text, "data": record{"exceptionClass": class, "exceptionText": text, "reason": text}}
}

func refuse(w http.ResponseWriter, status int, class, text string) {
	simulator.JSON(w, status, failure(class, text))
}

// data answers as all calls do that went well.
func data(w http.ResponseWriter, v any) { simulator.JSON(w, http.StatusOK, record{"data": v}) }

func (p *product) unknown(w http.ResponseWriter, r *http.Request) {
	refuse(w, http.StatusNotFound, "UnknownPath", "no such path: "+r.Method+" "+r.URL.Path)
}

func (p *product) login(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Username string `json:"username"`
		Password string `json:"password"`
		Org      string `json:"org"`
	}
	if err := simulator.Decode(r, &q); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	if !p.server.Login(q.Username, q.Password) || q.Org != "Root" {
		refuse(w, http.StatusUnauthorized, "LoginFailed", "Incorrect username or password")
		return
	}
	p.issue(w)
}

func (p *product) renew(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Token string `json:"refresh_token"`
	}
	if err := simulator.Decode(r, &q); err != nil || !p.refresh.Valid(q.Token) {
		refuse(w, http.StatusUnauthorized, "InvalidToken", "The refresh token is invalid or expired")
		return
	}
	p.refresh.Revoke(q.Token)
	p.issue(w)
}

func (p *product) issue(w http.ResponseWriter) {
	access, life := p.access.Issue()
	refresh, _ := p.refresh.Issue()
	data(w, record{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": int(life.Seconds())})
}

func (p *product) version() string {
	if v := p.server.Setting("version"); v != "" {
		return v
	}
	return "4.4.2"
}

func (p *product) cluster(w http.ResponseWriter, _ *http.Request) {
	data(w, record{"name": "array", "guid": p.uid, "release": p.version(), "init_stage": "STABLE"})
}

func (p *product) record() (record, error) {
	total, used, free, err := p.server.Tree.Capacity()
	if err != nil {
		return nil, err
	}
	ready := p.server.Setting("state") == ""
	return record{
		"id": "FSId<0>", "uid": p.uid, "name": filesystemName, "group_name": "default", "is_ready": ready, "is_creating": !ready, "is_removing": false,
		"status": map[bool]string{true: "READY", false: "REBUILDING"}[ready], "auth_required": false,
		"total_budget": total, "used_total": used, "used_total_data": used, "available_total": free, "free_total": free,
	}, nil
}

func (p *product) filesystems(w http.ResponseWriter, r *http.Request) {
	if err := simulator.Query(r.URL.Query(), "name"); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	all := []record{}
	fs, err := p.record()
	if name := r.URL.Query().Get("name"); err == nil && (name == "" || name == filesystemName) {
		all = append(all, fs)
	}
	p.answer(w, all, err)
}

func (p *product) filesystem(w http.ResponseWriter, _ *http.Request) {
	fs, err := p.record()
	p.answer(w, fs, err)
}

func (p *product) answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		refuse(w, http.StatusInternalServerError, "OperationFailedException", err.Error())
		return
	}
	data(w, v)
}

// ours calls a handler if the request is for the only file system.
func (p *product) ours(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("uid") != p.uid {
			refuse(w, http.StatusBadRequest, "FilesystemDoesNotExistException", "there is no such file system")
			return
		}
		answer(w, r)
	}
}

// resolve finds a directory's inode number, which is text here and a number elsewhere.
func (p *product) resolve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(p.version(), "4.2") {
		p.unknown(w, r)
		return
	}
	path := strings.Trim(r.URL.Query().Get("path"), "/")
	if simulator.Query(r.URL.Query(), "path") != nil || path != "" && !p.server.Tree.IsDir(path) {
		refuse(w, http.StatusBadRequest, "OperationFailedException", "PATH_NOT_FOUND")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n, known := p.inodes[path]
	if known && p.quotas[n] != nil && p.quotas[n].laid {
		_, err := p.server.Tree.Usage(path)
		known = err == nil // otherwise another directory has the name now
	}
	if !known {
		n = p.next
		p.next++
		p.inodes[path] = n
	}
	data(w, record{"inode_id": strconv.FormatUint(n, 10)})
}
