package storage_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/berthhq/berth/storage/storagetest"
)

// BenchmarkWebDAV uploads and downloads one large file and 500 small ones, one after the other, and
// compares with rclone serve webdav in a process of its own. Berth has every file on disk when it
// answers.
func BenchmarkWebDAV(b *testing.B) {
	rclone, err := exec.LookPath("rclone")
	if err != nil {
		b.Skip("without rclone: ", err)
	}
	h := storagetest.New(b)
	h.Open(b)
	address, dir := freeAddress(b), b.TempDir()
	background(b, "http://"+address, rclone, "serve", "webdav", "--addr", address, "--user", "me", "--pass", "rw", "--config", dir+"/none", dir)
	bases := map[string]string{"berth": h.HTTP.URL + "/storage/dav/mine/data", "rclone": "http://" + address}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	ask := func(method, at string, body []byte, want int) {
		req, err := http.NewRequestWithContext(b.Context(), method, at, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.SetBasicAuth("me", "rw")
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		n, err := io.Copy(struct{ io.Writer }{io.Discard}, resp.Body)
		if err != nil || resp.StatusCode >= 300 || method == "GET" && n != int64(want) {
			b.Fatal(method, resp.Status, n, err)
		}
	}
	for _, load := range []struct {
		name        string
		files, size int
	}{{"256MiB", 1, benchSize}, {"500x16KiB", 500, 16 << 10}} {
		data := storagetest.Random(load.size)
		for _, method := range []string{"PUT", "GET"} {
			var sides []side
			for _, name := range []string{"berth", "rclone"} {
				sides = append(sides, side{name: name, run: func() {
					for i := range load.files {
						body := data
						if method == "GET" {
							body = nil
						}
						ask(method, fmt.Sprintf("%s/%s", bases[name], url.PathEscape(fmt.Sprintf("%s-%d", load.name, i))), body, load.size)
					}
				}})
			}
			b.Run(strings.ToLower(method)+"-"+load.name, func(b *testing.B) { inTurn(b, sides...) })
		}
	}
}
