// Package efs simulates the API of Amazon EFS with one file system, and the services that return
// credentials: the metadata service of an EC2 instance and that of a container. It checks the
// signature (version 4) of every request. EFS has no limits for directories, and measures the
// stored bytes at intervals.
//
// Requests and answers have the form of the models in the AWS SDK, and errors have that of the
// documentation of the EFS API and of signatures. Settings:
//
//	state    of the file system: "available" by default
//	targets  states of its mount targets, "available available available" by default
//	metered  any new value: EFS measures the stored bytes again
//	policy   "denied": the credentials are valid, but lack the permission to describe anything
package efs

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berthhq/berth/internal/simulator"
)

// ID is the ID of the file system, Region its region.
const (
	ID     = "fs-0123456789abcdef0"
	Region = "eu-test-1"
	base   = "/2015-02-01/"
)

type product struct {
	server *simulator.Server
	mux    http.ServeMux
	file   string // of long-lived credentials
	made   time.Time

	sessions *simulator.Tokens // credentials that expire, and their holders
	metadata *simulator.Tokens // of the instance's metadata service
	pod      string            // the token of a container
	podFile  string

	mu      sync.Mutex
	keys    map[string]key // by id
	metered metered
}

// metered is the stored bytes at one time.
type metered struct {
	bytes int64
	at    time.Time
	due   string // the value of the setting at that time
}

type record = map[string]any

// New creates the file system.
func New(a *simulator.Server) (simulator.Product, error) {
	p := &product{server: a, made: time.Now(), sessions: a.NewTokens(0), metadata: a.NewTokens(0), pod: simulator.Random(), keys: map[string]key{}}
	var err error
	if p.file, err = p.long(); err != nil {
		return nil, err
	}
	if p.podFile, err = a.Secret("pod", p.pod); err != nil {
		return nil, err
	}
	p.mux.HandleFunc("GET "+base+"file-systems", p.signed(p.fileSystems))
	p.mux.HandleFunc("GET "+base+"mount-targets", p.signed(p.mountTargets))
	p.mux.HandleFunc("PUT /latest/api/token", p.metadataToken)
	p.mux.HandleFunc("GET "+roles, p.role)
	p.mux.HandleFunc("GET "+roles+role, p.roleCredentials)
	p.mux.HandleFunc("GET /container", p.containerCredentials)
	return p, nil
}

// Options implements simulator.Product.
func (p *product) Options() map[string]any {
	return map[string]any{
		"file_system_id": ID, "region": Region, "endpoint": p.server.URL, "ca_file": p.server.CAFile,
		"credentials_file": p.file, "usage_max_age_s": 0,
	}
}

// Instance is the options that lead to the credentials of the instance.
func Instance(a *simulator.Server) map[string]any {
	return map[string]any{"credentials": "instance", "metadata_url": a.URL}
}

// Container returns the options for the credentials of the container.
func Container(a *simulator.Server) map[string]any {
	return map[string]any{"credentials": "container", "container_credentials_url": a.URL + "/container", "container_token_file": a.Product().(*product).podFile}
}

// Refusal implements simulator.ErrorFormatter.
func (p *product) Refusal(status int) any {
	code := map[int]string{http.StatusTooManyRequests: "ThrottlingException", http.StatusServiceUnavailable: "ServiceUnavailableException"}[status]
	return record{"__type": cmp.Or(code, "InternalServerError"), "message": "Rate exceeded"}
}

func (p *product) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// refuse sends an error in the format of EFS.
func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("X-Amzn-Errortype", code)
	simulator.JSON(w, status, record{"ErrorCode": code, "Message": text})
}

