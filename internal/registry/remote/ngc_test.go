package remote

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestImageOfNGC reads an image with the shape of those of NVIDIA NGC, with the login $oauthtoken: a list of manifests
// of Docker for two architectures, and a configuration with an entry point, labels and many variables.
func TestImageOfNGC(t *testing.T) {
	t.Parallel()
	read := func(name string) []byte {
		b, err := os.ReadFile("testdata/ngc/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	cfg := read("config")
	manifest := []byte(strings.NewReplacer("CONFIG_DIGEST", sum(cfg), `"CONFIG_SIZE"`, fmt.Sprint(len(cfg))).Replace(string(read("manifest"))))
	list := []byte(strings.NewReplacer("MANIFEST_DIGEST", sum(manifest), `"MANIFEST_SIZE"`, fmt.Sprint(len(manifest))).Replace(string(read("list"))))
	send := func(rw http.ResponseWriter, kind string, body []byte) {
		rw.Header().Set("Content-Type", kind)
		rw.Header().Set(digestHeader, sum(body))
		_, _ = rw.Write(body)
	}
	w := newWorld(t, map[string]http.Handler{"nvcr.io": http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		user, key, _ := r.BasicAuth()
		switch path := r.URL.Path; {
		case path == "/proxy_auth" && user == "$oauthtoken" && key == "nvapi-1":
			_ = json.NewEncoder(rw).Encode(map[string]string{"token": "t-" + r.URL.Query().Get("scope")})
		case path == "/proxy_auth":
			rw.WriteHeader(http.StatusUnauthorized)
		case r.Header.Get("Authorization") != "Bearer t-repository:nvidia/pytorch:pull":
			rw.Header().Set("WWW-Authenticate", `Bearer realm="https://nvcr.io/proxy_auth",scope="repository:nvidia/pytorch:pull"`)
			rw.WriteHeader(http.StatusUnauthorized)
		case path == "/v2/nvidia/pytorch/manifests/24.10-py3":
			send(rw, dockerList, list)
		case path == "/v2/nvidia/pytorch/manifests/"+sum(manifest):
			send(rw, dockerImage, manifest)
		case path == "/v2/nvidia/pytorch/blobs/"+sum(cfg):
			_, _ = rw.Write(cfg)
		default:
			http.NotFound(rw, r)
		}
	})})
	got, err := w.client(t, "nvcr.io", "$oauthtoken", "nvapi-1").Inspect(t.Context(), "nvidia/pytorch:24.10-py3")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Images) != 1 || got.Digest != sum(list) {
		t.Fatalf("the images are %+v", got)
	}
	i := got.Images[0]
	if i.Digest != sum(manifest) || i.Architecture != "amd64" || i.Labels["com.nvidia.cuda.version"] != "9.0" || len(i.Layers) != 3 || i.Size != int64(len(cfg))+28584217+4682+1987654321 {
		t.Errorf("the image is %+v", i)
	}
	env := strings.Join(i.Environment, "\n")
	for _, want := range []string{"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility,video", "NVIDIA_PRODUCT_NAME=PyTorch"} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
}
