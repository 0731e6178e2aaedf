package files

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/containerfile"
)

// list returns a page of a directory. Only the names of the whole directory are in memory, and only
// the entries of the page are examined.
func (s *server) list(q containerfile.Request) (*containerfile.Listing, error) {
	path := s.abs(q.Path)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fail(containerfile.Precondition, "%s is not a directory", quote(path))
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	after, err := hex.DecodeString(q.After)
	if err != nil {
		return nil, fail(containerfile.Invalid, "the cursor is not valid")
	}
	from, found := slices.BinarySearch(names, string(after))
	if found {
		from++
	}
	first := q.First
	if first < 1 || first > containerfile.MaxFirst {
		first = containerfile.MaxFirst
	}
	l := &containerfile.Listing{Path: path, Home: s.home, Entries: []containerfile.Info{}}
	for i, name := range names[from:] {
		if i == first {
			l.Next = hex.EncodeToString([]byte(names[from+i-1])) // names are not always UTF-8
			break
		}
		at := filepath.Join(path, name)
		info, err := os.Lstat(at)
		if err != nil {
			continue // it has just been removed
		}
		l.Entries = append(l.Entries, describe(at, info))
	}
	return l, nil
}

// describe returns an entry as clients see it.
func describe(path string, info fs.FileInfo) containerfile.Info {
	e := containerfile.Info{
		Name: filepath.Base(path), Path: path, Type: typeOf(info.Mode()), Mode: modeOf(info), Modified: info.ModTime().UnixMilli(),
	}
	switch e.Type {
	case containerfile.File:
		e.Size = info.Size()
	case containerfile.Symlink:
		e.Target, _ = os.Readlink(path) // "" if the link has just been replaced
		if to, err := os.Stat(path); err == nil {
			e.TargetType = typeOf(to.Mode())
		}
	}
	return e
}

func typeOf(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return containerfile.File
	case m.IsDir():
		return containerfile.Directory
	case m&fs.ModeSymlink != 0:
		return containerfile.Symlink
	}
	return containerfile.Other
}

// modeOf formats the mode like ls.
func modeOf(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Mode().String()
	}
	kinds := map[uint32]byte{unix.S_IFREG: '-', unix.S_IFDIR: 'd', unix.S_IFLNK: 'l', unix.S_IFIFO: 'p', unix.S_IFSOCK: 's', unix.S_IFCHR: 'c', unix.S_IFBLK: 'b'}
	text := []byte("?rwxrwxrwx")
	if k, ok := kinds[st.Mode&unix.S_IFMT]; ok {
		text[0] = k
	}
	for i := range 9 {
		if st.Mode&(1<<(8-i)) == 0 {
			text[i+1] = '-'
		}
	}
	for _, special := range []struct {
		bit uint32
		at  int
		set byte
	}{{unix.S_ISUID, 3, 's'}, {unix.S_ISGID, 6, 's'}, {unix.S_ISVTX, 9, 't'}} {
		if st.Mode&special.bit == 0 {
			continue
		}
		if text[special.at] == '-' {
			special.set -= 'a' - 'A'
		}
		text[special.at] = special.set
	}
	return string(text)
}

// tag returns a text that changes when the file is replaced or modified.
func tag(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%x-%x-%x-%x", st.Ino, info.Size(), info.ModTime().UnixNano(), st.Ctim.Nano())
}