// page reads the parameters of a list for one file system.
func (p *product) page(w http.ResponseWriter, r *http.Request, more ...string) (from, n int, ok bool) {
	q := r.URL.Query()
	if err := simulator.Query(q, append(more, "FileSystemId", "MaxItems", "Marker")...); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return 0, 0, false
	}
	var err error
	if text := q.Get("MaxItems"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			refuse(w, http.StatusBadRequest, "BadRequest", "MaxItems is not a positive number")
			return 0, 0, false
		}
	}
	if text := q.Get("Marker"); text != "" {
		if from, err = strconv.Atoi(strings.TrimPrefix(text, "m-")); err != nil {
			refuse(w, http.StatusBadRequest, "BadRequest", "invalid Marker")
			return 0, 0, false
		}
	}
	if id := q.Get("FileSystemId"); id != "" && id != ID {
		refuse(w, http.StatusNotFound, "FileSystemNotFound", "File system '"+id+"' does not exist.")
		return 0, 0, false
	}
	return from, cmp.Or(n, 10), true
}

// list answers with a page.
func list(w http.ResponseWriter, name string, page []record, next int) {
	out := record{name: page}
	if next > 0 {
		out["NextMarker"] = fmt.Sprintf("m-%d", next)
	}
	simulator.JSON(w, http.StatusOK, out)
}

func (p *product) fileSystems(w http.ResponseWriter, r *http.Request) {
	from, n, ok := p.page(w, r, "CreationToken")
	if !ok {
		return
	}
	m, err := p.meter()
	if err != nil {
		refuse(w, http.StatusInternalServerError, "InternalServerError", err.Error())
		return
	}
	page, next := simulator.Page(p.server, []record{{
		"OwnerId": "123456789012", "CreationToken": "berth", "FileSystemId": ID, "CreationTime": p.made.Unix(),
		"FileSystemArn":  "arn:aws:elasticfilesystem:" + Region + ":123456789012:file-system/" + ID,
		"LifeCycleState": cmp.Or(p.server.Setting("state"), "available"), "NumberOfMountTargets": len(p.targets()),
		"SizeInBytes":     record{"Value": m.bytes, "Timestamp": m.at.Unix(), "ValueInIA": 0, "ValueInStandard": m.bytes, "ValueInArchive": 0},
		"PerformanceMode": "generalPurpose", "Encrypted": true, "ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 256,
		"Tags": []record{}, "FileSystemProtection": record{"ReplicationOverwriteProtection": "ENABLED"},
	}}, from, n)
	list(w, "FileSystems", page, next)
}

// meter returns the stored bytes at the last measurement.
func (p *product) meter() (metered, error) {
	due := p.server.Setting("metered")
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.metered.at.IsZero() || p.metered.due != due {
		_, used, _, err := p.server.Tree.Capacity()
		if err != nil {
			return metered{}, err
		}
		p.metered = metered{used, time.Now(), due}
	}
	return p.metered, nil
}

func (p *product) targets() []string {
	if text := p.server.Setting("targets"); text != "" {
		return strings.Fields(strings.TrimPrefix(text, "none"))
	}
	return []string{"available", "available", "available"}
}

func (p *product) mountTargets(w http.ResponseWriter, r *http.Request) {
	from, n, ok := p.page(w, r, "MountTargetId", "AccessPointId")
	if !ok {
		return
	}
	all := []record{}
	for i, state := range p.targets() {
		all = append(all, record{
			"OwnerId": "123456789012", "MountTargetId": fmt.Sprintf("fsmt-%08d", i), "FileSystemId": ID, "SubnetId": fmt.Sprintf("subnet-%08d", i),
			"LifeCycleState": state, "IpAddress": fmt.Sprintf("10.0.%d.10", i), "NetworkInterfaceId": fmt.Sprintf("eni-%08d", i),
			"AvailabilityZoneId": fmt.Sprintf("eut1-az%d", i+1), "AvailabilityZoneName": Region + string(rune('a'+i)), "VpcId": "vpc-00000000",
		})
	}
	page, next := simulator.Page(p.server, all, from, n)
	list(w, "MountTargets", page, next)
}
