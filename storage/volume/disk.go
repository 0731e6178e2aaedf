package volume

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	plugin "github.com/berthhq/berth/plugins/volume"
	"github.com/berthhq/berth/plugins/volume/volumepb"
)

// EachScope calls f for every scope of the product, with its values, and for every other directory
// of a scope, with its name only.
func (v *Volume) EachScope(ctx context.Context, f func(*volumepb.Scope) error) error {
	reported := make(map[string]bool)
	if v.can(volumepb.Capability_LIST_SCOPES) {
		err := v.call(ctx, func(c *plugin.Client) error {
			stream, err := c.ListScopes(ctx, &volumepb.VolumeRef{Volume: v.cfg.Name})
			for err == nil {
				var s *volumepb.Scope
				if s, err = stream.Recv(); err != nil {
					break
				}
				if hex, herr := hexID("scope", s.Scope); herr == nil && hex == s.Scope && !reported[hex] {
					reported[hex] = true
					err = f(s)
				}
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	onDisk, err := v.Scopes()
	if err != nil {
		return err
	}
	for _, hex := range onDisk {
		if reported[hex] {
			continue
		}
		if err := f(&volumepb.Scope{Scope: hex, Path: hex}); err != nil {
			return err
		}
	}
	return nil
}

// Place is the kind of a Found.
type Place int

// The kinds.
const (
	Present  Place = iota
	Arriving       // an incomplete copy
	Deleting
	Unknown // not created by a storage proxy
)

// Found is the directory of a folder, or an entry that does not belong to a volume.
type Found struct {
	Place  Place
	Scope  string // in hex, "" outside of all scopes
	Folder string // in hex, "" for an unknown entry
	Path   string // below the volume's root
}

// EachFolder calls f for every folder in a scope, or in all scopes for "", and for every entry
// that does not belong there.
func (v *Volume) EachFolder(ctx context.Context, scope string, f func(Found) error) error {
	root, err := v.identity.root()
	if err != nil {
		return err
	}
	defer root.Close()
	l := &lister{ctx: ctx, report: f}
	if scope != "" {
		hex, err := hexID("scope", scope)
		if err != nil {
			return err
		}
		s, err := v.scopeIn(ctx, root, hex)
		if err != nil {
			return err
		}
		defer s.Close()
		return l.scope(s, hex)
	}
	if v.mounts != nil {
		return v.eachMounted(ctx, root, l.scope)
	}
	return l.each(root, "", func(n entryName) error {
		if hex, err := hexID("scope", n.name); err == nil && hex == n.name && n.kind == unix.DT_DIR {
			return l.within(root, n.name, func(s *os.File) error { return l.scope(s, hex) })
		}
		if strings.HasPrefix(n.name, ".") || n.name == "lost+found" { // created by the proxy, or by the product
			return nil
		}
		return f(Found{Place: Unknown, Path: n.name})
	})
}

type lister struct {
	ctx    context.Context
	report func(Found) error
}

// each calls f for the entries of a directory, of which there are few: a prefix has 256.
func (l *lister) each(d *os.File, path string, f func(entryName) error) error {
	var names []entryName
	err := eachEntry(d, func(name []byte, kind byte) {
		names = append(names, entryName{string(name), kindOf(d, string(name), kind)})
	})
	if err != nil {
		return classify("read", path, vanished(err))
	}
	for _, n := range names {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if err := f(n); err != nil {
			return err
		}
	}
	return nil
}

// within opens a directory and runs f with it, unless it no longer exists.
func (l *lister) within(d *os.File, name string, f func(*os.File) error) error {
	sub, err := openDir(d, name, plain)
	if err != nil {
		return classify("read", name, vanished(err))
	}
	defer sub.Close()
	return f(sub)
}

func (l *lister) scope(s *os.File, hex string) error {
	return l.each(s, hex, func(n entryName) error {
		path := hex + "/" + n.name
		switch {
		case n.name == arrivingDir:
			return l.within(s, n.name, func(d *os.File) error { return l.unfinished(d, hex, path, Arriving) })
		case n.name == deletedDir:
			return l.within(s, n.name, func(d *os.File) error { return l.unfinished(d, hex, path, Deleting) })
		case n.name == stagingDir:
			return nil
		}
		return l.prefix(s, n, hex, path, "")
	})
}

// unfinished reports the folders in the proxy's own directories. Copies of files there do not
// count.
func (l *lister) unfinished(d *os.File, hex, path string, place Place) error {
	return l.each(d, path, func(n entryName) error {
		if !isHex(n.name, 32) {
			return nil
		}
		return l.report(Found{place, hex, n.name, path + "/" + n.name})
	})
}

// prefix lists "ab" and "ab/cd" for the rest of a folder's name.
func (l *lister) prefix(d *os.File, n entryName, hex, path, before string) error {
	want := 2
	if len(before) == 4 {
		want = 28
	}
	if n.kind != unix.DT_DIR || !isHex(n.name, want) {
		return l.report(Found{Unknown, hex, "", path})
	}
	name := before + n.name
	if len(name) == 32 {
		return l.report(Found{Present, hex, name, path})
	}
	return l.within(d, n.name, func(sub *os.File) error {
		return l.each(sub, path, func(n entryName) error { return l.prefix(sub, n, hex, path+"/"+n.name, name) })
	})
}

func isHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}

// UUID returns an id in its usual spelling; other text is returned unchanged.
func UUID(hex string) string {
	if id, err := uuid.Parse(hex); err == nil {
		return id.String()
	}
	return hex
}
