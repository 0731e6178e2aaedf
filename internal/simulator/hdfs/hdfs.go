// Package hdfs simulates WebHDFS of a Hadoop file system behind a gateway with passwords. The
// directory /berth is mounted. Space quotas count every replica, and name quotas count the
// directory itself.
//
// Requests and answers have the form of Hadoop's documentation of WebHDFS and of HDFS quotas.
// Settings:
//
//	replication  replication of new files, 3 by default
//	quota        "missing": before Hadoop 3.3; "refused": the user is not a superuser
//	state        "safemode", or "standby": the name node answers nothing else
package hdfs

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/berthhq/berth/internal/simulator"
)

const (
	base    = "/webhdfs/v1/"
	mounted = "berth"
	block   = 128 << 20
)

type product struct {
	server *simulator.Server
	mu     sync.Mutex
	quotas map[string]quota // by path below the mounted directory
}

type record = map[string]any

// New creates the file system.
func New(a *simulator.Server) (simulator.Product, error) {
	return &product{server: a, quotas: map[string]quota{}}, nil
}

// Options implements simulator.Product.
func (p *product) Options() map[string]any {
	return p.server.Reached(map[string]any{
		"path": "/" + mounted,
	})
}

// Refusal implements simulator.ErrorFormatter.
func (p *product) Refusal(status int) any { return exception("IOException", http.StatusText(status)) }

func exception(class, text string) record {
	return record{"RemoteException": record{"exception": class, "javaClassName": "org.apache.hadoop." + class, "message": text}}
}

func refuse(w http.ResponseWriter, status int, class, text string) {
	simulator.JSON(w, status, exception(class, text))
}

func (p *product) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	below, ok := strings.CutPrefix(r.URL.Path, base)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if !p.server.Basic(r) {
		refuse(w, http.StatusUnauthorized, "AuthenticationException", "the gateway does not know this user and password")
		return
	}
	switch p.server.Setting("state") {
	case "standby":
		refuse(w, http.StatusForbidden, "StandbyException", "Operation category READ is not supported in state standby")
		return
	case "safemode":
		if r.Method != http.MethodGet {
			refuse(w, http.StatusForbidden, "SafeModeException", "Name node is in safe mode.")
			return
		}
	}
	op := r.Method + " " + strings.ToUpper(r.URL.Query().Get("op"))
	if op == "GET GETSERVERDEFAULTS" {
		simulator.JSON(w, http.StatusOK, record{"FsServerDefaults": record{"replication": p.replication(), "blockSize": block}})
		return
	}
	switch op {
	case "GET GETFILESTATUS":
		p.known(w, r, below, p.status, "op")
	case "GET GETCONTENTSUMMARY":
		p.known(w, r, below, p.summary, "op")
	case "PUT SETQUOTA":
		p.setting(w, r, below)
	default:
		refuse(w, http.StatusBadRequest, "IllegalArgumentException", "Invalid value for webhdfs parameter \"op\": No enum constant for "+op)
	}
}

// known calls a handler if the directory exists.
func (p *product) known(w http.ResponseWriter, r *http.Request, below string, answer func(http.ResponseWriter, *http.Request, string), parameters ...string) {
	if err := simulator.Query(r.URL.Query(), parameters...); err != nil {
		refuse(w, http.StatusBadRequest, "IllegalArgumentException", err.Error())
		return
	}
	name, ok := strings.CutPrefix(strings.Trim(below, "/")+"/", mounted+"/")
	if name = strings.Trim(name, "/"); !ok || !p.server.Tree.IsDir(cmp.Or(name, ".")) {
		refuse(w, http.StatusNotFound, "FileNotFoundException", "File does not exist: /"+below)
		return
	}
	answer(w, r, cmp.Or(name, "."))
}

func (p *product) status(w http.ResponseWriter, _ *http.Request, name string) {
	simulator.JSON(w, http.StatusOK, record{"FileStatus": record{
		"pathSuffix": "", "type": "DIRECTORY", "length": 0, "owner": p.server.User, "group": "supergroup", "permission": "755",
		"replication": 0, "blockSize": 0,
	}})
}

func (p *product) replication() int64 {
	if n, err := strconv.ParseInt(p.server.Setting("replication"), 10, 64); err == nil {
		return n
	}
	return 3
}
