package volume_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/storagetest"
)

// A container swaps a directory and a file for links to a secret while users run all operations on
// files. No operation reads or writes outside of the folder.
func TestSymlinkSwapRace(t *testing.T) {
	attempts := 100_000
	if testing.Short() {
		attempts = 3_000
	}
	r := newRace(t)
	defer r.end()
	ops := []func(i int){
		r.download, r.upload, r.list, r.stat, r.makeDirectories, r.move, r.delete, r.search,
		r.download, r.upload, r.list, r.stat, r.makeDirectories, r.move, r.delete, r.archive,
		r.download, r.upload, r.list, r.stat, r.makeDirectories, r.move, r.delete, r.copy,
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !t.Failed() {
				i := int(next.Add(1))
				if i > attempts {
					return
				}
				ops[i%len(ops)](i / len(ops))
				if i%(attempts/20) == 0 {
					r.clone()
				}
			}
		})
	}
	wg.Wait()
	r.end()
	if r.swaps.Load() < 1000 || r.worked.Load() == 0 || r.refused.Load() == 0 {
		t.Errorf("no race: %d swaps, %d attempts that worked, %d that were refused", r.swaps.Load(), r.worked.Load(), r.refused.Load())
	}
	r.clean(r.Path)
	left, err := os.ReadDir(r.outside)
	if err != nil || len(left) != 2 {
		t.Errorf("outside holds %v, %v", left, err)
	}
	if raw, err := os.ReadFile(filepath.Join(r.outside, "f")); err != nil || string(raw) != secret {
		t.Errorf("the secret is %q, %v", raw, err)
	}
}

const names = 20 // the tree stays small

const secret = "SECRET, and longer than what is public"

type race struct {
	*storagetest.Moving
	outside                string
	swaps, worked, refused atomic.Int64
	dirTicket, fileTicket  string
	archiveTicket          string
	cancel                 context.CancelFunc
	done                   chan struct{}
}

func newRace(t *testing.T) *race {
	r := &race{Moving: &storagetest.Moving{Host: storagetest.NewOn(t, storagetest.Memory(t)), To: uuid.NewString()}, outside: t.TempDir(), done: make(chan struct{})}
	if _, err := r.API.CreateScope(r.Ctx(), &storagepb.ScopeRequest{Volume: "main", Scope: r.To}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.outside, "f"), []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.outside, "victim"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.Write("real/f", "public")
	r.Write("file", "public")
	for link, to := range map[string]string{"evil": r.outside, "evilfile": filepath.Join(r.outside, "f")} {
		if err := os.Symlink(to, filepath.Join(r.Path, link)); err != nil {
			t.Fatal(err)
		}
	}
	r.dirTicket, r.fileTicket = r.Ticket("download", "real/f", 0), r.Ticket("download", "file", 0)
	r.archiveTicket = r.Ticket("archive", "", 0)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.done)
		for ctx.Err() == nil {
			for _, pair := range [][2]string{{"real", "evil"}, {"file", "evilfile"}} {
				a, b := filepath.Join(r.Path, pair[0]), filepath.Join(r.Path, pair[1])
				_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
			}
			r.swaps.Add(1)
		}
	}()
	return r
}

func (r *race) end() { r.cancel(); <-r.done }

func (r *race) tried(err error) {
	if err != nil {
		r.refused.Add(1)
	} else {
		r.worked.Add(1)
	}
}

// fetch checks that a download contains only public content.
func (r *race) fetch(path, ticket, public string) {
	resp, err := r.Try(context.Background(), "GET", path, ticket, nil)
	if err != nil {
		return // an archive of changing files can be cut off
	}
	raw, _ := io.ReadAll(resp.Body)
	if bytes.Contains(raw, []byte("SECRET")) {
		r.TB.Errorf("%s served the secret", path)
	}
	if resp.StatusCode == 200 && public != "" && string(raw) != public {
		r.TB.Errorf("%s served %q", path, raw)
	}
	if resp.StatusCode != 200 {
		err = errors.New(resp.Status)
	}
	r.tried(err)
}

func (r *race) download(i int) {
	r.fetch("/download", []string{r.dirTicket, r.fileTicket}[i%2], "public")
}

func (r *race) archive(int) { r.fetch("/archive?format=tar.zst", r.archiveTicket, "") }

func (r *race) upload(i int) {
	resp, err := r.Try(context.Background(), "POST", "/uploads", r.Ticket("upload", fmt.Sprintf("real/up%d", i%names), 0), nil, "Upload-Length", "0")
	if err == nil && resp.StatusCode != 201 {
		err = errors.New(resp.Status)
	}
	r.tried(err)
}

