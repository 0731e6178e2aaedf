package netapp

import (
	"net/http"
	"time"

	"github.com/berthhq/berth/internal/simulator"
)

func (p *product) volumeRecord() (record, error) {
	total, used, free, err := p.server.Tree.Capacity()
	if err != nil {
		return nil, err
	}
	state := p.server.Setting("state")
	if state == "" {
		state = "online"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return record{
		"uuid": p.volume, "name": volumeName, "svm": record{"uuid": p.svm, "name": svmName}, "state": state, "type": "rw",
		"nas":   record{"path": "/" + volumeName},
		"space": record{"size": total, "used": used, "available": free},
		"files": record{"maximum": 21251126, "used": 96 + len(p.qtrees)},
		"quota": record{"state": p.quota, "enabled": p.quota != "off"},
	}, nil
}

func (p *product) listVolumes(w http.ResponseWriter, r *http.Request) {
	v, err := p.volumeRecord()
	if err != nil {
		refuse(w, asFailure(err))
		return
	}
	p.list(w, r, []record{v}, []string{"name", "uuid", "svm.name", "svm.uuid"}, []string{"uuid", "name"})
}

func (p *product) getVolume(w http.ResponseWriter, r *http.Request) {
	if !p.ours(w, r) {
		return
	}
	v, err := p.volumeRecord()
	if err != nil {
		refuse(w, asFailure(err))
		return
	}
	out, bad := pick(v, r.URL.Query().Get("fields"), []string{"uuid", "name"})
	if bad != nil {
		refuse(w, bad)
		return
	}
	simulator.JSON(w, http.StatusOK, out)
}

func (p *product) ours(w http.ResponseWriter, r *http.Request) bool {
	if r.PathValue("uuid") == p.volume {
		return true
	}
	refuse(w, fail(http.StatusNotFound, codeAbsent, "entry doesn't exist"))
	return false
}

func (p *product) patchVolume(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Quota struct {
			Enabled *bool `json:"enabled"`
		} `json:"quota"`
	}
	if !p.ours(w, r) {
		return
	}
	if bad := body(r, &q); bad != nil {
		refuse(w, bad)
		return
	}
	if q.Quota.Enabled == nil {
		simulator.JSON(w, http.StatusOK, record{})
		return
	}
	turn := p.quotaOff
	if *q.Quota.Enabled {
		turn = p.quotaOn
	}
	p.work(w, r, http.StatusOK, "PATCH /api/storage/volumes/"+p.volume, turn)
}

// metrics returns samples of 15 seconds, the newest first. The newest one is incomplete, as after
// the start of an array.
func (p *product) metrics(w http.ResponseWriter, r *http.Request) {
	if !p.ours(w, r) {
		return
	}
	rates := p.server.Tree.Rates(15 * time.Second)
	at := rates.At.UTC().Truncate(15 * time.Second)
	three := func(read, write float64) record {
		return record{"read": int64(read), "write": int64(write), "other": 0, "total": int64(read + write)}
	}
	all := []record{
		{
			"timestamp": at.Format(time.RFC3339), "duration": "PT15S", "status": "partial_no_data",
			"iops": three(0, 0), "throughput": three(0, 0), "latency": three(0, 0),
		},
		{
			"timestamp": at.Add(-15 * time.Second).Format(time.RFC3339), "duration": "PT15S", "status": "ok",
			"iops": three(rates.Reads, rates.Writes), "throughput": three(rates.BytesRead, rates.BytesWritten),
			"latency": three(rates.ReadMicros, rates.WriteMicros),
		},
	}
	q := r.URL.Query()
	q.Del("interval") // only samples of the last hour exist
	r.URL.RawQuery = q.Encode()
	p.list(w, r, all, nil, []string{"timestamp"})
}
