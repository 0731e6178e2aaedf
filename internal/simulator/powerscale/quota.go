package powerscale

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/simulator"
)

// modern is the first version of the interface in which a quota names the quantity of its
// thresholds.
const modern = 8

type quota struct {
	id        string
	path      string
	enforced  bool
	container bool
	on        string // the measured quantity
	hard      *int64
}

// thresholds are all fields that a request can have.
type thresholds struct {
	Hard      *int64 `json:"hard"`
	Soft      *int64 `json:"soft"`
	Advisory  *int64 `json:"advisory"`
	SoftGrace *int64 `json:"soft_grace"`
}

var measures = map[string]string{"fslogicalsize": "fslogical", "applogicalsize": "applogical", "physicalsize": "physical"}

// record returns a quota in the format of the request's version.
func (p *product) record(q *quota, api int) (record, error) {
	name, _ := below(q.path)
	used, err := p.server.Tree.Usage(name)
	if err != nil {
		return nil, err
	}
	ready := p.server.Setting("scan") != "waiting"
	bytes, inodes := used.Bytes, used.Files+used.Directories+1
	if !ready { // partial usage before the end of the scan
		bytes, inodes = 0, 1
	}
	out := record{
		"id": q.id, "path": q.path, "type": "directory", "enforced": q.enforced, "container": q.container, "include_snapshots": false,
		"linked": nil, "notifications": "default", "persona": nil, "ready": ready,
		"thresholds": record{
			"hard": q.hard, "hard_exceeded": q.hard != nil && bytes >= *q.hard, "hard_last_exceeded": nil,
			"soft": nil, "soft_exceeded": false, "soft_grace": nil, "advisory": nil, "advisory_exceeded": false,
		},
	}
	if api < modern {
		out["thresholds_include_overhead"] = q.on == "physicalsize"
		out["usage"] = record{"logical": bytes, "physical": bytes, "inodes": inodes}
		return out, nil
	}
	usage := record{"inodes": inodes, "inodes_ready": ready}
	for _, m := range measures {
		usage[m], usage[m+"_ready"] = bytes, ready
	}
	out["thresholds_on"], out["usage"] = q.on, usage
	return out, nil
}

// sweep drops the quotas of deleted directories. The caller has p.mu.
func (p *product) sweep() {
	p.quotas = slices.DeleteFunc(p.quotas, func(q *quota) bool {
		name, _ := below(q.path)
		return !p.server.Tree.IsDir(name)
	})
}

// listQuotas lists quotas in pages. A request with a page token has no other parameters.
func (p *product) listQuotas(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	api, _ := strconv.Atoi(r.PathValue("api"))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep()
	var all []record
	if token := v.Get("resume"); token != "" {
		rest, ok := p.pages[token]
		if !ok || len(v) > 1 {
			refuse(w, http.StatusBadRequest, "AEC_BAD_REQUEST", "Bad resume token, or other options beside it")
			return
		}
		all = rest
	} else {
		found, status, err := p.find(api, v.Get("path"), v.Get("type"), v.Get("recurse_path_children") == "true")
		if err == nil {
			err = simulator.Query(v, "path", "type", "recurse_path_children", "limit", "enforced", "zone")
		}
		if err != nil {
			refuse(w, max(status, http.StatusBadRequest), "AEC_NOT_FOUND", err.Error())
			return
		}
		all = found
	}
	page, next := simulator.Page(p.server, all, 0, 0)
	out := record{"quotas": page, "resume": nil}
	if next > 0 {
		token := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "page %d", len(p.pages)))
		p.pages[token], out["resume"] = all[next:], token
	}
	if page == nil {
		out["quotas"] = []record{}
	}
	simulator.JSON(w, http.StatusOK, out)
}

func (p *product) find(api int, path, kind string, children bool) ([]record, int, error) {
	if name, ok := below(path); path != "" && (!ok || !p.server.Tree.IsDir(name)) {
		return nil, http.StatusNotFound, fmt.Errorf("path not found: %s", path)
	}
	if kind != "" && kind != "directory" {
		return nil, http.StatusBadRequest, errors.New("type: only directories have quotas here")
	}
	var all []record
	for _, q := range p.quotas {
		if path == "" || q.path == path || children && strings.HasPrefix(q.path, path+"/") {
			one, err := p.record(q, api)
			if err != nil {
				return nil, http.StatusInternalServerError, err
			}
			all = append(all, one)
		}
	}
	return all, http.StatusOK, nil
}

func (p *product) licensed() bool {
	switch p.server.Setting("licence") {
	case "", "Licensed", "Evaluation":
		return true
	}
	return false
}

