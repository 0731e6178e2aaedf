package images

import (
	"archive/tar"
	"bytes"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// entrypoint is like that of the images of NVIDIA NGC: it prints the texts of a directory, adds variables, and runs the
// command.
const entrypoint = `#!/bin/sh
for text in /opt/nvidia/entrypoint.d/*.txt; do cat "$text"; done
export NVIDIA_ENTRYPOINT=ran
if [ $# -gt 0 ]; then exec "$@"; fi
exec /bin/sh
`

// ngc is a stand-in for an image of NGC: its entry point, labels and variables on the minimal image, which is busybox of
// Debian.
func ngc(t *testing.T) v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(filepath.Join("..", "..", "build", "images", "minimal"))
	if err != nil {
		t.Skipf("%v (make images)", err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	img, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(files(map[string]string{
		"opt/nvidia/nvidia_entrypoint.sh":          entrypoint,
		"opt/nvidia/entrypoint.d/10-banner.txt":    "== PyTorch ==\n",
		"usr/local/bin/nvidia-smi-of-this-image":   "#!/bin/sh\necho smi\n",
		"workspace/README.md":                      "examples\n",
		"etc/ld.so.conf.d/nvidia-of-this-img.conf": "/usr/local/nvidia/lib64\n",
	}))
	if err == nil {
		img, err = mutate.AppendLayers(img, layer)
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	cfg := file.Config
	cfg.Entrypoint, cfg.Cmd, cfg.WorkingDir = []string{"/opt/nvidia/nvidia_entrypoint.sh"}, nil, "/workspace"
	cfg.Labels = map[string]string{
		"com.nvidia.build.id": "114410972", "com.nvidia.build.ref": "cb6d2b2c", "com.nvidia.cublas.version": "12.6.3.3",
		"com.nvidia.cuda.version": "9.0", "com.nvidia.cudnn.version": "9.5.0.50", "com.nvidia.nccl.version": "2.22.3",
		"com.nvidia.volumes.needed": "nvidia_driver", "org.opencontainers.image.ref.name": "ubuntu", "org.opencontainers.image.version": "22.04",
	}
	cfg.Env = append(cfg.Env, "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility,video", "NVIDIA_REQUIRE_CUDA=cuda>=9.0",
		"NVIDIA_PRODUCT_NAME=PyTorch", "CUDA_VERSION=12.6.2.004", "LD_LIBRARY_PATH=/usr/local/cuda/compat/lib:/usr/local/nvidia/lib64", "ENV=/etc/shinit_v2")
	img, err = mutate.Config(img, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// files returns a tar archive with programs.
func files(contents map[string]string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, name := range slices.Sorted(maps.Keys(contents)) { // the same at each call
			text := contents[name]
			if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
				return nil, err
			}
			if _, err := io.WriteString(w, text); err != nil {
				return nil, err
			}
		}
		return io.NopCloser(&b), w.Close()
	}
}

// An image of NGC runs as it is: a command runs in its entry point with its variables, terminals and commands of people
// work beside it, and its NVIDIA_VISIBLE_DEVICES=all gives a session no device.
func TestImagesOfNGCRunAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = path.AppendImage(ngc(t), layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "nvidia/pytorch:24.10-py3"}))
	}
	if err != nil {
		t.Fatal(err)
	}
	platform.OfferLayout(t, dir)
	cluster.Eventually(t, "the image is registered", func() bool {
		_, err := platform.Admin(t).ImageByName(t.Context(), "nvidia/pytorch:24.10-py3")
		return err == nil
	})
	u := platform.User(t)
	t.Cleanup(func() { end(t, u) })
	berth := u.Shell()
	in := client.CreateSessionInput{Image: "nvidia/pytorch:24.10-py3", Slots: cluster.Slots("cpu", "0.05", "mem", "32m")}
	in.Command = []string{"/bin/sh", "-c", "echo $NVIDIA_ENTRYPOINT $NVIDIA_PRODUCT_NAME $CUDA_VERSION; ls /dev/nvidia* 2>/dev/null; sleep 600"}
	s := u.Run(in)
	u.Until(s.ID, "RUNNING")
	cluster.Eventually(t, "the command has run", func() bool { return strings.Contains(berth.Must("session", "logs", s.ID), "12.6.2.004") })
	if out, want := berth.Must("session", "logs", s.ID), "== PyTorch ==\nran PyTorch 12.6.2.004\n"; out != want {
		t.Errorf("the log is %q, want %q", out, want)
	}
	out, code := u.Exec(s.ID, "echo $NVIDIA_PRODUCT_NAME $LD_LIBRARY_PATH; cat /workspace/README.md; ls /opt/berth")
	if code != 0 || !strings.HasPrefix(out, "PyTorch /usr/local/cuda/compat/lib:/usr/local/nvidia/lib64\nexamples\n") {
		t.Errorf("a command beside it: %d, %q", code, out)
	}
	in.Command = nil // only the platform's own runner
	idle := u.Run(in)
	u.Until(idle.ID, "RUNNING")
	if out, code := u.Exec(idle.ID, "echo $NVIDIA_DRIVER_CAPABILITIES; pwd"); code != 0 || out != "compute,utility,video\n/home/work\n" {
		t.Errorf("a session without a command: %d, %q", code, out)
	}
	image, err := u.ImageByName(t.Context(), "nvidia/pytorch:24.10-py3")
	if err != nil || image.Labels["com.nvidia.cuda.version"] != "9.0" {
		t.Errorf("the image is %+v, %v", image, err)
	}
}
