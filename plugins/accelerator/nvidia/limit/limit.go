// Package limit is the plugin's part of libberthlimit.so, the library in lib that limits the GPU
// memory of the processes of a container: it finds the library and writes the two files that it
// uses. The nvidia plugin imports it.
package limit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
)

// Library is the file name of the library.
const Library = "libberthlimit.so"

const (
	// inContainer is the directory of the library and its files in a container. The library finds
	// the files beside itself.
	inContainer = "/usr/local/nvidia/berth"
	// counterBytes is more than the library needs for its records.
	counterBytes = 160 << 10
)

// Cap is the limit of a container's memory on a GPU.
type Cap struct {
	UUID  string
	Bytes uint64
}

// Find returns the library's path, or "" if it was not built. The library is in ../lib of the
// plugin or beside the plugin.
func Find(plugin string) string {
	dir := filepath.Dir(plugin)
	for _, at := range []string{filepath.Join(dir, "../lib", Library), filepath.Join(dir, Library)} {
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() {
			return at
		}
	}
	return ""
}

// Apply writes an allocation's files into its directory and adds the library to the container. It
// can be repeated while the container runs.
func Apply(e *pb.ContainerEdits, library, dir string, caps []Cap) error {
	if err := write(dir, caps); err != nil {
		return fmt.Errorf("limit GPU memory: %w", err)
	}
	at := inContainer + "/" + Library
	e.Mounts = append(e.Mounts,
		&pb.Mount{Source: library, Target: at},
		&pb.Mount{Source: filepath.Join(dir, "limits"), Target: inContainer + "/limits"},
		&pb.Mount{Source: filepath.Join(dir, "usage"), Target: inContainer + "/usage", Writable: true},
	)
	e.PreloadLibs = append(e.PreloadLibs, at)
	return nil
}

func write(dir string, caps []Cap) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var text bytes.Buffer
	for _, c := range caps {
		fmt.Fprintf(&text, "%s %d\n", c.UUID, c.Bytes)
	}
	limits := filepath.Join(dir, "limits")
	if old, err := os.ReadFile(limits); err != nil || !bytes.Equal(old, text.Bytes()) {
		if err := os.WriteFile(limits, text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	// The file is writable for every user, because the container's processes can run as any user.
	usage := filepath.Join(dir, "usage")
	if _, err := os.Stat(usage); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(usage, make([]byte, counterBytes), 0o666); err != nil {
		return err
	}
	return os.Chmod(usage, 0o666) // regardless of the umask
}
