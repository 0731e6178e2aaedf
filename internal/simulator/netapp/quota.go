package netapp

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// rule limits a qtree, or with an empty name counts all of them.
type rule struct {
	uuid   string
	qtree  string
	space  limits
	files  limits
	active bool
}

// limits are in bytes or files; nil = none.
type limits struct{ hard, soft *int64 }

func (l limits) record() record {
	out := record{}
	if l.hard != nil {
		out["hard_limit"] = *l.hard
	}
	if l.soft != nil {
		out["soft_limit"] = *l.soft
	}
	return out
}

// threshold is the limits in a request; -1 removes a limit.
type threshold struct {
	Hard *int64 `json:"hard_limit"`
	Soft *int64 `json:"soft_limit"`
}

func (t threshold) over(old limits, unit int64) (limits, *failure) {
	for _, one := range []struct {
		from *int64
		to   **int64
	}{{t.Hard, &old.hard}, {t.Soft, &old.soft}} {
		switch {
		case one.from == nil:
		case *one.from == -1:
			*one.to = nil
		case *one.from <= 0:
			return old, fail(http.StatusBadRequest, codeValue, "Invalid value \"%d\" for a limit.", *one.from)
		default: // up to a whole KiB
			n := (*one.from + unit - 1) / unit * unit
			*one.to = &n
		}
	}
	return old, nil
}

func (p *product) ruleRecord(r *rule) record {
	out := record{
		"uuid": r.uuid, "type": "tree", "qtree": record{"name": r.qtree},
		"svm": record{"uuid": p.svm, "name": svmName}, "volume": record{"uuid": p.volume, "name": volumeName},
	}
	if s := r.space.record(); len(s) > 0 {
		out["space"] = s
	}
	if f := r.files.record(); len(f) > 0 {
		out["files"] = f
	}
	return out
}

var quotaFields = []string{"uuid", "type", "qtree.name", "svm.name", "svm.uuid", "volume.name", "volume.uuid"}

func (p *product) listRules(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	var all []record
	for _, one := range p.rules {
		all = append(all, p.ruleRecord(one))
	}
	p.mu.Unlock()
	p.list(w, r, all, quotaFields, []string{"uuid", "svm", "volume", "type"})
}

func (p *product) createRule(w http.ResponseWriter, r *http.Request) {
	var q struct {
		SVM    reference `json:"svm"`
		Volume reference `json:"volume"`
		Type   string    `json:"type"`
		Qtree  reference `json:"qtree"`
		Space  threshold `json:"space"`
		Files  threshold `json:"files"`
	}
	bad := body(r, &q)
	if bad == nil {
		bad = p.place(q.SVM, q.Volume)
	}
	if bad == nil && q.Type != "tree" {
		bad = fail(http.StatusBadRequest, codeValue, "Invalid value %q for field \"type\".", q.Type)
	}
	one := &rule{uuid: uuid.NewString(), qtree: q.Qtree.Name}
	if bad == nil {
		one.space, bad = q.Space.over(limits{}, 1024)
	}
	if bad == nil {
		one.files, bad = q.Files.over(limits{}, 1)
	}
	if bad != nil {
		refuse(w, bad)
		return
	}
	p.work(w, r, http.StatusCreated, "POST /api/storage/quota/rules", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if slices.ContainsFunc(p.rules, func(other *rule) bool { return other.qtree == one.qtree }) {
			return fail(http.StatusConflict, "5308501", "A rule for qtree %q already exists.", one.qtree)
		}
		if one.qtree != "" && p.find(one.qtree) == nil {
			return fail(http.StatusNotFound, "5308558", "Qtree %q does not exist.", one.qtree)
		}
		p.rules = append(p.rules, one)
		return p.activate(one, codeCreated, "created")
	})
}

// activate makes a rule effective, if that is possible while quotas are on.
func (p *product) activate(one *rule, code, done string) error {
	switch {
	case p.quota == "off":
		return nil
	case p.server.Setting("activation") == "restart":
		one.active = false
		return fail(http.StatusInternalServerError, code,
			"The quota policy rule was %s. However, the rule could not be enforced: quotas must be turned off and on.", done)
	}
	one.active = true
	return p.enforce(one.qtree, one.space.hard)
}

