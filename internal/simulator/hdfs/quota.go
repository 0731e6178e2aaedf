package hdfs

import (
	"io/fs"
	"math"
	"net/http"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/simulator"
)

// Values of a quota in a request: no quota, and unchanged.
const (
	none  = -1
	stays = math.MaxInt64
)

type quota struct{ names, space int64 }

// setting handles an operation that requires a superuser, whether or not the directory exists.
func (p *product) setting(w http.ResponseWriter, r *http.Request, below string) {
	switch p.server.Setting("quota") {
	case "missing":
		refuse(w, http.StatusBadRequest, "IllegalArgumentException", "Invalid value for webhdfs parameter \"op\": No enum constant org.apache.hadoop.hdfs.web.resources.PutOpParam.Op.SETQUOTA")
		return
	case "refused":
		refuse(w, http.StatusForbidden, "AccessControlException", "Access denied for user "+p.server.User+". Superuser privilege is required")
		return
	}
	p.known(w, r, below, p.setQuota, "op", "namespacequota", "storagespacequota")
}

func (p *product) setQuota(w http.ResponseWriter, r *http.Request, name string) {
	q := r.URL.Query()
	names, nerr := number(q.Get("namespacequota"))
	space, serr := number(q.Get("storagespacequota"))
	if nerr != nil || serr != nil || names <= 0 && names != none || space < none {
		refuse(w, http.StatusBadRequest, "IllegalArgumentException", "Invalid values for quota : "+q.Get("namespacequota")+" and "+q.Get("storagespacequota"))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.quota(name)
	if names != stays {
		now.names = names
	}
	if space != stays {
		now.space = space
	}
	var bytes *int64
	if now.space != none {
		n := now.space / p.replication()
		bytes = &n
	}
	if err := p.server.Tree.Limit(name, bytes); err != nil {
		refuse(w, http.StatusForbidden, "IOException", err.Error())
		return
	}
	p.quotas[name] = now
	w.WriteHeader(http.StatusOK)
}

func number(text string) (int64, error) {
	if text == "" {
		return stays, nil
	}
	return strconv.ParseInt(text, 10, 64)
}

// quota returns the quota of a directory. A directory that was deleted and created again has none.
func (p *product) quota(name string) quota {
	q, ok := p.quotas[name]
	if ok {
		if _, err := p.server.Tree.Usage(name); err == nil {
			return q
		}
		delete(p.quotas, name)
	}
	return quota{none, none}
}

func (p *product) summary(w http.ResponseWriter, _ *http.Request, name string) {
	p.mu.Lock()
	q := p.quota(name)
	p.mu.Unlock()
	bytes, files, directories := measure(p.server.Tree.Path(name))
	simulator.JSON(w, http.StatusOK, record{"ContentSummary": record{
		"directoryCount": directories, "fileCount": files, "length": bytes, "quota": q.names,
		"spaceConsumed": bytes * p.replication(), "spaceQuota": q.space, "ecPolicy": "Replicated",
		"typeQuota": record{},
	}})
}

// measure counts the contents of a directory; a file with several names counts once, and the
// directory itself counts as a directory.
func measure(at string) (bytes, files, directories int64) {
	seen := map[uint64]bool{}
	_ = filepath.WalkDir(at, func(path string, e fs.DirEntry, err error) error {
		var st unix.Stat_t
		switch {
		case err != nil: // deleted meanwhile
		case e.IsDir():
			directories++
		case unix.Lstat(path, &st) == nil:
			files++
			if !seen[st.Ino] || st.Nlink == 1 {
				bytes += st.Blocks * 512
			}
			seen[st.Ino] = true
		}
		return nil
	})
	return bytes, files, directories
}
