package transfer

import (
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/berthhq/berth/internal/problem"
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
	guard(h, name)
	h.Set("ETag", etag(info))
	h.Set("Content-Type", contentType(name))
	http.ServeContent(w, r, "", info.ModTime(), file)
	return nil
}

// guard makes a browser save the answer instead of showing it, because a folder can contain
// any file, including pages with scripts.
func guard(h http.Header, name string) {
	h.Set("Content-Disposition", disposition(name))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Cross-Origin-Resource-Policy", "same-site")
	h.Set("Referrer-Policy", "no-referrer") // the address can contain a ticket
}

// etag returns an entity tag that changes when the file is replaced or written to.
func etag(info fs.FileInfo) string {
	st := info.Sys().(*syscall.Stat_t)
	// The client sets the modification time; the kernel sets the change time.
	return fmt.Sprintf(`"%x-%x-%x-%x"`, st.Ino, info.Size(), info.ModTime().UnixNano(), st.Ctim.Nano())
}

func contentType(name string) string {
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// disposition returns a Content-Disposition with two names: one in ASCII for old clients, one
// by RFC 5987.
func disposition(name string) string {
	if !utf8.ValidString(name) {
		name = strings.ToValidUTF8(name, "_")
	}
	ascii := strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, name)
	exact := strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
	return `attachment; filename="` + ascii + `"; filename*=UTF-8''` + exact
}

// maxRanges is more than any known client requests at once. An answer to many ranges costs the
// server far more than the request costs the client.
const maxRanges = 16

// checkRanges rejects a request for too many parts of a file. It also rejects a request for
// the last zero bytes, which net/http answers with a part that ends before it begins.
func checkRanges(r *http.Request) error {
	// Units that a server does not know are ignored (RFC 9110, 14.2).
	if unit, _, _ := strings.Cut(r.Header.Get("Range"), "="); !strings.EqualFold(strings.TrimSpace(unit), "bytes") {
		r.Header.Del("Range")
	}
	n := 0
	for _, h := range r.Header.Values("Range") {
		_, list, _ := strings.Cut(h, "=")
		for part := range strings.SplitSeq(list, ",") {
			n++
			if part = strings.TrimSpace(part); len(part) > 1 && strings.TrimRight(part, "0") == "-" {
				return badRange("the last 0 bytes are none")
			}
		}
	}
	if n > maxRanges {
		return badRange("has %d parts, at most %d are allowed", n, maxRanges).WithLimit(strconv.Itoa(maxRanges))
	}
	return nil
}

func badRange(format string, args ...any) *problem.Error {
	return problem.Invalid("Range", format, args...).WithStatus(http.StatusRequestedRangeNotSatisfiable)
}
