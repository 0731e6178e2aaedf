package inference

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/modelmock"
)

// formOf returns a form with the parts: their headers, an empty line, and their values.
func formOf(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("--B\r\n" + strings.Replace(p, "\n\n", "\r\n\r\n", 1) + "\r\n")
	}
	return b.String() + "--B--\r\n"
}

func field(name, value string) string {
	return fmt.Sprintf("Content-Disposition: form-data; name=%q\n\n%s", name, value)
}

const sound = "Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\n\nRIFF\x00\xff"

// The engine gets the fields and the file of a form, and no more than the router has read.
func TestForms(t *testing.T) {
	t.Parallel()
	var got map[string][]string
	var path string
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			t.Error(err)
			return
		}
		path, got = r.URL.Path, r.MultipartForm.Value
		for _, f := range r.MultipartForm.File["file"] {
			in, _ := f.Open()
			content, _ := io.ReadAll(in)
			got["file"] = []string{f.Filename, f.Header.Get("Content-Type"), string(content)}
		}
		rw.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(rw, "the words")
	}))
	defer srv.Close()
	w := newWorld(t, 0, modelmock.Config{})
	w.model.Update(Target{ID: "r", Weight: 1, Transport: to(srv.URL)})
	ask := func(path, body string) (int, string) {
		r, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, w.url+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Content-Type", "multipart/form-data; boundary=B")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	const transcriptions = "/v1/audio/transcriptions"
	code, text := ask(transcriptions, formOf(field("model", "mock"), sound, field("g[]", "word"), field("g[]", "segment")))
	if code != http.StatusOK || text != "the words" || path != transcriptions || fmt.Sprint(got) != "map[file:[a.wav audio/wav RIFF\x00\xff] g[]:[word segment] model:[mock]]" {
		t.Errorf("%d %s; the engine gets %s %q", code, text, path, got)
	}
	code, _ = ask("/deployments/mock/v1/audio/translations", formOf(sound))
	if code != http.StatusOK || path != "/v1/audio/translations" || fmt.Sprint(got["model"]) != "[mock]" {
		t.Errorf("%d; the engine gets %s %q", code, path, got)
	}
	got = nil
	for want, body := range map[string]string{
		"twice":             formOf(field("model", "mock"), field("model", "other"), sound),
		"instead of":        formOf(field("Model", "other"), field("model", "mock")),
		"is missing":        formOf(sound),
		"is empty":          formOf(field("model", "")),
		"is a file":         formOf("Content-Disposition: form-data; name=\"model\"; filename=\"x\"\n\nmock"),
		"not a plain name":  formOf(field("model", "mock"), field("mod\u00e9l", "other")),
		"has the name":      formOf(field("model", "mock"), "Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"model\"\n\nother"),
		"Transfer-Encoding": formOf("Content-Disposition: form-data; name=\"model\"\r\nContent-Transfer-Encoding: base64\n\nbW9jaw=="),
		"more than 64":      formOf(strings.Split(strings.Repeat(field("a", "b")+"|", 70), "|")[:70]...),
		"model is missing":  `{"model":"mock"}`,
		"ends early":        strings.TrimSuffix(formOf(field("model", "mock"), sound), "--B--\r\n"),
	} {
		if code, text := ask(transcriptions, body); code != http.StatusBadRequest || !strings.Contains(text, want) || got != nil {
			t.Errorf("%q: %d %s", want, code, text)
		}
	}
	if code, text := w.text(transcriptions, `{"model":"mock"}`); code != http.StatusBadRequest || !strings.Contains(text, "multipart/form-data") {
		t.Errorf("JSON instead of a form: %d %s", code, text)
	}
}

// An accepted form has one model, which the engine and the router read alike, and the same files as before.
func FuzzForm(f *testing.F) {
	f.Add([]byte(formOf(field("model", "mock"), sound)), "multipart/form-data; boundary=B", "")
	f.Add([]byte("preamble\r\n"+formOf(sound, field("stream", "true"))), `multipart/form-data; boundary="B"; charset=x`, "mock")
	f.Add([]byte(formOf("Content-Disposition: form-data; name*=utf-8''mod%65l\n\nother", field("model", "mock"))), "multipart/form-data; boundary=B", "")
	f.Fuzz(func(t *testing.T, raw []byte, kind, name string) {
		b, err := readForm(bytes.NewReader(raw), int64(len(raw)), kind, name)
		if err != nil {
			return
		}
		_, params, err := mime.ParseMediaType(b.kind)
		if err != nil {
			t.Fatalf("the engine gets the type %q: %v", b.kind, err)
		}
		_, before, _ := mime.ParseMediaType(kind)
		models, files, oldFiles := 0, "", ""
		for in := multipart.NewReader(bytes.NewReader(b.bytes), params["boundary"]); ; {
			part, err := in.NextRawPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("the engine gets %q, which is not a form: %v", b.bytes, err)
			}
			value, _ := io.ReadAll(part)
			if strings.EqualFold(part.FormName(), "model") {
				models++
				if string(value) != b.model || part.FileName() != "" {
					t.Fatalf("the engine reads the model %q, the router %q", value, b.model)
				}
			}
			if part.FileName() != "" {
				files += string(value) + "\n"
			}
		}
		for in := multipart.NewReader(bytes.NewReader(raw), before["boundary"]); ; {
			part, err := in.NextRawPart()
			if err != nil {
				break
			}
			if value, _ := io.ReadAll(part); part.FileName() != "" {
				oldFiles += string(value) + "\n"
			}
		}
		if models != 1 || files != oldFiles {
			t.Fatalf("%d models, files %q instead of %q", models, files, oldFiles)
		}
	})
}
