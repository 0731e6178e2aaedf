package netapp

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"
)

// mostQtrees is ONTAP's bound for a volume.
const mostQtrees = 4994

type qtree struct {
	id          int
	name        string
	style       string
	permissions int // digits as in chmod, such as 755
	listed      time.Time
}

func (p *product) qtreeRecord(q *qtree) record {
	return record{
		"id": q.id, "name": q.name, "security_style": q.style, "unix_permissions": q.permissions,
		"svm": record{"uuid": p.svm, "name": svmName}, "volume": record{"uuid": p.volume, "name": volumeName},
	}
}

func (p *product) listQtrees(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	all := []record{p.qtreeRecord(&qtree{style: "unix", permissions: 755})} // the volume itself
	for _, q := range p.qtrees {
		if time.Now().After(q.listed) {
			all = append(all, p.qtreeRecord(q))
		}
	}
	p.mu.Unlock()
	p.list(w, r, all, []string{"id", "name", "svm.name", "svm.uuid", "volume.name", "volume.uuid"}, []string{"svm", "volume", "id", "name"})
}

func (p *product) find(name string) *qtree {
	for _, q := range p.qtrees {
		if q.name == name {
			return q
		}
	}
	return nil
}

func (p *product) createQtree(w http.ResponseWriter, r *http.Request) {
	var q struct {
		SVM          reference `json:"svm"`
		Volume       reference `json:"volume"`
		Name         string    `json:"name"`
		Style        string    `json:"security_style"`
		Permissions  int       `json:"unix_permissions"`
		ExportPolicy reference `json:"export_policy"`
	}
	bad := body(r, &q)
	if bad == nil {
		bad = p.place(q.SVM, q.Volume)
	}
	mode, err := strconv.ParseUint(strconv.Itoa(q.Permissions), 8, 9)
	switch {
	case bad != nil:
	case q.Name == "" || len(q.Name) > 64:
		bad = fail(http.StatusBadRequest, codeValue, "Invalid value %q for field \"name\".", q.Name)
	case err != nil:
		bad = fail(http.StatusBadRequest, codeValue, "Invalid value \"%d\" for field \"unix_permissions\".", q.Permissions)
	}
	if bad != nil {
		refuse(w, bad)
		return
	}
	lag, _ := time.ParseDuration(p.server.Setting("lag"))
	p.work(w, r, http.StatusCreated, "POST /api/storage/qtrees", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.find(q.Name) != nil {
			return fail(http.StatusConflict, "5242886", "Qtree %q already exists in volume %q.", q.Name, volumeName)
		}
		if len(p.qtrees) >= mostQtrees {
			return fail(http.StatusInternalServerError, "5242951", "Volume %q has the most qtrees that it can have.", volumeName)
		}
		if err := p.server.Tree.Make(q.Name, os.FileMode(mode)); err != nil {
			return fail(http.StatusInternalServerError, "5242955", "%v", err)
		}
		p.qtrees = append(p.qtrees, &qtree{id: p.nextID, name: q.Name, style: q.Style, permissions: q.Permissions, listed: time.Now().Add(lag)})
		p.nextID++
		return nil
	})
}

// deleteQtree removes a qtree and all that is in it.
func (p *product) deleteQtree(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.PathValue("id"))
	p.mu.Lock()
	i := slices.IndexFunc(p.qtrees, func(q *qtree) bool { return q.id == id })
	p.mu.Unlock()
	if err != nil || i < 0 || r.PathValue("volume") != p.volume {
		refuse(w, fail(http.StatusNotFound, codeAbsent, "entry doesn't exist"))
		return
	}
	what := fmt.Sprintf("DELETE /api/storage/qtrees/%s/%d", p.volume, id)
	p.work(w, r, http.StatusOK, what, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		i := slices.IndexFunc(p.qtrees, func(q *qtree) bool { return q.id == id })
		if i < 0 {
			return fail(http.StatusNotFound, codeAbsent, "entry doesn't exist")
		}
		if err := p.server.Tree.Remove(p.qtrees[i].name, true); err != nil && !os.IsNotExist(err) {
			return err
		}
		p.qtrees = slices.Delete(p.qtrees, i, i+1)
		return nil
	})
}
