package weka

import (
	"cmp"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/berthhq/berth/internal/simulator"
)

// block is the unit to which limits are rounded up, and unlimited is no limit.
const (
	block     = 4096
	unlimited = math.MaxInt64
)

type quota struct {
	inode      uint64
	path       string
	hard, soft int64
	grace      int64
	job        string // the job that counts the contents of the directory
	laid       bool   // the quota is set on the disk
	deleting   bool
}

// allowed answers for users that may do something with quotas.
func (p *product) allowed(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p.server.Setting("quota") == "refused" {
			refuse(w, http.StatusForbidden, "UnauthorizedAction", "the role of the user does not allow quotas")
			return
		}
		answer(w, r)
	}
}

func (p *product) quotaRecord(q *quota) record {
	u, err := p.server.Tree.Usage(q.path)
	if err != nil {
		u = simulator.Usage{} // not counted yet, or deleted
	}
	return record{
		"quota_id": "0x" + strconv.FormatUint(q.inode, 16) + ":0", "inode_id": q.inode, "path": "/" + q.path, "fsName": filesystemName,
		"total_bytes": u.Bytes, "hard_limit_bytes": q.hard, "soft_limit_bytes": q.soft, "grace_seconds": q.grace,
		"owner": "", "status": p.status(q),
	}
}

// find returns the quota that a request names, or nil after it has sent an error.
func (p *product) find(w http.ResponseWriter, r *http.Request) *quota {
	n, _ := strconv.ParseUint(r.PathValue("inode"), 10, 64)
	if q := p.quotas[n]; q != nil {
		return q
	}
	refuse(w, http.StatusInternalServerError, "OperationFailedException", "Directory has no quota")
	return nil
}

func (p *product) getQuota(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.find(w, r); q != nil {
		data(w, p.quotaRecord(q))
	}
}

func (p *product) listQuotas(w http.ResponseWriter, r *http.Request) {
	if err := simulator.Query(r.URL.Query(), "next_token"); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	p.mu.Lock()
	all := []*quota{}
	for _, q := range p.quotas {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b *quota) int { return cmp.Compare(a.inode, b.inode) })
	from, _ := strconv.Atoi(r.URL.Query().Get("next_token"))
	page, next := simulator.Page(p.server, all, from, 0)
	records := []record{}
	for _, q := range page {
		records = append(records, p.quotaRecord(q))
	}
	p.mu.Unlock()
	out := record{"data": records}
	if next > 0 {
		out["next_token"] = strconv.Itoa(next)
	}
	simulator.JSON(w, http.StatusOK, out)
}

func (p *product) putQuota(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Path  string `json:"path"`
		Hard  *int64 `json:"hard_limit_bytes"`
		Soft  *int64 `json:"soft_limit_bytes"`
		Grace int64  `json:"grace_seconds"`
	}
	if err := simulator.Decode(r, &in); err != nil || in.Hard == nil || *in.Hard <= 0 || in.Soft == nil {
		refuse(w, http.StatusBadRequest, "BadRequest", "hard_limit_bytes and soft_limit_bytes are required")
		return
	}
	p.mu.Lock()
	q, text := p.target(r.PathValue("inode"), in.Path)
	if text != "" {
		p.mu.Unlock()
		refuse(w, http.StatusBadRequest, "OperationFailedException", text)
		return
	}
	q.hard, q.soft, q.grace = round(*in.Hard), round(*in.Soft), in.Grace
	var err error
	if q.laid { // the contents have been counted
		err = p.lay(q)
	}
	laid := q.laid
	p.mu.Unlock()
	if !laid {
		job := p.server.Jobs.Start("count "+q.path, func() error { return p.count(q) })
		p.mu.Lock()
		q.job = job.ID
		p.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer(w, p.quotaRecord(q), err)
}

// target finds or creates the quota of an inode, or returns why that is impossible.
func (p *product) target(inode, given string) (q *quota, refusal string) {
	n, _ := strconv.ParseUint(inode, 10, 64)
	path := ""
	for at, number := range p.inodes {
		if number == n && p.server.Tree.IsDir(at) {
			path = at
		}
	}
	if path == "" || given != "" && given != "/"+path {
		return nil, "no directory has this inode, or another path than was given"
	}
	if q := p.quotas[n]; q != nil {
		return q, ""
	}
	entries, err := os.ReadDir(p.server.Tree.Path(path))
	if p.server.Setting("data_service") != "on" && (err != nil || len(entries) > 0) {
		return nil, "a quota can be set on an empty directory only, unless there is a data service"
	}
	q = &quota{inode: n, path: path}
	p.quotas[n] = q
	return q, ""
}

func round(n int64) int64 {
	if n > unlimited-block {
		return unlimited
	}
	return (n + block - 1) / block * block
}

// count is the job after which a quota is effective.
func (p *product) count(q *quota) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lay(q)
}

func (p *product) lay(q *quota) error {
	bytes := &q.hard
	if q.hard == unlimited {
		bytes = nil
	}
	err := p.server.Tree.Limit(q.path, bytes)
	q.laid = err == nil
	return err
}

// status returns the cluster's status of a quota, which depends on the job that counts.
func (p *product) status(q *quota) string {
	if q.deleting {
		return "DELETING"
	}
	switch job, _ := p.server.Jobs.Get(q.job); job.State {
	case simulator.Done:
		return "ACTIVE"
	case simulator.Failed:
		return "ERROR"
	}
	return "ADDING"
}

func (p *product) deleteQuota(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	q := p.find(w, r)
	if q != nil {
		q.deleting = true
	}
	p.mu.Unlock()
	if q == nil {
		return
	}
	p.server.Jobs.Start("uncount "+q.path, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.quotas, q.inode)
		if p.inodes[q.path] == q.inode && p.server.Tree.IsDir(q.path) {
			return p.server.Tree.Limit(q.path, nil)
		}
		return nil
	})
	data(w, record{})
}

// realtime returns the current rates of each process.
func (p *product) realtime(w http.ResponseWriter, _ *http.Request) {
	rates := p.server.Tree.Rates(time.Second)
	var all []record
	for i, part := range []float64{0.25, 0.75} {
		all = append(all, record{
			"node_id": "NodeId<" + strconv.Itoa(i) + ">", "hostname": "array", "mode": "backend",
			"reads_per_second": rates.Reads * part, "writes_per_second": rates.Writes * part,
			"read_bytes_per_second": rates.BytesRead * part, "write_bytes_per_second": rates.BytesWritten * part,
			"read_latency_usecs": rates.ReadMicros, "write_latency_usecs": rates.WriteMicros,
		})
	}
	data(w, all)
}
