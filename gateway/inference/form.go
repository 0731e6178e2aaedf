package inference

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"
)

const (
	// maxParts limits the fields of a form.
	maxParts = 64
	// maxField limits the value of a field that the router reads, in bytes.
	maxField = 1 << 10
)

// readForm reads a form with a file. The form is written again for the engine, part by part, because
// programs differ in how they read one: the name of a part that is in two headers, text before the first boundary,
// encodings of a part.
func readForm(from io.Reader, size int64, contentType, name string) (*body, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return nil, invalid("the body is not a form: Content-Type must be multipart/form-data with a boundary")
	}
	raw, err := readAll(from, size)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(len(raw) + maxField)
	f := form{out: multipart.NewWriter(&out)}
	if err := f.copy(multipart.NewReader(bytes.NewReader(raw), params["boundary"])); err != nil {
		return nil, err
	}
	model, err := modelOf(f.fields["model"], f.has("model"), name)
	if err != nil {
		return nil, err
	}
	if !f.has("model") {
		if err := f.out.WriteField("model", model); err != nil {
			return nil, err
		}
	}
	if err := f.out.Close(); err != nil {
		return nil, err
	}
	return &body{bytes: out.Bytes(), kind: f.out.FormDataContentType(), model: model, stream: strings.EqualFold(f.fields["stream"], "true")}, nil
}

// form is a form on its way to the engine.
type form struct {
	out    *multipart.Writer
	fields map[string]string // those that the router reads
}

func (f *form) has(name string) bool {
	_, is := f.fields[name]
	return is
}

func (f *form) copy(in *multipart.Reader) error {
	f.fields = map[string]string{}
	for n := 0; ; n++ {
		part, err := in.NextRawPart() // without decoding
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return invalid("the body is not a form: %v", err)
		case n == maxParts:
			return invalid("the form has more than %d fields", maxParts)
		}
		if err := f.part(part); err != nil {
			return err
		}
	}
}

func (f *form) part(part *multipart.Part) error {
	name, file := part.FormName(), part.FileName()
	if len(part.Header["Content-Disposition"]) != 1 || !plain(name) {
		return invalid("a field of the form has the name %q, which is not a plain name", name)
	}
	if part.Header.Get("Content-Transfer-Encoding") != "" {
		return invalid("%s has a Content-Transfer-Encoding, which forms do not have", name)
	}
	value, err := io.ReadAll(part)
	if err != nil {
		return invalid("%s ends early: %v", name, err)
	}
	for _, own := range []string{"model", "stream"} {
		if !strings.EqualFold(name, own) {
			continue
		}
		switch {
		case name != own:
			return invalid("the form has %q instead of %q", name, own)
		case f.has(name):
			return invalid("the form has %q twice", name)
		case file != "" || len(value) > maxField:
			return invalid("%s is a file, or longer than %d bytes", name, maxField)
		}
		f.fields[name] = string(value)
	}
	header := textproto.MIMEHeader{}
	if file != "" {
		header.Set("Content-Disposition", multipart.FileContentDisposition(name, file))
		header.Set("Content-Type", fileType(part.Header.Get("Content-Type")))
	} else {
		header.Set("Content-Disposition", `form-data; name="`+name+`"`)
	}
	w, err := f.out.CreatePart(header)
	if err != nil {
		return err
	}
	_, err = w.Write(value)
	return err
}

// plain reports whether all programs read the same name.
func plain(name string) bool {
	const others = "_-.[]"
	for _, r := range name {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(others, r) {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// fileType returns the media type of a file without parameters.
func fileType(header string) string {
	if kind, _, err := mime.ParseMediaType(header); err == nil && strings.Count(kind, "/") == 1 {
		return kind
	}
	return "application/octet-stream"
}
