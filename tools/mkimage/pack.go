package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName is the annotation by which an OCI layout names its images.
const refName = "org.opencontainers.image.ref.name"

// pack creates a one-layer image from a root file system and writes it as an OCI layout into dir,
// which must not exist. The same file gives the same image.
func (r Recipe) pack(tarFile, dir string) (v1.Image, error) {
	layer, err := tarball.LayerFromFile(tarFile,
		tarball.WithCompression(compression.ZStd), tarball.WithMediaType(types.OCILayerZStd))
	if err != nil {
		return nil, fmt.Errorf("pack layer: %w", err)
	}
	labels, err := r.labels()
	if err != nil {
		return nil, err
	}
	date := v1.Time{Time: r.date}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		Architecture: runtime.GOARCH,
		OS:           "linux",
		Created:      date,
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Env: r.env(), WorkingDir: r.WorkDir, Cmd: r.Cmd, Labels: labels,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("configure image: %w", err)
	}
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayerZStd, History: v1.History{
		Created: date, CreatedBy: "mkimage " + r.Name,
	}})
	if err != nil {
		return nil, fmt.Errorf("add layer: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return nil, fmt.Errorf("write layout: %w", err)
	}
	err = path.AppendImage(img, layout.WithAnnotations(map[string]string{refName: r.Name + ":" + r.Tag}))
	if err != nil {
		return nil, fmt.Errorf("write layout: %w", err)
	}
	return img, nil
}
