// Package powerscale simulates the HTTP interface of OneFS on a PowerScale cluster: one directory
// of /ifs, which is mounted, sessions by cookie, and quotas of directories that limit bytes.
//
// Requests and answers have the form of OneFS 9 as in Dell's own isilon_sdk and goisilon: a session
// is a cookie, and a request with it needs the CSRF token and a Referer; later pages are requested
// by a token without other parameters. Settings:
//
//	licence  of SmartQuotas: "Licensed" by default, "Unlicensed", "Expired", "Evaluation"
//	scan     "waiting": quotas wait for a QuotaScan job, so their usage is wrong
//	api      the newest version of the interface: 16 by default; before 8, quotas have older fields
package powerscale

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/berthhq/berth/internal/simulator"
)

// Base is the directory that is mounted.
const Base = "/ifs/data/berth"

const newestAPI = 16

type product struct {
	server   *simulator.Server
	mux      *http.ServeMux
	sessions *simulator.Tokens
	csrf     *simulator.Tokens

	mu     sync.Mutex
	tokens map[string]string // of sessions
	quotas []*quota
	pages  map[string][]record // by the token of the next page
}

type record = map[string]any

// New creates the cluster.
func New(a *simulator.Server) (simulator.Product, error) {
	p := &product{
		server: a, mux: http.NewServeMux(), sessions: a.NewTokens(0), csrf: a.NewTokens(0),
		tokens: map[string]string{}, pages: map[string][]record{},
	}
	for pattern, answer := range map[string]http.HandlerFunc{
		"POST /session/1/session":                     p.login,
		"GET /platform/latest":                        p.latest,
		"GET /platform/3/cluster/config":              p.config,
		"GET /platform/5/quota/license":               p.licence,
		"GET /platform/{api}/quota/quotas":            p.version(p.listQuotas),
		"POST /platform/{api}/quota/quotas":           p.version(p.createQuota),
		"PUT /platform/{api}/quota/quotas/{id}":       p.version(p.changeQuota),
		"DELETE /platform/{api}/quota/quotas/{id}":    p.version(p.deleteQuota),
		"GET /platform/3/statistics/current":          p.current,
		"GET /platform/3/statistics/summary/protocol": p.protocol,
		"HEAD /namespace/":                            p.lookUp,
		"/":                                           p.unknown,
	} {
		p.mux.HandleFunc(pattern, answer)
	}
	return p, nil
}

// Options implements simulator.Product.
func (p *product) Options() map[string]any {
	return p.server.Reached(map[string]any{
		"path": Base,
	})
}

func (p *product) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/session/1/session" && !p.session(r) {
		refuse(w, http.StatusUnauthorized, "AEC_UNAUTHORIZED", "Authorization required")
		return
	}
	p.mux.ServeHTTP(w, r)
}

// session reports whether a request has a session, and was not sent by a page of another site.
func (p *product) session(r *http.Request) bool {
	c, err := r.Cookie("isisessid")
	if err != nil || !p.sessions.Valid(c.Value) || r.Header.Get("Referer") != p.server.URL {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tokens[c.Value] == r.Header.Get("X-CSRF-Token")
}

// Refusal implements simulator.ErrorFormatter.
func (p *product) Refusal(status int) any {
	return failure("AEC_"+strings.ToUpper(strings.ReplaceAll(http.StatusText(status), " ", "_")), http.StatusText(status))
}

func failure(code, message string) record {
	return record{"errors": []record{{"code": code, "message": message}}}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	simulator.JSON(w, status, failure(code, message))
}

func (p *product) unknown(w http.ResponseWriter, r *http.Request) {
	refuse(w, http.StatusNotFound, "AEC_NOT_FOUND", "Path not found: "+r.Method+" "+r.URL.Path)
}

func (p *product) login(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Username string   `json:"username"`
		Password string   `json:"password"`
		Services []string `json:"services"`
	}
	if err := simulator.Decode(r, &q); err != nil {
		refuse(w, http.StatusBadRequest, "AEC_BAD_REQUEST", err.Error())
		return
	}
	if !p.server.Login(q.Username, q.Password) {
		simulator.JSON(w, http.StatusUnauthorized, record{"message": "Username or password is incorrect."})
		return
	}
	session, life := p.sessions.Issue()
	token, _ := p.csrf.Issue()
	p.mu.Lock()
	p.tokens[session] = token
	p.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: "isisessid", Value: session, Path: "/", HttpOnly: true, Secure: true})
	http.SetCookie(w, &http.Cookie{Name: "isicsrf", Value: token, Path: "/", Secure: true})
	simulator.JSON(w, http.StatusCreated, record{
		"services": q.Services, "username": q.Username, "timeout_absolute": int(life.Seconds()), "timeout_inactive": 900,
	})
}

func (p *product) api() int {
	if n, err := strconv.Atoi(p.server.Setting("api")); err == nil {
		return n
	}
	return newestAPI
}

// version refuses versions of the interface that the cluster does not have yet.
func (p *product) version(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if n, err := strconv.Atoi(r.PathValue("api")); err != nil || n < 1 || n > p.api() {
			p.unknown(w, r)
			return
		}
		next(w, r)
	}
}

func (p *product) latest(w http.ResponseWriter, _ *http.Request) {
	simulator.JSON(w, http.StatusOK, record{"latest": strconv.Itoa(p.api())})
}

func (p *product) config(w http.ResponseWriter, _ *http.Request) {
	simulator.JSON(w, http.StatusOK, record{
		"name": "array", "guid": "000e1ea7f7e1", "onefs_version": record{"release": "v9.5.0.0", "type": "Isilon OneFS"},
	})
}

func (p *product) licence(w http.ResponseWriter, _ *http.Request) {
	status := p.server.Setting("licence")
	if status == "" {
		status = "Licensed"
	}
	simulator.JSON(w, http.StatusOK, record{"id": "SMARTQUOTAS", "name": "SmartQuotas", "status": status})
}

// lookUp answers for a directory by its name.
func (p *product) lookUp(w http.ResponseWriter, r *http.Request) {
	if name, ok := below(strings.TrimPrefix(r.URL.Path, "/namespace")); !ok || !p.server.Tree.IsDir(name) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("X-Isi-Ifs-Target-Type", "container")
	w.WriteHeader(http.StatusOK)
}

// below is a path's name in the tree.
func below(path string) (string, bool) {
	if path == Base {
		return ".", true
	}
	return strings.CutPrefix(path, Base+"/")
}

func (p *product) current(w http.ResponseWriter, r *http.Request) {
	total, used, free, err := p.server.Tree.Capacity()
	if err == nil {
		err = simulator.Query(r.URL.Query(), "keys", "key", "devid", "degraded", "timeout")
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "AEC_BAD_REQUEST", err.Error())
		return
	}
	known := map[string]int64{"ifs.bytes.total": total, "ifs.bytes.used": used, "ifs.bytes.avail": free}
	var stats []record
	for _, key := range strings.Split(r.URL.Query().Get("keys"), ",") {
		s := record{"devid": 0, "error": nil, "error_code": nil, "key": key, "time": p.server.Tree.Rates(0).At.Unix(), "value": nil}
		if n, ok := known[key]; ok {
			s["value"] = n
		} else {
			s["error"], s["error_code"] = "No such key", 2
		}
		stats = append(stats, s)
	}
	simulator.JSON(w, http.StatusOK, record{"stats": stats})
}
