// Package netapp simulates the REST interface of a NetApp array with one storage virtual machine
// and one volume, which is mounted. Qtrees are directories of the volume, and a quota rule of a
// qtree limits its bytes.
//
// Requests, answers and codes have the form of ONTAP 9.14 as in NetApp's own Trident and the
// documentation of the REST interface. Settings:
//
//	answers     "sync": work is done before the answer, which is 201 or 200; "job": 202 and a job,
//	            whatever time the client gave, and the job is paused for a moment; else the answer waits for the job
//	activation  "restart": a new or changed rule is kept, and its job fails, until quotas are turned off and on
//	quota       "refused": quotas cannot be turned on, as for a copy of a volume
//	lag         how long a new qtree is not listed after its job has ended: "300ms"
//	state       of the volume: "online" by default
package netapp

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/simulator"
)

const (
	svmName    = "svm1"
	volumeName = "berth"
)

type product struct {
	server *simulator.Server
	mux    *http.ServeMux
	svm    string // uuids
	volume string

	mu     sync.Mutex
	qtrees []*qtree
	nextID int
	rules  []*rule
	quota  string          // off, initializing, on
	paused map[string]bool // jobs that were
}

// New creates the array.
func New(a *simulator.Server) (simulator.Product, error) {
	p := &product{server: a, mux: http.NewServeMux(), svm: uuid.NewString(), volume: uuid.NewString(), nextID: 1, quota: "off", paused: map[string]bool{}}
	for pattern, answer := range map[string]http.HandlerFunc{
		"GET /api/cluster":                         p.cluster,
		"GET /api/cluster/jobs/{uuid}":             p.job,
		"GET /api/storage/volumes":                 p.listVolumes,
		"GET /api/storage/volumes/{uuid}":          p.getVolume,
		"PATCH /api/storage/volumes/{uuid}":        p.patchVolume,
		"GET /api/storage/volumes/{uuid}/metrics":  p.metrics,
		"GET /api/storage/qtrees":                  p.listQtrees,
		"POST /api/storage/qtrees":                 p.createQtree,
		"DELETE /api/storage/qtrees/{volume}/{id}": p.deleteQtree,
		"GET /api/storage/quota/rules":             p.listRules,
		"POST /api/storage/quota/rules":            p.createRule,
		"PATCH /api/storage/quota/rules/{uuid}":    p.changeRule,
		"DELETE /api/storage/quota/rules/{uuid}":   p.deleteRule,
		"GET /api/storage/quota/reports":           p.listReports,
		"/":                                        p.unknown,
	} {
		p.mux.HandleFunc(pattern, answer)
	}
	return p, nil
}

// Options implements simulator.Product. The disk behind the array does not limit numbers
// of files, so that the plugin shall not offer it.
func (p *product) Options() map[string]any {
	return p.server.Reached(map[string]any{
		"svm": svmName, "volume": volumeName,
		"file_limits": false,
	})
}

func (p *product) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.server.Basic(r) {
		simulator.JSON(w, http.StatusUnauthorized, p.Refusal(http.StatusUnauthorized))
		return
	}
	p.mux.ServeHTTP(w, r)
}

// failure is an error in the format of ONTAP.
type failure struct {
	Status  int    `json:"-"`
	Message string `json:"message"`
	Code    string `json:"code"`
	Target  string `json:"target,omitempty"`
}

func (f *failure) Error() string { return f.Message }

func fail(status int, code, format string, args ...any) *failure {
	return &failure{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// The codes that clients check.
const (
	codeAbsent     = "4"
	codeArgument   = "262179"
	codeValue      = "262186"
	codeUser       = "6691623"
	codeAlreadyOn  = "5308507"
	codeAlreadyOff = "5308508"
	codeCreated    = "5308568" // the rule is stored but not active
	codeChanged    = "5308571"
	codeDeleted    = "5308572"
)

// Refusal implements simulator.ErrorFormatter.
func (p *product) Refusal(status int) any {
	f := fail(status, strconv.Itoa(status), "%s", http.StatusText(status))
	if status == http.StatusUnauthorized {
		f = fail(status, codeUser, "User is not authorized")
	}
	return map[string]any{"error": f}
}

func refuse(w http.ResponseWriter, f *failure) {
	simulator.JSON(w, f.Status, map[string]any{"error": f})
}

func (p *product) unknown(w http.ResponseWriter, r *http.Request) {
	refuse(w, fail(http.StatusNotFound, "3", "API not found: %s %s", r.Method, r.URL.Path))
}

func (p *product) cluster(w http.ResponseWriter, r *http.Request) {
	p.one(w, r, record{
		"name": "array", "uuid": p.svm,
		"version": record{"full": "NetApp Release 9.14.1: Thu Jan 11 01:23:45 UTC 2024", "generation": 9, "major": 14, "minor": 1},
	})
}

// work performs a request: at once, or in a job. The answer waits for the job, at most for the
// request's return_timeout.
func (p *product) work(w http.ResponseWriter, r *http.Request, status int, what string, do func() error) {
	if p.server.Setting("answers") == "sync" {
		if err := do(); err != nil {
			refuse(w, asFailure(err))
			return
		}
		simulator.JSON(w, status, record{})
		return
	}
	job := p.server.Jobs.Start(what, do)
	wait, err := strconv.Atoi(r.URL.Query().Get("return_timeout"))
	if err != nil || wait < 0 || wait > 120 || p.server.Setting("answers") == "job" {
		wait = 0
	}
	for end := time.Now().Add(time.Duration(wait) * time.Second); time.Now().Before(end) && job.State != simulator.Done && job.State != simulator.Failed; {
		time.Sleep(5 * time.Millisecond)
		job, _ = p.server.Jobs.Get(job.ID)
	}
	switch {
	case job.State == simulator.Failed && wait > 0:
		refuse(w, asFailure(job.Err))
	case job.State == simulator.Done && wait > 0:
		simulator.JSON(w, status, record{"job": record{"uuid": job.ID}})
	default:
		simulator.JSON(w, http.StatusAccepted, record{"job": record{"uuid": job.ID, "_links": record{"self": record{"href": "/api/cluster/jobs/" + job.ID}}}})
	}
}

func asFailure(err error) *failure {
	if f, ok := err.(*failure); ok {
		if f.Status == 0 {
			f.Status = http.StatusInternalServerError
		}
		return f
	}
	return fail(http.StatusInternalServerError, "1", "%v", err)
}

func (p *product) job(w http.ResponseWriter, r *http.Request) {
	job, ok := p.server.Jobs.Get(r.PathValue("uuid"))
	if !ok {
		refuse(w, fail(http.StatusNotFound, codeAbsent, "entry doesn't exist"))
		return
	}
	out := record{"uuid": job.ID, "description": job.What, "state": string(job.State), "start_time": job.Begun.Format(time.RFC3339)}
	switch job.State {
	case simulator.Running:
		p.mu.Lock()
		if !p.paused[job.ID] && p.server.Setting("answers") == "job" {
			out["state"], p.paused[job.ID] = "paused", true
		}
		p.mu.Unlock()
	case simulator.Done:
		out["state"], out["message"], out["code"] = "success", "success", 0
	case simulator.Failed:
		f := asFailure(job.Err)
		out["state"], out["message"] = "failure", f.Message
		out["code"], _ = strconv.Atoi(f.Code)
		out["error"] = record{"message": f.Message, "code": f.Code}
	}
	if !job.Ended.IsZero() {
		out["end_time"] = job.Ended.Format(time.RFC3339)
	}
	p.one(w, r, out)
}
