// Command mkimage builds a container image as an OCI layout from a folder below images/: out of
// Debian packages, and of the Python and Node packages in its lock files. The same packages give
// the same bytes. An image whose recipe has not changed is not built again.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	out := flag.String("o", "", "the OCI layout to write")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: mkimage -o LAYOUT FOLDER")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *out == "" || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Arg(0), *out); err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}

// run builds the image in a temporary directory and then moves it to its place.
func run(ctx context.Context, folder, out string) error {
	r, err := read(folder)
	if err != nil {
		return err
	}
	hash, err := r.hash()
	if err != nil {
		return err
	}
	// The index of the layout is written last, because make compares its time.
	index := filepath.Join(out, "index.json")
	if current(out, hash) {
		now := time.Now()
		return os.Chtimes(index, now, now)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("building %s needs root", r.Name)
	}
	fmt.Fprintf(os.Stderr, "mkimage: building %s:%s from packages; this can take some minutes\n", r.Name, r.Tag)
	begun := time.Now()
	work := out + ".new"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	tarFile := filepath.Join(work, "root.tar")
	if err := r.bootstrap(ctx, work, tarFile); err != nil {
		return fmt.Errorf("build %s: %w", r.Name, err)
	}
	unpacked, packing := time.Since(begun), time.Now()
	img, err := r.pack(tarFile, filepath.Join(work, "layout"))
	if err != nil {
		return fmt.Errorf("build %s: %w", r.Name, err)
	}
	if err := os.WriteFile(hashFile(filepath.Join(work, "layout")), []byte(hash+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(work, "layout"), out); err != nil {
		return err
	}
	m, err := img.Manifest()
	if err != nil {
		return err
	}
	info, err := os.Stat(tarFile)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "mkimage: %s:%s, %d MB (%d MB unpacked), packages %.0fs, packing %.1fs\n",
		r.Name, r.Tag, m.Layers[0].Size>>20, info.Size()>>20, unpacked.Seconds(), time.Since(packing).Seconds())
	return nil
}

// current reports whether out was built from the recipe with this hash.
func current(out, hash string) bool {
	b, err := os.ReadFile(hashFile(out))
	if err != nil || strings.TrimSpace(string(b)) != hash {
		return false
	}
	_, err = os.Stat(filepath.Join(out, "index.json"))
	return err == nil
}

func hashFile(out string) string { return filepath.Join(out, ".recipe") }
