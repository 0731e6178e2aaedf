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

	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/ticket"
	"github.com/berthhq/berth/storage/volume"
)

// archive streams a directory as zip or tar.zst at constant memory. Links,
// FIFOs, sockets and devices are left out, and so are directories that are too deep,
// which a file in the archive names; what changes meanwhile is taken as it is found.
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
	guard(w.Header(), name+"."+format)
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
		err = deep.tell(pack)
	}
	if err != nil {
		return err // not closed: the end would make it look whole
	}
	return pack.Close()
}

const (
	// leftOut is the name of the file in an archive that lists what is not there, after
	// more letters where a file has that name.
	leftOut = "LEFT-OUT.txt"
	// maxLeftOut bounds the list.
	maxLeftOut = 1000
)

// tooDeep gathers the directories that an archive leaves out.
type tooDeep struct {
	paths []string
	more  int
	name  string
}

func (d *tooDeep) add(path string) {
	if len(d.paths) == maxLeftOut {
		d.more++
		return
	}
	d.paths = append(d.paths, path)
}

// seen keeps the name of the list apart from those of files.
func (d *tooDeep) seen(path string) {
	for path == cmp.Or(d.name, leftOut) {
		d.name = "BERTH-" + cmp.Or(d.name, leftOut)
	}
}

// tell adds the list to the archive, where there is something to list.
func (d *tooDeep) tell(p packer) error {
	if len(d.paths) == 0 {
		return nil
	}
	text := fmt.Sprintf("Directories that are more than %d levels deep are not in this archive:\n\n%s\n", folderpath.MaxDepth, strings.Join(d.paths, "\n"))
	if d.more > 0 {
		text += fmt.Sprintf("and %d more\n", d.more)
	}
	w, err := p.Add(cmp.Or(d.name, leftOut), listing{size: int64(len(text)), at: time.Now()})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// listing describes a file that is on no disk.
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

// packer writes one archive.
type packer interface {
	// Add begins an entry and returns where its bytes go.
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
	// Never more than the header said, also of a file that grows.
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

// deflater is the compressor of one archive: to make one costs far more than to compress
// a small file. Entries come one after the other.
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

// compressed are the kinds of files that do not get smaller.
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
