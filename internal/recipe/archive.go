package recipe

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
)

// MaxUnpacked is the size of the files of a context, which limits archives that grow when they are read.
const MaxUnpacked = 64 << 20

// Entries calls f, if it is not nil, for every entry of a tar archive, compressed with gzip or not.
func Entries(archive []byte, f func(h *tar.Header, content io.Reader) error) error {
	if len(archive) == 0 {
		return nil
	}
	in := bufio.NewReader(bytes.NewReader(archive))
	var r io.Reader = in
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return bad("the context is not a tar archive: %v", err)
		}
		r = z
	}
	limited := &io.LimitedReader{R: r, N: MaxUnpacked}
	for t := tar.NewReader(limited); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) && limited.N > 0 {
			return nil
		}
		if limited.N <= 0 {
			return bad("the context has more than %d bytes when it is unpacked", int64(MaxUnpacked))
		}
		if err != nil {
			return bad("the context is not a tar archive: %v", err)
		}
		if f == nil {
			continue
		}
		if err := f(h, t); err != nil {
			return err
		}
	}
}

// copyArchive copies the entries of an archive.
func copyArchive(w *tar.Writer, archive []byte) error {
	return Entries(archive, func(h *tar.Header, content io.Reader) error {
		if err := w.WriteHeader(h); err != nil {
			return bad("the context: entry %.200q: %v", h.Name, err)
		}
		_, err := io.Copy(w, content)
		return err
	})
}

// File returns the content of a file of an archive, and reports whether it exists.
func File(archive []byte, name string) (text string, found bool, err error) {
	err = Entries(archive, func(h *tar.Header, content io.Reader) error {
		if clean(h.Name) != clean(name) || h.Typeflag != tar.TypeReg {
			return nil
		}
		b, err := io.ReadAll(io.LimitReader(content, maxText+1))
		if len(b) > maxText {
			return bad("%s has more than %d bytes", name, maxText)
		}
		text, found = string(b), true
		return err
	})
	return text, found, err
}
