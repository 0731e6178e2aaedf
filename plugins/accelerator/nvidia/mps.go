package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

const mpsInContainer = "/usr/local/nvidia/berth/mps"

// servers are the plugin's MPS servers: at most one for a GPU. A server has clients of one trust
// domain only, because a crash of one client can crash the others. The zero value has no servers.
type servers struct {
	mu  sync.Mutex
	all map[string]*server // by GPU
}

type server struct {
	control
	domain  string
	holders map[string]bool // allocations
}

// mpsServer returns the control of a GPU's server. Its file names are short, because the paths of
// sockets are limited.
func mpsServer(h *driver.Host, gpu string) control {
	sum := sha256.Sum256([]byte(h.State() + "\x00" + gpu))
	name := fmt.Sprintf("%x", sum[:6])
	dir := h.State("mps", name)
	return control{
		host: h, gpu: gpu, dir: dir, pipe: filepath.Join(dir, "pipe"), log: filepath.Join(dir, "log"),
		// The memory that the server shares with its clients.
		shm: h.Dev("shm", "berth-mps-"+name),
	}
}

// join adds an allocation to a GPU's server, which is started for the first one.
func (s *servers) join(ctx context.Context, at *driver.Host, gpu, domain, allocation string) (control, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.all[gpu]; x != nil {
		if x.domain != domain {
			return control{}, status.Errorf(codes.ResourceExhausted, "device_id: the MPS server of %s serves another project", gpu)
		}
		x.holders[allocation] = true
		return x.control, nil
	}
	c := mpsServer(at, gpu)
	if err := c.start(ctx); err != nil {
		return control{}, status.Errorf(codes.Unavailable, "device_id: start the MPS server of %s: %v", gpu, errors.Join(err, c.end(ctx)))
	}
	s.add(c, domain, allocation)
	return c, nil
}

func (s *servers) add(c control, domain, allocation string) {
	if s.all == nil {
		s.all = map[string]*server{}
	}
	if s.all[c.gpu] == nil {
		s.all[c.gpu] = &server{c, domain, map[string]bool{}}
	}
	s.all[c.gpu].holders[allocation] = true
}

// leave removes an allocation and stops the server if it was the last one.
func (s *servers) leave(ctx context.Context, allocation string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for gpu, x := range s.all {
		if !x.holders[allocation] {
			continue
		}
		if len(x.holders) == 1 {
			if err := x.end(ctx); err != nil {
				return err
			}
			delete(s.all, gpu)
		}
		delete(x.holders, allocation)
	}
	return nil
}

// resume adopts the servers of an earlier process that live allocations use, and restarts those
// that have exited.
func (s *servers) resume(ctx context.Context, at *driver.Host, live []*pb.LiveAllocation) []*pb.RestoreProblem {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
	for _, l := range live {
		var h held
		if json.Unmarshal(l.GetState(), &h) == nil && h.GPU != "" {
			s.add(mpsServer(at, h.GPU), h.Domain, l.GetAllocationId())
		}
	}
	var out []*pb.RestoreProblem
	for _, gpu := range slices.Sorted(maps.Keys(s.all)) {
		x := s.all[gpu]
		if x.alive(ctx) {
			continue
		}
		if err := x.start(ctx); err != nil {
			for _, id := range slices.Sorted(maps.Keys(x.holders)) {
				out = append(out, &pb.RestoreProblem{AllocationId: id, DeviceId: gpu, Message: "its MPS server: " + err.Error()})
			}
		}
	}
	return out
}

// sweep stops the servers without allocations and returns a description of them.
func (s *servers) sweep(ctx context.Context, at *driver.Host) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := map[string]bool{}
	for _, x := range s.all {
		mine[x.dir] = true
	}
	var leaks []string
	dirs, _ := filepath.Glob(at.State("mps", "*"))
	for _, dir := range dirs {
		if mine[dir] {
			continue
		}
		gpu, err := os.ReadFile(filepath.Join(dir, "gpu"))
		if err != nil { // it was never started
			_ = os.RemoveAll(dir)
			continue
		}
		leak := "MPS server of " + strings.TrimSpace(string(gpu))
		if err := mpsServer(at, strings.TrimSpace(string(gpu))).end(ctx); err != nil {
			leak += ", which cannot be ended: " + err.Error()
		}
		leaks = append(leaks, leak)
	}
	_ = os.Remove(at.State("mps")) // fails unless it is empty
	return leaks
}