func (p *product) createQuota(w http.ResponseWriter, r *http.Request) {
	api, _ := strconv.Atoi(r.PathValue("api"))
	var q struct {
		Path       string     `json:"path"`
		Type       string     `json:"type"`
		Enforced   bool       `json:"enforced"`
		Container  bool       `json:"container"`
		Snapshots  *bool      `json:"include_snapshots"`
		Thresholds thresholds `json:"thresholds"`
		On         *string    `json:"thresholds_on"`
		Overhead   *bool      `json:"thresholds_include_overhead"`
	}
	err := simulator.Decode(r, &q)
	fresh := &quota{id: simulator.Random(), path: q.Path, enforced: q.Enforced, container: q.Container, on: "fslogicalsize", hard: q.Thresholds.Hard}
	name, inside := below(q.Path)
	switch {
	case err != nil:
	case q.Type != "directory" || q.Snapshots == nil || *q.Snapshots:
		err = errors.New("type: \"directory\" and include_snapshots: false are the only supported values")
	case api < modern && (q.On != nil || q.Overhead == nil), api >= modern && (q.Overhead != nil || q.On == nil || measures[*q.On] == ""):
		err = errors.New("thresholds_on or thresholds_include_overhead, as the version has it")
	case q.On != nil:
		fresh.on = *q.On
	case *q.Overhead:
		fresh.on = "physicalsize"
	}
	if err == nil {
		err = fresh.valid()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep()
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, "AEC_BAD_REQUEST", err.Error())
		return
	case !p.licensed():
		refuse(w, http.StatusForbidden, "AEC_FORBIDDEN", "SmartQuotas is not licensed")
		return
	case !inside || !p.server.Tree.IsDir(name):
		refuse(w, http.StatusNotFound, "AEC_NOT_FOUND", "Path not found: "+q.Path)
		return
	case slices.ContainsFunc(p.quotas, func(other *quota) bool { return other.path == q.Path }):
		refuse(w, http.StatusConflict, "AEC_CONFLICT", "A quota for this path already exists")
		return
	}
	if err := p.enforce(fresh); err != nil {
		refuse(w, http.StatusInternalServerError, "AEC_EXCEPTION", err.Error())
		return
	}
	p.quotas = append(p.quotas, fresh)
	simulator.JSON(w, http.StatusCreated, record{"id": fresh.id})
}

func (q *quota) valid() error {
	if q.hard != nil && *q.hard <= 0 {
		return errors.New("thresholds.hard: must be greater than zero")
	}
	if q.enforced != (q.hard != nil) {
		return errors.New("enforced: a quota with a threshold is enforced, and one without is not")
	}
	return nil
}

func (p *product) enforce(q *quota) error {
	name, _ := below(q.path)
	if q.hard == nil {
		return p.server.Tree.Limit(name, nil)
	}
	return p.server.Tree.Limit(name, q.hard)
}

// byID finds a quota. The caller has p.mu.
func (p *product) byID(w http.ResponseWriter, r *http.Request) *quota {
	p.sweep()
	for _, q := range p.quotas {
		if q.id == r.PathValue("id") {
			return q
		}
	}
	refuse(w, http.StatusNotFound, "AEC_NOT_FOUND", "Quota not found")
	return nil
}

func (p *product) changeQuota(w http.ResponseWriter, r *http.Request) {
	var c struct {
		Enforced   *bool       `json:"enforced"`
		Container  *bool       `json:"container"`
		Thresholds *thresholds `json:"thresholds"`
	}
	err := simulator.Decode(r, &c)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		refuse(w, http.StatusBadRequest, "AEC_BAD_REQUEST", err.Error())
		return
	}
	q := p.byID(w, r)
	if q == nil {
		return
	}
	changed := *q
	if c.Enforced != nil {
		changed.enforced = *c.Enforced
	}
	if c.Container != nil {
		changed.container = *c.Container
	}
	if c.Thresholds != nil {
		changed.hard = c.Thresholds.Hard
	}
	if err := changed.valid(); err != nil {
		refuse(w, http.StatusBadRequest, "AEC_BAD_REQUEST", err.Error())
		return
	}
	if err := p.enforce(&changed); err != nil {
		refuse(w, http.StatusInternalServerError, "AEC_EXCEPTION", err.Error())
		return
	}
	*q = changed
	w.WriteHeader(http.StatusNoContent)
}

func (p *product) deleteQuota(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.byID(w, r)
	if q == nil {
		return
	}
	name, _ := below(q.path)
	if err := p.server.Tree.Limit(name, nil); err != nil {
		refuse(w, http.StatusInternalServerError, "AEC_EXCEPTION", err.Error())
		return
	}
	p.quotas = slices.DeleteFunc(p.quotas, func(other *quota) bool { return other == q })
	w.WriteHeader(http.StatusNoContent)
}

// protocol returns the rates of two nodes, each with half of the disk's rates.
func (p *product) protocol(w http.ResponseWriter, r *http.Request) {
	if err := simulator.Query(r.URL.Query(), "classes", "nodes", "protocols", "totalby", "degraded", "timeout"); err != nil {
		refuse(w, http.StatusBadRequest, "AEC_BAD_REQUEST", err.Error())
		return
	}
	rates := p.server.Tree.Rates(5 * time.Second)
	var all []record
	for node := range 2 {
		for _, class := range strings.Split(r.URL.Query().Get("classes"), ",") {
			ops, in, out, micros := rates.Reads, 0.0, rates.BytesRead, rates.ReadMicros
			switch class {
			case "read":
			case "write":
				ops, in, out, micros = rates.Writes, rates.BytesWritten, 0, rates.WriteMicros
			default:
				ops, in, out, micros = 1, 100, 100, 50
			}
			all = append(all, record{
				"class": class, "node": node + 1, "protocol": "nfs4", "operation": class, "time": rates.At.Unix(), "operation_count": 4711,
				"operation_rate": ops / 2, "in": in / 2, "out": out / 2, "time_avg": micros,
			})
		}
	}
	simulator.JSON(w, http.StatusOK, record{"protocol": all})
}
