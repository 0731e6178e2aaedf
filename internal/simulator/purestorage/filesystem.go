package purestorage

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berthhq/berth/internal/simulator"
)

type filesystem struct {
	name        string
	tree        string // where it is
	provisioned int64  // 0 = without bounds
	hard        bool
	destroyed   bool
	nfs         nfs
}

type nfs struct {
	V3    *bool   `json:"v3_enabled,omitempty"`
	V41   *bool   `json:"v4_1_enabled,omitempty"`
	Rules *string `json:"rules,omitempty"`
}

// body has the attributes of a file system that a client can set.
type body struct {
	Provisioned *int64 `json:"provisioned"`
	Hard        *bool  `json:"hard_limit_enabled"`
	Destroyed   *bool  `json:"destroyed"`
	NFS         *nfs   `json:"nfs"`
}

// absent is the array's message for an unknown name.
const absent = "File system does not exist."

// said is an error with the array's message.
type said string

func (s said) Error() string { return string(s) }

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

func (p *product) find(name string) *filesystem {
	for _, f := range p.all {
		if f.name == name {
			return f
		}
	}
	return nil
}

// used returns the bytes that the clients of a file system have stored.
func (p *product) used(f *filesystem) (int64, error) {
	if f.name == base {
		_, used, _, err := p.server.Tree.Capacity()
		return used, err
	}
	u, err := p.server.Tree.Usage(f.tree)
	return u.Bytes, err
}

func (p *product) record(f *filesystem) (record, error) {
	used, err := p.used(f)
	if err != nil {
		return nil, err
	}
	return record{
		"name": f.name, "provisioned": f.provisioned, "hard_limit_enabled": f.hard, "destroyed": f.destroyed, "writable": true,
		"fast_remove_directory_enabled": false, "default_user_quota": 0, "nfs": f.nfs,
		"space": record{"data_reduction": 2, "snapshots": 0, "total_physical": used / 2, "unique": used / 2, "virtual": used},
	}, nil
}

var filterForm = regexp.MustCompile(`^name='([A-Za-z0-9_-]*)\*'$`)

