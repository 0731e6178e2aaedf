package cluster

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Leftovers waits until nothing of the platform except its data directory is on the machine, and
// otherwise returns what is left: processes, mounts (including network namespaces), interfaces,
// firewall tables, cgroups, subnets.
func (p *Platform) Leftovers() error {
	deadline := time.Now().Add(stopTimeout) // killed processes do not end at once
	for {
		left, err := p.leftovers()
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (p *Platform) leftovers() ([]string, error) {
	var left []string
	for _, find := range []func() ([]string, error){p.processes, p.mounts, p.networks, p.cgroups, p.subnets} {
		found, err := find()
		if err != nil {
			return nil, err
		}
		left = append(left, found...)
	}
	return left, nil
}

// processes finds processes that have a file below the data directory open, as argument or as
// working directory, or that are in a cgroup of the platform.
func (p *Platform) processes() ([]string, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, dir := range dirs {
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if len(command) == 0 || filepath.Base(dir) == fmt.Sprint(os.Getpid()) || strings.Contains(string(command), cleaner) {
			continue
		}
		if p.isOurs(dir, string(command)) {
			found = append(found, fmt.Sprintf("process %s %q", filepath.Base(dir), strings.ReplaceAll(string(command), "\x00", " ")))
		}
	}
	return found, nil
}

func (p *Platform) isOurs(dir, command string) bool {
	if strings.Contains(command, p.data) {
		return true
	}
	groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
	for _, agent := range p.agents {
		if strings.Contains(string(groups), "/berth/"+agent+"/") {
			return true
		}
	}
	links, _ := filepath.Glob(filepath.Join(dir, "fd/*"))
	for _, l := range append(links, filepath.Join(dir, "cwd"), filepath.Join(dir, "root")) {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, p.data) {
			return true
		}
	}
	return false
}

func (p *Platform) mounts() ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, p.data) {
			found = append(found, "mount "+strings.TrimSpace(line))
		}
	}
	return found, nil
}

// networks finds links whose names have an agent's format: a prefix and a hash of its ID.
func (p *Platform) networks() ([]string, error) {
	found, err := p.Interfaces()
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i] = "interface " + found[i]
	}
	firewall, err := nftables.New()
	if err != nil {
		return nil, err
	}
	tables, err := firewall.ListTables()
	if err != nil {
		return nil, fmt.Errorf("list firewall tables: %w", err)
	}
	for _, t := range tables {
		if p.named(t.Name) {
			found = append(found, "firewall table "+t.Name)
		}
	}
	return found, nil
}

// Interfaces returns the network interfaces that agents have created, on the host and in the
// agents' own namespaces, which are mounted below the data directory.
func (p *Platform) Interfaces() (found []string, err error) {
	host, err := netns.Get()
	if err != nil {
		return nil, err
	}
	defer host.Close()
	spaces := []netns.NsHandle{host}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], p.data) && strings.HasSuffix(fields[4], "/netns/.agent") {
			own, err := netns.GetFromPath(fields[4])
			if os.IsNotExist(err) {
				continue // it has just been removed
			}
			if err != nil {
				return nil, err
			}
			defer own.Close()
			spaces = append(spaces, own)
		}
	}
	for _, space := range spaces {
		names, err := linksOf(space)
		if err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(names, func(name string) bool { return !p.named(name) })...)
	}
	return found, nil
}

// linksOf returns the links of a namespace by name. It repeats the read if they change during it.
func linksOf(space netns.NsHandle) (names []string, err error) {
	h, err := netlink.NewHandleAt(space)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	list, err := h.LinkList()
	for range 1000 {
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
		list, err = h.LinkList()
	}
	for _, l := range list {
		names = append(names, l.Attrs().Name)
	}
	return names, err
}

// named reports whether a name has the hash of an agent's id in it.
func (p *Platform) named(name string) bool {
	var tags []string
	for _, agent := range p.agents {
		sum := sha256.Sum256([]byte(agent))
		tags = append(tags, strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:5]))
	}
	return slices.ContainsFunc(tags, func(tag string) bool { return strings.Contains(name, tag) })
}

func (p *Platform) cgroups() ([]string, error) {
	var found []string
	for _, agent := range p.agents {
		for _, pattern := range []string{"/sys/fs/cgroup/berth/", "/sys/fs/cgroup/*/berth/"} {
			dirs, err := filepath.Glob(pattern + agent)
			if err != nil {
				return nil, err
			}
			for _, dir := range dirs {
				found = append(found, "cgroup "+dir)
			}
		}
	}
	return found, nil
}

// subnets returns the files with which agents of one machine claim subnets.
func (p *Platform) subnets() ([]string, error) {
	var found []string
	err := filepath.WalkDir("/run/berth/subnets", func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if text, _ := os.ReadFile(path); slices.Contains(p.agents, strings.TrimSpace(string(text))) {
			found = append(found, "subnet "+d.Name())
		}
		return nil
	})
	return found, err
}
