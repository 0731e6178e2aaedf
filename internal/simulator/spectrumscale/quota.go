package spectrumscale

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/berthhq/berth/internal/simulator"
)

// unit is KiB, the unit of all numbers of blocks; limits are rounded up to
// blocks of 16.
const (
	unit  = 1024
	block = 16
)

func (p *product) at(f *fileset) string {
	if f.path == unlinked {
		return f.hidden()
	}
	return inside(f.path)
}

func (p *product) quotaRecord(f *fileset) record {
	u, err := p.server.Tree.Usage(p.at(f))
	if err != nil {
		u = simulator.Usage{}
	}
	doubt, _ := strconv.ParseInt(p.server.Setting("indoubt"), 10, 64)
	return record{
		"quotaID": f.id, "filesystemName": filesystem, "quotaType": "FILESET", "objectName": f.name, "objectId": f.id,
		"blockUsage": u.Bytes / unit, "blockQuota": f.block, "blockLimit": f.block, "blockInDoubt": doubt, "blockGrace": "none",
		"filesUsage": u.Files + u.Directories + 1, "filesQuota": f.files, "filesLimit": f.files, "filesInDoubt": 0, "filesGrace": "none",
	}
}

func (p *product) listQuotas(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server.Setting("quota") == "off" {
		refuse(w, http.StatusBadRequest, "Quota is not enabled for file system fs1.")
		return
	}
	page(p, w, r, "quotas", p.visible(), p.quotaRecord)
}

func (p *product) setQuota(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Operation string  `json:"operationType"`
		Type      string  `json:"quotaType"`
		Name      string  `json:"objectName"`
		BlockHard *string `json:"blockHardLimit"`
		BlockSoft *string `json:"blockSoftLimit"`
		FilesHard *string `json:"filesHardLimit"`
		FilesSoft *string `json:"filesSoftLimit"`
	}
	if err := simulator.Decode(r, &in); err != nil || in.Operation != "setQuota" || in.Type != "fileset" {
		refuse(w, http.StatusBadRequest, "Invalid value in the request: %v", err)
		return
	}
	p.start(w, "quota of "+in.Name, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		f := p.find(in.Name)
		if f == nil || p.server.Setting("quota") != "" {
			return errors.New("EFSSG0040C The quota of fileset " + in.Name + " cannot be set.")
		}
		for text, into := range map[*string]*int64{in.BlockHard: &f.block, in.FilesHard: &f.files} {
			if text == nil {
				continue
			}
			n, err := strconv.ParseInt(*text, 10, 64) // bytes without a unit
			if err != nil || n < 0 {
				return errors.New("EFSSG0041C Invalid limit " + *text + ".")
			}
			*into = n
			if into == &f.block {
				*into = (n + block*unit - 1) / (block * unit) * block
			}
		}
		bytes := f.block * unit
		if bytes == 0 {
			return p.server.Tree.Limit(p.at(f), nil)
		}
		return p.server.Tree.Limit(p.at(f), &bytes)
	})
}
