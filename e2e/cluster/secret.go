package cluster

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// vault stores the secrets that were created while the platform ran: passwords, tokens, keys. The
// server must store them only as hashes or encrypted.
type vault struct {
	mu  sync.Mutex
	all []secret
}

type secret struct{ what, value string }

// Secret records a value that must not be found in the server's data.
func (p *Platform) Secret(what, value string) {
	p.vault.mu.Lock()
	defer p.vault.mu.Unlock()
	p.vault.all = append(p.vault.all, secret{what, value})
}

// forms returns the encodings in which a value could be stored. For a text of several lines, it
// uses the last of the longest lines, because earlier lines can be equal in all keys.
func (s secret) forms() [][]byte {
	line := ""
	for l := range strings.Lines(s.value) {
		if l = strings.TrimSpace(l); len(l) >= len(line) {
			line = l
		}
	}
	b := []byte(line)
	return [][]byte{
		b, []byte(hex.EncodeToString(b)),
		[]byte(base64.RawStdEncoding.EncodeToString(b)), []byte(base64.RawURLEncoding.EncodeToString(b)),
	}
}

// place is a part of the server's data.
type place struct {
	name string
	data []byte
}

// Leaks looks for every secret in a dump of the database, in all of Redis, in the files of the
// stores and of the agent and in the log. It returns the findings, and a line about the searched
// places.
func (p *Platform) Leaks(ctx context.Context) (found []string, looked string, err error) {
	var places []place
	for _, read := range []func(context.Context) ([]place, error){p.dump, p.redis, p.files} {
		more, err := read(ctx)
		if err != nil {
			return nil, "", err
		}
		places = append(places, more...)
	}
	places = append(places, place{"log", []byte(strings.ReplaceAll(p.Log(), p.Password, "(printed once)"))})
	p.vault.mu.Lock()
	defer p.vault.mu.Unlock()
	for _, s := range p.vault.all {
		for _, form := range s.forms() {
			for _, at := range places {
				if i := bytes.Index(at.data, form); i >= 0 {
					found = append(found, fmt.Sprintf("%s in %s: …%q…", s.what, at.name, at.data[max(0, i-60):i]))
				}
			}
		}
	}
	size := 0
	for _, at := range places {
		size += len(at.data)
	}
	return found, fmt.Sprintf("%d secrets searched in a dump of the database (%d KiB) and %d other places (%d KiB): %d hits",
		len(p.vault.all), len(places[0].data)>>10, len(places)-1, (size-len(places[0].data))>>10, len(found)), nil
}

// dump returns the database in the format of a backup.
func (p *Platform) dump(ctx context.Context) ([]place, error) {
	programs, err := filepath.Glob("/usr/lib/postgresql/*/bin/pg_dump")
	if err != nil || len(programs) == 0 {
		return nil, fmt.Errorf("no pg_dump (%v)", err)
	}
	cmd := exec.CommandContext(ctx, programs[len(programs)-1], "-h", filepath.Join(p.data, "stores/postgres"), "-U", "berth", "berth")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("pg_dump: %w: %s", err, stderr.Bytes())
	}
	if !bytes.Contains(out, []byte(p.Email)) {
		return nil, errors.New("the dump does not contain the first superadmin's address")
	}
	return []place{{"the database", out}}, nil
}

// redis returns every key with its value, in the format of Redis' file.
func (p *Platform) redis(ctx context.Context) ([]place, error) {
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: filepath.Join(p.data, "stores/redis/redis.sock")})
	defer c.Close()
	if err := c.ConfigSet(ctx, "rdbcompression", "no").Err(); err != nil {
		return nil, fmt.Errorf("read redis: %w", err)
	}
	all := place{name: "Redis"}
	keys := c.Scan(ctx, 0, "", 1000).Iterator()
	for keys.Next(ctx) {
		value, err := c.Dump(ctx, keys.Val()).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("read redis: %w", err)
		}
		all.data = append(append(all.data, keys.Val()...), value...)
	}
	return []place{all}, keys.Err()
}

// files returns the files of etcd, PostgreSQL and the agent, without volumes and containers, which
// have the files of users.
func (p *Platform) files(context.Context) ([]place, error) {
	var all []place
	for _, dir := range []string{"stores", "agent", "storage", "registry"} {
		err := filepath.WalkDir(filepath.Join(p.data, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && (d.Name() == "disk" || d.Name() == "disks") {
				return fs.SkipDir // output of sessions
			}
			if errors.Is(err, fs.ErrNotExist) || err == nil && (!d.Type().IsRegular() || filepath.Ext(path) == ".img") {
				return nil
			}
			if err != nil {
				return err
			}
			if filepath.Base(filepath.Dir(path)) == "netns" {
				return nil // a network namespace is mounted there
			}
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			all = append(all, place{strings.TrimPrefix(path, p.data+"/"), data})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read files: %w", err)
		}
	}
	return all, nil
}
