package files

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berthhq/berth/internal/containerfile"
)

const (
	maxDepth = 512  // of the directories of an archive
	maxLeft  = 1000 // lines of the list of left out entries
	// leftOut is the name of that list. Letters are added in front if a file has the name.
	leftOut = "LEFT-OUT.txt"
)

// packer writes one format. add returns the writer of a file's content, or nil.
type packer interface {
	add(name string, info fs.FileInfo, target string) (io.Writer, error)
	Close() error
}

// archive sends a directory while reading it, with constant memory.
func (s *server) archive(q containerfile.Request) error {
	root := s.abs(q.Path)
	p, err := newPacker(q.Format, s.conn)
	if err == nil {
		err = checkRoot(root)
	}
	if err != nil {
		return s.conn.Send(containerfile.Answer{Failure: failureOf(err)})
	}
	if err := s.conn.Send(containerfile.Answer{}); err != nil {
		return err
	}
	w := &walk{packer: p, links: q.Format == "tar", buf: make([]byte, containerfile.MaxData)}
	err = w.directory(root, "", 1)
	if err == nil {
		err = w.addList()
	}
	if err == nil {
		err = p.Close()
	}
	if err != nil { // sent in place of the end, so that a partial archive never looks complete
		return s.conn.Send(containerfile.Answer{Failure: failureOf(err)})
	}
	return s.conn.CloseWrite()
}

func checkRoot(root string) error {
	info, err := os.Stat(root)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fail(containerfile.Precondition, "%s is not a directory", quote(root))
	case virtual(root):
		return fail(containerfile.Precondition, "%s is a file system of the kernel, which cannot be downloaded as a whole", quote(root))
	}
	d, err := os.Open(root)
	if err != nil {
		return err
	}
	return d.Close()
}

// virtual reports whether a directory is on a virtual file system of the kernel, some of whose
// files never end.
func virtual(path string) bool {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEVPTS_SUPER_MAGIC,
		unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.BPF_FS_MAGIC, unix.SECURITYFS_MAGIC:
		return true
	}
	return false
}

// walk packs a tree.
type walk struct {
	packer
	links   bool // include links
	buf     []byte
	left    []string
	omitted int
	name    string // path of the list of skipped entries
}

// skip records an entry that is not in the archive.
func (w *walk) skip(name, why string) {
	if len(w.left) == maxLeft {
		w.omitted++
		return
	}
	w.left = append(w.left, strings.ToValidUTF8(name, "\ufffd")+": "+why)
}

// directory packs the contents of a directory. name is its path in the archive, with a final slash.
func (w *walk) directory(path, name string, depth int) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		w.skip(name, reason(err))
		return nil
	}
	for _, e := range entries {
		at, inside := filepath.Join(path, e.Name()), name+e.Name()
		for inside == cmp.Or(w.name, leftOut) {
			w.name = "BERTH-" + cmp.Or(w.name, leftOut)
		}
		info, err := e.Info()
		if err != nil {
			continue // it has just been removed
		}
		switch {
		case info.IsDir() && depth == maxDepth:
			w.skip(inside, fmt.Sprintf("more than %d levels deep", maxDepth))
		case info.IsDir() && virtual(at):
			w.skip(inside, "a file system of the kernel")
		case info.IsDir():
			if _, err = w.add(inside+"/", info, ""); err == nil {
				err = w.directory(at, inside+"/", depth+1)
			}
		case info.Mode().IsRegular():
			err = w.file(at, inside)
		case info.Mode()&fs.ModeSymlink != 0 && w.links:
			target, _ := os.Readlink(at)
			_, err = w.add(inside, info, target)
		case info.Mode()&fs.ModeSymlink != 0:
			w.skip(inside, "a link")
		default:
			w.skip(inside, "a device, a socket or a pipe")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file packs a file with its current size.
func (w *walk) file(path, name string) error {
	f, info, err := openFile(path)
	if err != nil {
		w.skip(name, reason(err))
		return nil
	}
	defer f.Close()
	out, err := w.add(name, info, "")
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{io.LimitReader(f, info.Size())}, w.buf)
	if err != nil {
		return err
	}
	if n < info.Size() {
		return fail(containerfile.Precondition, "%s became shorter while it was read", quote(path))
	}
	return nil
}

func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// addList adds the list of skipped entries.
func (w *walk) addList() error {
	if len(w.left) == 0 {
		return nil
	}
	text := "These entries are not in the archive:\n\n" + strings.Join(w.left, "\n") + "\n"
	if w.omitted > 0 {
		text += fmt.Sprintf("and %d more\n", w.omitted)
	}
	out, err := w.add(cmp.Or(w.name, leftOut), listing(len(text)), "")
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// listing is the size of the list, which exists only in the archive.
type listing int64

func (l listing) Name() string       { return leftOut }
func (l listing) Size() int64        { return int64(l) }
func (l listing) Mode() fs.FileMode  { return 0o644 }
func (l listing) ModTime() time.Time { return time.Now() }
func (l listing) IsDir() bool        { return false }
func (l listing) Sys() any           { return nil }

func newPacker(format string, out io.Writer) (packer, error) {
	switch format {
	case "zip":
		z := zip.NewWriter(out)
		var shared *flate.Writer // one compressor for all files: a new one costs more than a small file
		z.RegisterCompressor(zip.Deflate, func(w io.Writer) (_ io.WriteCloser, err error) {
			if shared == nil {
				shared, err = flate.NewWriter(w, flate.BestSpeed)
				return shared, err
			}
			shared.Reset(w)
			return shared, nil
		})
		return zipPacker{z}, nil
	case "tar":
		return tarPacker{tar.NewWriter(out)}, nil
	}
	return nil, fail(containerfile.Invalid, "the format %.20q is neither zip nor tar", format)
}

type zipPacker struct{ *zip.Writer }

func (z zipPacker) add(name string, info fs.FileInfo, _ string) (io.Writer, error) {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: info.ModTime()}
	h.SetMode(info.Mode())
	if info.IsDir() || packed[strings.ToLower(filepath.Ext(name))] {
		h.Method = zip.Store
	}
	return z.CreateHeader(h)
}

// packed are the endings of formats that are already compressed.
var packed = func() map[string]bool {
	out := map[string]bool{}
	for _, e := range strings.Fields(".zip .gz .tgz .bz2 .xz .zst .7z .jpg .jpeg .png .webp .mp3 .mp4 .mkv .whl .jar .npz .parquet .safetensors .pdf .docx .xlsx .pptx") {
		out[e] = true
	}
	return out
}()

type tarPacker struct{ *tar.Writer }

func (t tarPacker) add(name string, info fs.FileInfo, target string) (io.Writer, error) {
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime().Truncate(time.Second), Typeflag: tar.TypeReg, Size: info.Size()}
	switch {
	case info.IsDir():
		h.Typeflag, h.Size = tar.TypeDir, 0
	case target != "":
		h.Typeflag, h.Size, h.Linkname = tar.TypeSymlink, 0, target
	}
	return t.Writer, t.WriteHeader(h)
}
