// Package spectrumscale simulates the REST interface of the GUI of an IBM Storage Scale cluster
// with one file system, /gpfs/fs1, which is mounted. A linked fileset is one of its directories and
// can have a quota in KiB. Every change is a job.
//
// Requests and answers have the form of the REST interface v2 as IBM's own CSI driver uses it.
// Settings:
//
//	accepted  "201": status of the answer with a job; 202 by default
//	quota     "off": not enforced; "perfileset": users have quotas in each fileset
//	lag       delay until the GUI lists a new fileset, unless a refresh is requested: "1h"
//	indoubt   possible error of a quota's usage, in KiB
//	mount     status of the file system on the GUI's node: "mounted" by default
package spectrumscale

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berthhq/berth/internal/simulator"
)

const (
	base       = "/scalemgmt/v2"
	filesystem = "fs1"
	mountPoint = "/gpfs/fs1"
	firstJob   = 1_000_000_000_000
)

type product struct {
	server *simulator.Server
	mux    *http.ServeMux

	mu       sync.Mutex
	filesets []*fileset
	next     int
}

type record = map[string]any

// New creates the cluster.
func New(a *simulator.Server) (simulator.Product, error) {
	p := &product{server: a, mux: http.NewServeMux(), next: 1}
	of := base + "/filesystems/{fs}"
	for pattern, answer := range map[string]http.HandlerFunc{
		"GET " + base + "/info":                  p.info,
		"GET " + base + "/jobs/{id}":             p.job,
		"POST " + base + "/refreshTask/enqueue":  p.refresh,
		"GET " + of:                              p.ours(p.filesystem),
		"GET " + of + "/filesets":                p.ours(p.listFilesets),
		"POST " + of + "/filesets":               p.ours(p.createFileset),
		"GET " + of + "/filesets/{name}":         p.ours(p.getFileset),
		"DELETE " + of + "/filesets/{name}":      p.ours(p.deleteFileset),
		"POST " + of + "/filesets/{name}/link":   p.ours(p.link),
		"DELETE " + of + "/filesets/{name}/link": p.ours(p.unlink),
		"GET " + of + "/quotas":                  p.ours(p.listQuotas),
		"POST " + of + "/quotas":                 p.ours(p.setQuota),
		"/":                                      func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "The path is unknown.") },
	} {
		p.mux.HandleFunc(pattern, answer)
	}
	return p, nil
}

// Options implements simulator.Product. The disk behind the array does not limit numbers
// of files.
func (p *product) Options() map[string]any {
	return p.server.Reached(map[string]any{
		"filesystem": filesystem, "file_limits": false,
	})
}

func (p *product) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.server.Basic(r) {
		refuse(w, http.StatusUnauthorized, "The user or the password is wrong.")
		return
	}
	p.mux.ServeHTTP(w, r)
}

// Refusal implements simulator.ErrorFormatter.
func (p *product) Refusal(status int) any {
	return record{"status": record{"code": status, "message": http.StatusText(status)}}
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	simulator.JSON(w, status, record{"status": record{"code": status, "message": fmt.Sprintf(format, args...)}})
}

func answer(w http.ResponseWriter, out record) {
	out["status"] = record{"code": http.StatusOK, "message": "The request finished successfully."}
	simulator.JSON(w, http.StatusOK, out)
}

func (p *product) info(w http.ResponseWriter, _ *http.Request) {
	answer(w, record{"info": record{"name": "Spectrum Scale REST Management", "serverVersion": "5.2.1.1"}})
}

// ours calls a handler if the request is for the only file system.
func (p *product) ours(do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("fs") != filesystem {
			refuse(w, http.StatusBadRequest, "Invalid value in 'filesystemName'")
			return
		}
		do(w, r)
	}
}

func (p *product) filesystem(w http.ResponseWriter, _ *http.Request) {
	enforced, status := "user;group;fileset", p.server.Setting("mount")
	if p.server.Setting("quota") == "off" {
		enforced = "none"
	}
	if status == "" {
		status = "mounted"
	}
	answer(w, record{"filesystems": []record{{
		"name": filesystem, "uuid": "0A0B0C0D:00000001", "version": "34.00",
		"mount": record{"mountPoint": mountPoint, "status": status},
		"quota": record{"quotasEnforced": enforced, "quotasAccountingEnabled": enforced, "perfilesetQuotas": p.server.Setting("quota") == "perfileset"},
	}}})
}

// start answers with a job, which does the work.
func (p *product) start(w http.ResponseWriter, what string, work func() error) {
	code := http.StatusAccepted
	if p.server.Setting("accepted") == "201" {
		code = http.StatusCreated
	}
	job := p.server.Jobs.Start(what, work)
	simulator.JSON(w, code, record{
		"jobs":   []record{{"jobId": firstJob + job.Number, "status": "RUNNING"}},
		"status": record{"code": code, "message": "The request was accepted for processing."},
	})
}

func (p *product) job(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.PathValue("id"))
	job, ok := p.server.Jobs.ByNumber(n - firstJob)
	if err := simulator.Query(r.URL.Query(), "fields"); err != nil || !ok {
		refuse(w, http.StatusBadRequest, "Invalid value in 'jobId'")
		return
	}
	out := record{"jobId": n, "status": "RUNNING", "result": record{"exitCode": 0, "stderr": []string{}}}
	switch job.State {
	case simulator.Done:
		out["status"] = "COMPLETED"
	case simulator.Failed:
		out["status"], out["result"] = "FAILED", record{"exitCode": 1, "stderr": []string{job.Err.Error()}}
	}
	answer(w, record{"jobs": []record{out}})
}

// refresh makes the GUI list all filesets now.
func (p *product) refresh(w http.ResponseWriter, r *http.Request) {
	if err := simulator.Query(r.URL.Query(), "taskId", "maxDelay"); err != nil || r.URL.Query().Get("taskId") != "FILESETS" {
		refuse(w, http.StatusBadRequest, "Invalid value in 'taskId'")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.filesets {
		f.shown = time.Time{}
	}
	answer(w, record{})
}

// page answers with a part of a list. The fields in a filter must be equal.
func page[T any](p *product, w http.ResponseWriter, r *http.Request, name string, all []T, show func(T) record) {
	q := r.URL.Query()
	if err := simulator.Query(q, "filter", "fields", "lastId"); err != nil {
		refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	var found []record
	for _, one := range all {
		shown := show(one)
		matches := true
		for _, condition := range strings.Split(q.Get("filter"), ",") {
			field, want, ok := strings.Cut(condition, "=")
			matches = matches && (!ok || fmt.Sprint(shown[field]) == want)
		}
		if matches {
			found = append(found, shown)
		}
	}
	from, _ := strconv.Atoi(q.Get("lastId"))
	part, next := simulator.Page(p.server, found, from, 0)
	out := record{name: slices.Concat([]record{}, part)}
	if next > 0 {
		q.Set("lastId", strconv.Itoa(next))
		out["paging"] = record{"lastId": next, "next": r.URL.Path + "?" + url.Values(q).Encode()}
	}
	answer(w, out)
}