// seen checks the reported attributes of a file.
func (r *race) seen(f *storagepb.FileInfo) {
	if f.GetType() == storagepb.FileInfo_FILE && f.GetSize() == int64(len(secret)) || f.GetName() == "victim" {
		r.TB.Errorf("reported %v", f)
	}
}

func (r *race) list(int) {
	got, err := r.API.ListFiles(context.Background(), &storagepb.ListFilesRequest{Folder: r.Ref, Path: "real"})
	for _, f := range got.GetFiles() {
		r.seen(f)
	}
	r.tried(err)
}

func (r *race) stat(i int) {
	f, err := r.API.StatFile(context.Background(), &storagepb.FileRef{Folder: r.Ref, Path: []string{"real/f", "real/victim", "file"}[i%3]})
	r.seen(f)
	r.tried(err)
}

func (r *race) search(i int) {
	got, err := r.API.SearchFiles(context.Background(), &storagepb.SearchFilesRequest{Folder: r.Ref, Path: []string{"", "real"}[i%2], Text: "i"})
	for _, f := range got.GetFiles() {
		r.seen(f)
	}
	r.tried(err)
}

func (r *race) makeDirectories(i int) {
	got, err := r.API.MakeDirectories(context.Background(), &storagepb.MakeDirectoriesRequest{Folder: r.Ref, Paths: []string{fmt.Sprintf("real/d%d/x", i%names)}})
	r.settled(got.GetResults(), err)
}

func (r *race) settled(results []*storagepb.FileResult, err error) {
	for _, one := range results {
		r.seen(one.File)
		r.tried(one.Err())
	}
	if err != nil {
		r.tried(err)
	}
}

func (r *race) stream(stream grpc.ServerStreamingClient[storagepb.Progress], err error) {
	for err == nil {
		var p *storagepb.Progress
		if p, err = stream.Recv(); err == nil {
			r.settled(p.Results, nil)
		}
	}
	if !errors.Is(err, io.EOF) {
		r.settled(nil, err)
	}
}

func (r *race) move(i int) {
	r.Write(fmt.Sprintf("mine%d", i), "m")
	r.stream(r.API.MoveFiles(context.Background(), &storagepb.TransferRequest{From: r.Ref, To: r.Ref, Overwrite: true, Files: storagetest.Pairs(
		fmt.Sprintf("mine%d", i), "real/moved", "real/moved", fmt.Sprintf("mine%d", i), "real/victim", "taken", "real/f", "real/f",
	)}))
	os.Remove(filepath.Join(r.Path, fmt.Sprintf("mine%d", i)))
}

func (r *race) copy(i int) {
	into := fmt.Sprintf("copies%d", i)
	if err := os.Mkdir(filepath.Join(r.Path, into), 0o755); err != nil {
		r.TB.Error(err)
	}
	r.stream(r.API.CopyFiles(context.Background(), &storagepb.TransferRequest{From: r.Ref, To: r.Ref, Overwrite: true, Files: storagetest.Pairs(
		"real/f", into+"/f", "file", into+"/file", "real", into+"/dir", "real/victim", into+"/victim", "file", "real/copied", "real/f", "real/again",
	)}))
	r.clean(filepath.Join(r.Path, into))
	if err := os.RemoveAll(filepath.Join(r.Path, into)); err != nil {
		r.TB.Error(err)
	}
}

func (r *race) delete(i int) {
	r.stream(r.API.DeleteFiles(context.Background(), &storagepb.DeleteFilesRequest{Folder: r.Ref, Recursive: i%2 == 0, Paths: []string{
		"real/victim", "real/moved", "real/copied", "real/again", fmt.Sprintf("real/up%d", i%names), fmt.Sprintf("real/d%d", i%names),
	}}))
}

func (r *race) clone() {
	to := r.Fresh()
	r.stream(r.API.CloneFolder(context.Background(), &storagepb.CloneFolderRequest{From: r.Ref, To: to}))
	r.clean(r.At(to))
}

// clean checks that no created file contains the secret. It does not follow links.
func (r *race) clean(root string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil
		}
		f := os.NewFile(uintptr(fd), path)
		defer f.Close()
		// The swapping continues: if this path leads through a link, it is not the file that was
		// created.
		at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		raw, _ := io.ReadAll(f)
		if err == nil && strings.HasPrefix(at, r.Mount) && bytes.Contains(raw, []byte("SECRET")) {
			r.TB.Errorf("%s holds the secret", path)
		}
		return nil
	})
}
