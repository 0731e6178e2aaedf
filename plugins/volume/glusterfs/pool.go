package main

import (
	"context"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

const (
	// longest limits one run of gluster, which waits for unreachable nodes.
	longest = time.Minute
	// turn is the first pause before a call is repeated while the pool processes another one for
	// the volume.
	turn = 50 * time.Millisecond
	// turns limits the time of these repetitions.
	turns = 20 * time.Second
)

// pool is a client of the storage pool for one volume. The pool processes one operation on a volume
// at a time and refuses others, so calls are serialized.
type pool struct {
	program driver.Program
	volume  string
	busy    chan struct{}
}

func newPool(program, volume string) *pool {
	return &pool{program: driver.Program{Path: program, Longest: longest}, volume: volume, busy: make(chan struct{}, 1)}
}

// answer is the output of gluster --xml.
type answer struct {
	XMLName xml.Name `xml:"cliOutput"`
	Ret     int      `xml:"opRet"`
	Errno   int      `xml:"opErrno"`
	Error   string   `xml:"opErrstr"`
	Quotas  []quota  `xml:"volQuota>limit"`
	Volumes []struct {
		Name    string `xml:"name"`
		Status  string `xml:"statusStr"`
		Options []struct {
			Name  string `xml:"name"`
			Value string `xml:"value"`
		} `xml:"options>option"`
	} `xml:"volInfo>volumes>volume"`
	Nodes []struct {
		Host   string `xml:"hostname"`
		Path   string `xml:"path"`
		Status int    `xml:"status"`
	} `xml:"volStatus>volumes>volume>node"`
}

// quota is the quota of a directory, for bytes or objects.
type quota struct {
	Limit       number `xml:"hard_limit"`
	Used        number `xml:"used_space"`
	Files       number `xml:"file_count"`
	Directories number `xml:"dir_count"` // including the directory itself
}

// number is a number or "N/A".
type number struct{ *int64 }

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *number) UnmarshalText(text []byte) error {
	if string(text) == "N/A" {
		n.int64 = nil
		return nil
	}
	v, err := strconv.ParseInt(string(text), 10, 64)
	n.int64 = &v
	return err
}

// or returns the number, or other if there is none.
func (n number) or(other int64) int64 {
	if n.int64 == nil {
		return other
	}
	return *n.int64
}

// Error codes of gluster.
const (
	inTransaction = 30802 // the pool processes another operation on the volume
	noVolume      = 30806
)

// ask runs gluster volume, and repeats it while the pool processes another operation.
func (p *pool) ask(ctx context.Context, args ...string) (*answer, error) {
	doing := "gluster volume " + strings.Join(args[:min(len(args), 3)], " ")
	select {
	case p.busy <- struct{}{}:
		defer func() { <-p.busy }()
	case <-ctx.Done():
		return nil, driver.Error(doing, ctx.Err())
	}
	end := time.Now().Add(turns)
	for pause := turn; ; pause = min(2*pause, time.Second) {
		out, err := p.program.Run(ctx, append([]string{"--mode=script", "--xml", "volume"}, args...)...)
		if err != nil {
			return nil, driver.Error(doing, err)
		}
		a, err := read(out)
		if err == nil || a == nil || a.Errno != inTransaction || time.Now().After(end) {
			return a, driver.Error(doing, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, driver.Error(doing, err)
		}
	}
}

// read parses the output of gluster. Its exit code can be 0 although the command was refused.
func read(out driver.Output) (*answer, error) {
	a := &answer{}
	if err := xml.Unmarshal([]byte(out.Stdout), a); err != nil {
		return nil, speechless(out)
	}
	if a.Ret == 0 && a.Errno == 0 {
		return a, nil
	}
	return a, refusal(a)
}

// speechless returns the error of a run without XML output.
func speechless(out driver.Output) error {
	text := oneLine(out.Stderr + " " + out.Stdout)
	switch {
	case strings.Contains(text, "daemon is operational"), strings.Contains(text, "Connection failed"):
		return driver.Retryable(5*time.Second, "glusterd does not answer: %s", text)
	case text == "":
		text = fmt.Sprintf("ended with %d and no output", out.Code)
	}
	return status.Error(codes.Internal, text)
}

// refusal returns the error in an answer, or nil. A missing scope is not detected here but by the
// mount.
func refusal(a *answer) error {
	text := oneLine(a.Error)
	code := codes.Internal
	switch {
	case a.Errno == inTransaction, strings.Contains(text, "Another transaction"):
		return driver.Retryable(time.Second, "%s", text)
	case a.Errno == noVolume, strings.HasSuffix(text, "does not exist"),
		strings.Contains(text, "Quota is disabled"), strings.Contains(text, "is stopped"), strings.Contains(text, "No such file"):
		code = codes.FailedPrecondition
	}
	s := status.New(code, text)
	if with, err := s.WithDetails(&pb.ErrorDetail{VendorCode: strconv.Itoa(a.Errno)}); err == nil {
		s = with
	}
	return s.Err()
}

func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	return text[:min(len(text), 300)]
}

// features are the settings of a volume.
type features struct {
	started, quota, inodes bool
	soft, hard             string // timeouts in seconds
}

func (p *pool) features(ctx context.Context) (features, error) {
	f := features{soft: "60", hard: "5"} // the defaults
	a, err := p.ask(ctx, "info", p.volume)
	if err != nil {
		return f, err
	}
	if len(a.Volumes) != 1 {
		return f, status.Errorf(codes.Internal, "gluster volume info: %d volumes instead of one", len(a.Volumes))
	}
	f.started = a.Volumes[0].Status == "Started"
	for _, o := range a.Volumes[0].Options {
		switch o.Name {
		case "features.quota":
			f.quota = o.Value == "on"
		case "features.inode-quota":
			f.inodes = o.Value == "on"
		case "features.soft-timeout":
			f.soft = o.Value
		case "features.hard-timeout":
			f.hard = o.Value
		}
	}
	return f, nil
}

// down returns the bricks and daemons of the volume that are not running.
func (p *pool) down(ctx context.Context) ([]string, error) {
	a, err := p.ask(ctx, "status", p.volume)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range a.Nodes {
		if n.Status != 1 {
			out = append(out, n.Host+" "+n.Path)
		}
	}
	return out, nil
}

// list returns a directory's quota from the list of bytes or of objects. It reports false if the
// volume has no such directory.
func (p *pool) list(ctx context.Context, list, path string) (quota, bool, error) {
	a, err := p.ask(ctx, "quota", p.volume, list, path)
	if err != nil || len(a.Quotas) == 0 {
		return quota{}, false, err
	}
	return a.Quotas[0], true, nil
}

// The sub-commands of gluster volume quota for bytes and for objects.
var (
	ofBytes   = words{"list", "limit-usage", "remove"}
	ofObjects = words{"list-objects", "limit-objects", "remove-objects"}
)

type words struct{ list, limit, remove string }

// limit sets or removes a limit. Gluster refuses to remove a limit that does not exist.
func (p *pool) limit(ctx context.Context, w words, path string, n *int64) error {
	if n != nil {
		_, err := p.ask(ctx, "quota", p.volume, w.limit, path, strconv.FormatInt(*n, 10))
		return err
	}
	now, _, err := p.list(ctx, w.list, path)
	if err == nil && now.Limit.int64 != nil {
		_, err = p.ask(ctx, "quota", p.volume, w.remove, path)
	}
	return err
}