// list returns the file systems with the given names, which must exist, or those that a filter
// selects.
func (p *product) list(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	if err := simulator.Query(v, "names", "filter", "destroyed", "limit", "continuation_token", "sort"); err != nil {
		refuse(w, "", "%v", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.pages[v.Get("continuation_token")]
	if !ok {
		var context string
		var err error
		if found, context, err = p.selected(v); err != nil {
			refuse(w, context, "%v", err)
			return
		}
	}
	page, next := simulator.Page(p.server, found, 0, number(v.Get("limit")))
	out := record{"items": page, "total_item_count": nil, "continuation_token": nil}
	if page == nil {
		out["items"] = []record{}
	}
	if next > 0 {
		token := fmt.Sprintf("token%d", len(p.pages)+1)
		p.pages[token], out["continuation_token"] = found[next:], token
	}
	simulator.JSON(w, http.StatusOK, out)
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func (p *product) selected(v url.Values) (all []record, context string, err error) {
	if v.Get("continuation_token") != "" {
		return nil, "continuation_token", errors.New("invalid continuation token")
	}
	begins := ""
	if text := v.Get("filter"); text != "" {
		m := filterForm.FindStringSubmatch(text)
		if m == nil {
			return nil, "filter", fmt.Errorf("invalid filter %s", text)
		}
		begins = m[1]
	}
	names := strings.FieldsFunc(v.Get("names"), func(r rune) bool { return r == ',' })
	for _, n := range names {
		if p.find(n) == nil {
			return nil, n, said(absent)
		}
	}
	for _, f := range p.all {
		wanted := len(names) == 0 || slices.Contains(names, f.name)
		if !wanted || !strings.HasPrefix(f.name, begins) || v.Get("destroyed") != "" && v.Get("destroyed") != strconv.FormatBool(f.destroyed) {
			continue
		}
		one, err := p.record(f)
		if err != nil {
			return nil, f.name, err
		}
		all = append(all, one)
	}
	return all, "", nil
}

// one reads a request that changes a file system. The caller has p.mu.
func (p *product) one(w http.ResponseWriter, r *http.Request, into *body, known ...string) (name string, ok bool) {
	v := r.URL.Query()
	name = v.Get("names")
	err := simulator.Query(v, append(known, "names")...)
	if err == nil && into != nil {
		err = simulator.Decode(r, into)
	}
	if err == nil && !nameForm.MatchString(name) {
		err = errors.New("invalid name")
	}
	if err != nil {
		refuse(w, name, "%v", err)
		return name, false
	}
	return name, true
}

func (p *product) answer(w http.ResponseWriter, f *filesystem) {
	one, err := p.record(f)
	if err != nil {
		refuse(w, f.name, "%v", err)
		return
	}
	simulator.JSON(w, http.StatusOK, record{"items": []record{one}})
}

func (p *product) create(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b body
	name, ok := p.one(w, r, &b)
	if !ok {
		return
	}
	scope, mounted := strings.CutPrefix(name, prefix)
	f := &filesystem{name: name, tree: scope}
	if !mounted {
		f.tree = ".other-" + name
	}
	switch {
	case p.find(name) != nil:
		refuse(w, name, "File system already exists.")
		return
	case b.Destroyed != nil:
		refuse(w, name, "destroyed: not of a new file system.")
		return
	}
	if b.NFS != nil {
		f.nfs = *b.NFS
	}
	if err := p.server.Tree.Make(f.tree, 0o755); err != nil {
		refuse(w, name, "%v", err)
		return
	}
	if err := p.bound(f, b, false); err != nil {
		refuse(w, name, "%v", err)
		return
	}
	p.all = append(p.all, f)
	p.answer(w, f)
}

// bound sets a file system's size.
func (p *product) bound(f *filesystem, b body, ignoreUsage bool) error {
	n, hard := f.provisioned, f.hard
	if b.Provisioned != nil {
		n = *b.Provisioned
	}
	if b.Hard != nil {
		hard = *b.Hard
	}
	if n < 0 || hard && n == 0 {
		return errors.New("a hard limit wants a provisioned size")
	}
	used, err := p.used(f)
	if err != nil {
		return err
	}
	if hard && used > n && !ignoreUsage {
		return errors.New("the usage of the file system exceeds the hard limit")
	}
	var limit *int64
	if hard {
		limit = &n
	}
	if err := p.server.Tree.Limit(f.tree, limit); err != nil {
		return err
	}
	f.provisioned, f.hard = n, hard
	return nil
}

func (p *product) change(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b body
	name, ok := p.one(w, r, &b, "ignore_usage")
	if !ok {
		return
	}
	f := p.find(name)
	if f == nil || name == base {
		refuse(w, name, absent)
		return
	}
	if f.destroyed && (b.Destroyed == nil || *b.Destroyed) {
		refuse(w, name, "File system has been destroyed.")
		return
	}
	err := error(nil)
	if b.Destroyed != nil && *b.Destroyed != f.destroyed {
		err = p.destroy(f, *b.Destroyed)
	}
	if err == nil && (b.Provisioned != nil || b.Hard != nil) {
		err = p.bound(f, b, r.URL.Query().Get("ignore_usage") == "true")
	}
	if err != nil {
		refuse(w, name, "%v", err)
		return
	}
	p.answer(w, f)
}

// destroy removes a file system from its clients, or recovers it.
func (p *product) destroy(f *filesystem, yes bool) error {
	to := strings.TrimPrefix(f.name, prefix)
	if yes {
		to = ".destroyed-" + to
	}
	if err := p.server.Tree.Rename(f.tree, to); err != nil {
		return err
	}
	f.tree, f.destroyed = to, yes
	return nil
}

// eradicate removes a file system that was destroyed, with all that is in it.
func (p *product) eradicate(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, ok := p.one(w, r, nil)
	if !ok {
		return
	}
	f := p.find(name)
	switch {
	case f == nil:
		refuse(w, name, absent)
		return
	case !f.destroyed:
		refuse(w, name, "File system has not been destroyed.")
		return
	}
	if err := p.server.Tree.Remove(f.tree, true); err != nil {
		refuse(w, name, "%v", err)
		return
	}
	p.all = slices.DeleteFunc(p.all, func(other *filesystem) bool { return other == f })
	w.WriteHeader(http.StatusOK)
}
