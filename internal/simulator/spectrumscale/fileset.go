package spectrumscale

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/simulator"
)

const unlinked = "--"

type fileset struct {
	id           int
	name         string
	path         string // of the junction, or unlinked
	comment      string
	block, files int64 // hard limits: KiB and files; 0 = none
	shown        time.Time
}

// inside is where a path of the cluster is in the tree.
func inside(path string) string { return strings.Trim(strings.TrimPrefix(path, mountPoint), "/") }

func (p *product) record(f *fileset) record {
	return record{
		"filesetName": f.name,
		"config": record{
			"filesetName": f.name, "filesystemName": filesystem, "path": f.path, "id": f.id, "comment": f.comment,
			"status": map[bool]string{true: "Unlinked", false: "Linked"}[f.path == unlinked],
		},
	}
}

// visible returns the filesets that the GUI lists. The caller has the lock.
func (p *product) visible() []*fileset {
	return slices.DeleteFunc(slices.Clone(p.filesets), func(f *fileset) bool { return time.Now().Before(f.shown) })
}

func (p *product) listFilesets(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page(p, w, r, "filesets", p.visible(), p.record)
}

func (p *product) getFileset(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.visible() {
		if f.name == r.PathValue("name") {
			answer(w, record{"filesets": []record{p.record(f)}})
			return
		}
	}
	refuse(w, http.StatusBadRequest, "Invalid value in 'filesetName'")
}

func (p *product) createFileset(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name        string `json:"filesetName"`
		Path        string `json:"path"`
		Owner       string `json:"owner"`
		Permissions string `json:"permissions"`
		InodeSpace  string `json:"inodeSpace"`
		Comment     string `json:"comment"`
	}
	mode := uint64(0)
	err := simulator.Decode(r, &in)
	if err == nil {
		mode, err = strconv.ParseUint(in.Permissions, 8, 9)
	}
	if err != nil || in.Name == "" || !strings.HasPrefix(in.Path, mountPoint+"/") || in.InodeSpace != "new" && in.InodeSpace != "root" {
		refuse(w, http.StatusBadRequest, "Invalid value in the request: %v", err)
		return
	}
	lag, _ := time.ParseDuration(p.server.Setting("lag"))
	p.start(w, "create "+in.Name, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.find(in.Name) != nil {
			return errors.New("EFSSP1102C Fileset " + in.Name + " already exists.")
		}
		if err := p.server.Tree.Make(inside(in.Path), os.FileMode(mode)); err != nil {
			return err
		}
		p.filesets = append(p.filesets, &fileset{id: p.next, name: in.Name, path: in.Path, comment: in.Comment, shown: time.Now().Add(lag)})
		p.next++
		return nil
	})
}

// find looks for a fileset, whether or not the GUI lists it. The caller has the lock.
func (p *product) find(name string) *fileset {
	for _, f := range p.filesets {
		if f.name == name {
			return f
		}
	}
	return nil
}

// change starts a job on a fileset.
func (p *product) change(w http.ResponseWriter, r *http.Request, do func(f *fileset) error) {
	p.mu.Lock()
	f := p.find(r.PathValue("name"))
	p.mu.Unlock()
	if f == nil {
		refuse(w, http.StatusBadRequest, "Invalid value in 'fsetName'")
		return
	}
	p.start(w, r.Method+" "+r.URL.Path, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		return do(f)
	})
}

// hidden returns the directory of a fileset without a junction.
func (f *fileset) hidden() string { return ".unlinked-" + strconv.Itoa(f.id) }

func (p *product) link(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Path string `json:"path"`
	}
	if err := simulator.Decode(r, &in); err != nil || !strings.HasPrefix(in.Path, mountPoint+"/") {
		refuse(w, http.StatusBadRequest, "Invalid value in 'path'")
		return
	}
	p.change(w, r, func(f *fileset) error {
		if f.path != unlinked {
			return errors.New("EFSSG0449C Fileset " + f.name + " is linked already.")
		}
		if err := p.server.Tree.Rename(f.hidden(), inside(in.Path)); err != nil {
			return err
		}
		f.path = in.Path
		return nil
	})
}

func (p *product) unlink(w http.ResponseWriter, r *http.Request) {
	if err := simulator.Query(r.URL.Query(), "force"); err != nil {
		refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	p.change(w, r, func(f *fileset) error {
		if f.path == unlinked {
			return errors.New("EFSSG0449C Fileset " + f.name + " is not linked.")
		}
		if err := p.server.Tree.Rename(inside(f.path), f.hidden()); err != nil {
			return err
		}
		f.path = unlinked
		return nil
	})
}

func (p *product) deleteFileset(w http.ResponseWriter, r *http.Request) {
	p.change(w, r, func(f *fileset) error {
		if f.path != unlinked {
			return errors.New("EFSSG0072C Fileset " + f.name + " is linked and cannot be deleted.")
		}
		if err := p.server.Tree.Remove(f.hidden(), true); err != nil {
			return err
		}
		p.filesets = slices.DeleteFunc(p.filesets, func(o *fileset) bool { return o == f })
		return nil
	})
}
