package transfer

import (
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"syscall"

	"github.com/berthhq/berth/internal/filehttp"
	"github.com/berthhq/berth/internal/ticket"
)

// download serves one file, with ranges, conditions and HEAD as net/http supports them, and
// the bytes by sendfile(2).
func (s *Server) download(w http.ResponseWriter, r *http.Request) error {
	c, err := s.claims(w, r, ticket.Download)
	if err != nil {
		return err
	}
	folder, err := s.folder(c)
	if err != nil {
		return err
	}
	defer folder.Close()
	file, err := folder.Open(c.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("stat file: %w", err)
	}
	name := path.Base(c.Path)
	h := w.Header()
	filehttp.Guard(h, name)
	h.Set("ETag", etag(info))
	h.Set("Content-Type", filehttp.ContentType(name))
	http.ServeContent(w, r, "", info.ModTime(), file)
	return nil
}

// etag returns an entity tag that changes when the file is replaced or written to.
func etag(info fs.FileInfo) string {
	st := info.Sys().(*syscall.Stat_t)
	// The client sets the modification time; the kernel sets the change time.
	return fmt.Sprintf(`"%x-%x-%x-%x"`, st.Ino, info.Size(), info.ModTime().UnixNano(), st.Ctim.Nano())
}