func (p *product) enforce(qtree string, bytes *int64) error {
	if qtree == "" || p.find(qtree) == nil {
		return nil
	}
	return p.server.Tree.Limit(qtree, bytes)
}

func (p *product) byUUID(w http.ResponseWriter, r *http.Request) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.rules {
		if one.uuid == r.PathValue("uuid") {
			return one
		}
	}
	refuse(w, fail(http.StatusNotFound, codeAbsent, "entry doesn't exist"))
	return nil
}

func (p *product) changeRule(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Space threshold `json:"space"`
		Files threshold `json:"files"`
	}
	one := p.byUUID(w, r)
	if one == nil {
		return
	}
	bad := body(r, &q)
	var space, files limits
	if bad == nil {
		p.mu.Lock()
		space, bad = q.Space.over(one.space, 1024)
		if bad == nil {
			files, bad = q.Files.over(one.files, 1)
		}
		p.mu.Unlock()
	}
	if bad != nil {
		refuse(w, bad)
		return
	}
	p.work(w, r, http.StatusOK, "PATCH /api/storage/quota/rules/"+one.uuid, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		one.space, one.files = space, files
		return p.activate(one, codeChanged, "modified")
	})
}

func (p *product) deleteRule(w http.ResponseWriter, r *http.Request) {
	one := p.byUUID(w, r)
	if one == nil {
		return
	}
	p.work(w, r, http.StatusOK, "DELETE /api/storage/quota/rules/"+one.uuid, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.rules = slices.DeleteFunc(p.rules, func(other *rule) bool { return other == one })
		gone := &rule{qtree: one.qtree}
		return p.activate(gone, codeDeleted, "deleted")
	})
}

func (p *product) quotaOn() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.server.Setting("quota") == "refused":
		return fail(http.StatusInternalServerError, "5308509", "Quotas cannot be turned on: volume %q is not read-write.", volumeName)
	case p.quota != "off":
		return fail(http.StatusInternalServerError, codeAlreadyOn, "Quotas are already on for volume %q.", volumeName)
	case len(p.rules) == 0:
		return fail(http.StatusInternalServerError, "5308522", "No valid quota rules found in quota policy for volume %q.", volumeName)
	}
	for _, one := range p.rules {
		one.active = true
		if err := p.enforce(one.qtree, one.space.hard); err != nil {
			return err
		}
	}
	p.quota = "on"
	return nil
}

func (p *product) quotaOff() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quota == "off" {
		return fail(http.StatusInternalServerError, codeAlreadyOff, "Quotas are already off for volume %q.", volumeName)
	}
	for _, q := range p.qtrees {
		if err := p.enforce(q.name, nil); err != nil {
			return err
		}
	}
	for _, one := range p.rules {
		one.active = false
	}
	p.quota = "off"
	return nil
}

// listReports returns the usage of every qtree with a rule, or of all qtrees if there is a rule
// without a name. Without quotas, there are no reports.
func (p *product) listReports(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	on := p.quota == "on"
	active := map[string]rule{}
	for _, one := range p.rules {
		if one.active {
			active[one.qtree] = *one
		}
	}
	_, everyQtree := active[""]
	qtrees := slices.Clone(p.qtrees)
	p.mu.Unlock()
	var all []record
	for _, q := range qtrees {
		one, limited := active[q.name]
		if !on || !limited && !everyQtree || !time.Now().After(q.listed) {
			continue
		}
		if name := r.URL.Query().Get("qtree.name"); name != "" && name != q.name {
			continue // measuring the usage reads the disk
		}
		u, err := p.server.Tree.Usage(q.name)
		if err != nil {
			continue // the qtree is being removed
		}
		space, files := one.space.record(), one.files.record()
		space["used"], files["used"] = record{"total": u.Bytes}, record{"total": u.Files + u.Directories + 1}
		all = append(all, record{
			"index": q.id, "type": "tree", "specifier": q.name, "qtree": record{"id": q.id, "name": q.name}, "space": space, "files": files,
			"svm": record{"uuid": p.svm, "name": svmName}, "volume": record{"uuid": p.volume, "name": volumeName},
		})
	}
	p.list(w, r, all, append([]string{"index"}, quotaFields...), []string{"svm", "volume", "index"})
}
