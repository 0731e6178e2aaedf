package transfer

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zip"
	"github.com/klauspost/compress/zstd"

	"github.com/berthhq/berth/internal/filehttp"
	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/volume"
)

// archive streams a directory as zip or tar.zst with constant memory. It leaves out links, FIFOs,
// sockets, devices and directories that are too deep; a file in the archive lists these
// directories. Files that change during the transfer are archived as they are read.
func (s *Server) archive(w http.ResponseWriter, r *http.Request) error {
	c, err := s.claims(w, r, ticket.Archive)
	if err != nil {
		return err
	}
	format := r.URL.Query().Get("format")
	if format == "" {
		format = "zip"
	}
	kind, ok := formats[format]
	if !ok {
		return problem.Invalid("format", "%q is neither zip nor tar.zst", format)
	}
	folder, err := s.folder(c)
	if err != nil {
		return err
	}
	defer folder.Close()
	dir, err := folder.OpenDir(c.Path)
	if err != nil {
		return err
	}
	name := path.Base(c.Path)
	if c.Path == "" || name == "." {
		name = "folder-" + c.Folder
	}
	filehttp.Guard(w.Header(), name+"."+format)
	w.Header().Set("Content-Type", kind.contentType)
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return dir.Close()
	}
	pack, err := kind.open(w)
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	deep := &tooDeep{}
	err = volume.Walk(r.Context(), dir, func(n volume.Node) error {
		deep.seen(n.Path)
		return add(r.Context(), pack, n)
	}, deep.add)
	if err == nil {
		err = deep.addList(pack)
	}
	if err != nil {
		return err // the archive is not closed: with an end mark, it would look complete
	}
	return pack.Close()
}

const (
	// leftOut is the name of the file in an archive that lists the directories that were left
	// out. Letters are added in front if a file already has the name.
	leftOut = "LEFT-OUT.txt"
	// maxLeftOut limits the length of that list.
	maxLeftOut = 1000
)

// tooDeep collects the directories that an archive leaves out.
type tooDeep struct {
	paths   []string
	omitted int
	name    string
}

func (d *tooDeep) add(path string) {
	if len(d.paths) == maxLeftOut {
		d.omitted++
		return
	}
	d.paths = append(d.paths, path)
}

// seen records a path of the archive, so that the name of the list differs from it.
func (d *tooDeep) seen(path string) {
	for path == cmp.Or(d.name, leftOut) {
		d.name = "BERTH-" + cmp.Or(d.name, leftOut)
	}
}

// addList adds the list to the archive if a directory was left out.
func (d *tooDeep) addList(p packer) error {
	if len(d.paths) == 0 {
		return nil
	}
	text := fmt.Sprintf("Directories that are more than %d levels deep are not in this archive:\n\n%s\n", folderpath.MaxDepth, strings.Join(d.paths, "\n"))
	if d.omitted > 0 {
		text += fmt.Sprintf("and %d more\n", d.omitted)
	}
	w, err := p.Add(cmp.Or(d.name, leftOut), listing{size: int64(len(text)), at: time.Now()})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// listing is the os.FileInfo of a file that exists only in the archive.
type listing struct {
	size int64
	at   time.Time
}

func (l listing) Name() string       { return leftOut }
func (l listing) Size() int64        { return l.size }
func (l listing) Mode() os.FileMode  { return 0o644 }
func (l listing) ModTime() time.Time { return l.at }
func (l listing) IsDir() bool        { return false }
func (l listing) Sys() any           { return nil }

// packer writes one archive format.
type packer interface {
	// Add begins an entry and returns the writer of its contents.
	Add(name string, info os.FileInfo) (io.Writer, error)
	Close() error
}

var formats = map[string]struct {
	contentType string
	open        func(io.Writer) (packer, error)
}{
	"zip":     {"application/zip", newZip},
	"tar.zst": {"application/zstd", newTar},
}

func add(ctx context.Context, p packer, n volume.Node) error {
	if n.File == nil {
		_, err := p.Add(n.Path+"/", n.Info)
		return err
	}
	w, err := p.Add(n.Path, n.Info)
	if err != nil {
		return err
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	// A file that grows must not exceed the size in the header.
	src := io.LimitReader(n.File, n.Info.Size())
	written, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{src}, *buf)
	if err != nil {
		return err
	}
	if written < n.Info.Size() && tarred(p) {
		return fmt.Errorf("%q shrank while it was read", n.Path)
	}
	return ctx.Err()
}

func tarred(p packer) bool { _, ok := p.(*tarPacker); return ok }

type zipPacker struct{ *zip.Writer }

// deflater is the compressor of one archive. Creating one costs far more than compressing a
// small file, and entries are written one after the other, so all entries share it.
type deflater struct{ *flate.Writer }

func (d *deflater) begin(w io.Writer) (_ io.WriteCloser, err error) {
	if d.Writer == nil {
		d.Writer, err = flate.NewWriter(w, flate.BestSpeed) // eight times as fast as the default
		return d, err
	}
	d.Reset(w)
	return d, nil
}

func newZip(w io.Writer) (packer, error) {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, (&deflater{}).begin)
	return zipPacker{z}, nil
}

func (z zipPacker) Add(name string, info os.FileInfo) (io.Writer, error) {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: info.ModTime()}
	h.SetMode(info.Mode())
	if info.IsDir() || compressed[strings.ToLower(path.Ext(name))] {
		h.Method = zip.Store
	}
	return z.CreateHeader(h)
}

// compressed are the file name extensions of formats that are already compressed.
var compressed = func() map[string]bool {
	out := make(map[string]bool)
	for _, e := range strings.Fields(".zip .gz .tgz .bz2 .xz .zst .7z .rar .jpg .jpeg .png .gif .webp .mp3 .mp4 .m4a .mkv .webm .avi .mov .whl .jar .npz .parquet .safetensors .pdf .docx .xlsx .pptx") {
		out[e] = true
	}
	return out
}()

type tarPacker struct {
	*tar.Writer
	zstd *zstd.Encoder
}

func newTar(w io.Writer) (packer, error) {
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, fmt.Errorf("open zstd: %w", err)
	}
	return &tarPacker{tar.NewWriter(z), z}, nil
}

func (t *tarPacker) Add(name string, info os.FileInfo) (io.Writer, error) {
	h := &tar.Header{
		Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime().Truncate(time.Second),
		Typeflag: tar.TypeReg, Size: info.Size(),
	}
	if info.IsDir() {
		h.Typeflag, h.Size = tar.TypeDir, 0
	}
	return t.Writer, t.WriteHeader(h)
}

func (t *tarPacker) Close() error { return errors.Join(t.Writer.Close(), t.zstd.Close()) }
