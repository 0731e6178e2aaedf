package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
)

// pinned matches a requirement with an exact version.
var pinned = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*==[^\s=*;]+( ;[^\\]*)?( --hash=sha256:[0-9a-f]{64})+$`)

// checkPip returns an error unless every requirement of the file has one version and hashes. pip
// itself refuses a file that lacks a dependency.
func checkPip(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n := 0
	for _, line := range strings.Split(strings.ReplaceAll(string(b), "\\\n", " "), "\n") {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !pinned.MatchString(line) {
			return fmt.Errorf("%s: %q is not NAME==VERSION with --hash=sha256:…", file, line)
		}
		n++
	}
	if n == 0 {
		return fmt.Errorf("%s has no package", file)
	}
	return nil
}

// npmLock is the part of a package-lock.json about the origin of packages.
type npmLock struct {
	Version  int `json:"lockfileVersion"`
	Packages map[string]struct {
		Dependencies map[string]string `json:"dependencies"`
		Version      string            `json:"version"`
		Resolved     string            `json:"resolved"`
		Integrity    string            `json:"integrity"`
		InBundle     bool              `json:"inBundle"`
	} `json:"packages"`
}

// checkNpm returns an error unless every package of the lock file has a version and an integrity
// hash and comes from the registry, and every dependency has a package.
func checkNpm(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var lock npmLock
	if err := json.Unmarshal(b, &lock); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if lock.Version < 2 || len(lock.Packages) < 2 {
		return fmt.Errorf("%s has no package, or is older than version 2", file)
	}
	paths := make([]string, 0, len(lock.Packages))
	for path := range lock.Packages {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		p := lock.Packages[path]
		// npm omits the address of a package from its registry.
		registry := p.Resolved == "" || strings.HasPrefix(p.Resolved, "https://registry.npmjs.org/")
		if path != "" && !p.InBundle && (p.Version == "" || !registry || !strings.HasPrefix(p.Integrity, "sha512-")) {
			return fmt.Errorf("%s: %s has no version or sha512 hash, or is not from the registry", file, path)
		}
		for name := range p.Dependencies {
			if !lock.resolves(path, name) {
				return fmt.Errorf("%s: %s needs %s, which the file lacks", file, path, name)
			}
		}
	}
	return nil
}

// resolves reports whether a package at the path finds the dependency as Node does: in its own
// node_modules, or in one of a folder above.
func (l npmLock) resolves(path, name string) bool {
	for {
		below := "node_modules/" + name
		if path != "" {
			below = path + "/" + below
		}
		if _, ok := l.Packages[below]; ok {
			return true
		}
		if path == "" {
			return false
		}
		at := strings.LastIndex(path, "/node_modules/")
		path = path[:max(at, 0)]
	}
}
