package view

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/net/webdav"

	"github.com/berthhq/berth/storage/volume"
)

// maxProperties limits the body of a PROPFIND.
const maxProperties = 1 << 20

// Properties that package webdav does not support.
var (
	quotaAvailable = xml.Name{Space: "DAV:", Local: "quota-available-bytes"}
	quotaUsed      = xml.Name{Space: "DAV:", Local: "quota-used-bytes"}
)

// windows is the namespace of the properties that Windows Explorer sets after it has copied a file,
// in one request that must succeed as a whole. The modification time is stored; the other
// properties are accepted and dropped.
const windows = "urn:schemas-microsoft-com:"

// asked records whether a PROPFIND requests quotas: they cost more than the other properties,
// and "allprop" does not include them (RFC 4331, 3).
func (x *request) asked(r *http.Request) error {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxProperties+1))
	if err != nil {
		return fmt.Errorf("read properties: %w: %w", err, errdefs.ErrInvalidArgument)
	}
	if len(raw) > maxProperties {
		return fmt.Errorf("properties: more than %d bytes: %w", maxProperties, errdefs.ErrInvalidArgument)
	}
	x.quota = bytes.Contains(raw, []byte("quota-"))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return nil
}

// room is the cached space of a folder.
type room struct {
	volume.Space
	known bool
}

// DeadProps returns the properties of a directory that package webdav does not support.
func (f *reading) DeadProps() (map[xml.Name]webdav.Property, error) {
	if !f.fs.r.quota || !f.info.dir {
		return nil, nil
	}
	space, known, err := f.fs.r.space(f)
	if err != nil || !known {
		return nil, err
	}
	property := func(name xml.Name, n int64) webdav.Property {
		return webdav.Property{XMLName: name, InnerXML: strconv.AppendInt(nil, n, 10)}
	}
	return map[xml.Name]webdav.Property{
		quotaAvailable: property(quotaAvailable, space.Left),
		quotaUsed:      property(quotaUsed, space.Used),
	}, nil
}

// space returns the space of a directory. It is queried once per folder and request.
func (x *request) space(f *reading) (volume.Space, bool, error) {
	at, err := x.t.find(f.ctx, f.name)
	if err != nil {
		return volume.Space{}, false, f.fs.davError(err)
	}
	key := f.name
	if at.folder != nil {
		key = at.folder.ref.Folder
	}
	if r := x.rooms[key]; r != nil {
		return r.Space, r.known, nil
	}
	space, known, err := x.t.space(f.ctx, f.name)
	if err != nil {
		return space, false, f.fs.davError(err)
	}
	if x.rooms == nil {
		x.rooms = map[string]*room{}
	}
	x.rooms[key] = &room{space, known}
	return space, known, nil
}

// Patch sets the modification time, and refuses other properties.
func (f *reading) Patch(patches []webdav.Proppatch) ([]webdav.Propstat, error) {
	var set volume.Attributes
	good, bad := webdav.Propstat{Status: http.StatusOK}, webdav.Propstat{Status: http.StatusForbidden}
	for _, patch := range patches {
		for _, p := range patch.Props {
			ok := !patch.Remove && p.XMLName.Space == windows
			switch p.XMLName.Local {
			case "Win32LastModifiedTime":
				at, err := http.ParseTime(string(p.InnerXML))
				ok = ok && err == nil && plausible(at)
				set.Modified = &at
			case "Win32CreationTime", "Win32LastAccessTime", "Win32FileAttributes":
			default:
				ok = false
			}
			if ok {
				good.Props = append(good.Props, p)
			} else {
				bad.Props = append(bad.Props, p)
			}
		}
	}
	if len(bad.Props) > 0 {
		if len(good.Props) == 0 {
			return []webdav.Propstat{bad}, nil
		}
		good.Status = webdav.StatusFailedDependency
		return []webdav.Propstat{bad, good}, nil
	}
	if set.Modified != nil {
		if err := f.fs.t.set(f.ctx, f.name, set); err != nil {
			return nil, f.fs.davError(err)
		}
	}
	return []webdav.Propstat{good}, nil
}

// modified returns the modification time that a client sends for a file, in seconds since
// 1970, or nil without one.
func modified(h http.Header) (*time.Time, error) {
	const header = "X-OC-Mtime"
	text := strings.TrimSpace(h.Get(header))
	if text == "" {
		return nil, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if at := time.UnixMicro(int64(seconds * 1e6)); err == nil && seconds >= 0 && seconds < 1e10 && plausible(at) {
		return &at, nil
	}
	return nil, fmt.Errorf("header %s: %.80q is not a number of seconds since 1970: %w", header, text, errdefs.ErrInvalidArgument)
}

// plausible reports whether file systems can store a time, and whether a client can mean it.
func plausible(at time.Time) bool { return at.Unix() >= 0 && at.Year() < 2200 }
