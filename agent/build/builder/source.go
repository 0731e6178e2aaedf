package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/containerd/errdefs"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/berthhq/berth/agent/build"
	"github.com/berthhq/berth/internal/recipe"
)

const (
	// fetchTime limits the fetch of a repository.
	fetchTime = 20 * time.Minute
	// maxText is the largest description, and the largest Dockerfile that is sent to the manager.
	maxText = 64 << 10
	// maxContainerFiles limits the Dockerfiles that are sent to the manager.
	maxContainerFiles = 16
	// oldSource is the age of a source that no build has used.
	oldSource = 3 * time.Hour
)

// sourceDir is the directory of a source that was fetched.
func sourceDir(root, id string) string { return filepath.Join(root, "sources", id) }

// fetchSource fetches a commit of a Git repository over the network of the sandbox, and stores the files of one of its
// directories for the build that follows.
func fetchSource(ctx context.Context, r build.Request, out io.Writer) (*build.Fetched, error) {
	s := r.Source
	if err := recipe.CheckGit(s.Address, s.Ref, s.Directory); err != nil {
		return nil, err
	}
	if !filepath.IsLocal(s.ID) || filepath.Base(s.ID) != s.ID {
		return nil, fmt.Errorf("source %.80q is malformed: %w", s.ID, errdefs.ErrInvalidArgument)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	if err := dropSources(r.Root, s.ID); err != nil {
		return nil, err
	}
	objects, err := os.MkdirTemp(filepath.Join(r.Root, "tmp"), "git-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(objects)
	fmt.Fprintf(out, "Fetching %s %s\n", s.Address, s.Ref)
	store := filesystem.NewStorage(osfs.New(objects), cache.NewObjectLRU(32<<20))
	tip, err := download(ctx, r, store)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", s.Address, explained(err, r.Root))
	}
	commit, err := commitOf(store, tip)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", tip, err)
	}
	tree, err := commit.Tree()
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", commit.Hash, err)
	}
	if dir := path.Clean(s.Directory); s.Directory != "" && dir != "." {
		if tree, err = tree.Tree(dir); err != nil {
			return nil, fmt.Errorf("directory %s of commit %s: %w", dir, commit.Hash, err)
		}
	}
	fmt.Fprintf(out, "Commit %s\n", commit.Hash)
	if err := writeTree(ctx, tree, sourceDir(r.Root, s.ID), out); err != nil {
		return nil, fmt.Errorf("write the files of commit %s: %w", commit.Hash, explained(err, r.Root))
	}
	return describe(tree, s.File, commit.Hash.String())
}

// dropSources removes the source of the same build, and those that are old.
func dropSources(root, id string) error {
	dir := filepath.Join(root, "sources")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && (e.Name() == id || time.Since(info.ModTime()) > oldSource) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// download stores the objects of one commit, and returns the hash that the reference names.
func download(ctx context.Context, r build.Request, store *filesystem.Storage) (tip plumbing.Hash, err error) {
	at, err := transport.NewEndpoint(r.Source.Address)
	if err != nil {
		return tip, err
	}
	var account transport.AuthMethod
	if r.Source.Password != "" {
		account = &githttp.BasicAuth{Username: r.Source.Username, Password: r.Source.Password}
	}
	web := &http.Client{Transport: insideTransport(r), CheckRedirect: sameHost}
	session, err := githttp.NewClient(web).NewUploadPackSession(at, account)
	if err != nil {
		return tip, err
	}
	defer session.Close()
	offered, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return tip, err
	}
	if tip, err = choose(offered, r.Source.Ref); err != nil {
		return tip, err
	}
	ask := packp.NewUploadPackRequestFromCapabilities(offered.Capabilities)
	ask.Wants = []plumbing.Hash{tip}
	if offered.Capabilities.Supports(capability.Shallow) {
		ask.Depth = packp.DepthCommits(1)
		if err := ask.Capabilities.Set(capability.Shallow); err != nil {
			return tip, err
		}
	}
	answer, err := session.UploadPack(ctx, ask)
	if err != nil {
		return tip, err
	}
	defer answer.Close()
	return tip, packfile.UpdateObjectStorage(store, pack(ask.Capabilities, answer))
}

// pack returns the objects of an answer without the messages of the server.
func pack(agreed *capability.List, answer io.Reader) io.Reader {
	switch {
	case agreed.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, answer)
	case agreed.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, answer)
	}
	return answer
}

// sameHost refuses redirects to other hosts, because the token would be sent there.
func sameHost(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > 5 || next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
		return fmt.Errorf("the server redirects to %s://%s: %w", next.URL.Scheme, next.URL.Host, errdefs.ErrPermissionDenied)
	}
	return nil
}

// choose returns the hash of a branch, a tag or a commit; of the default branch if ref is "".
func choose(offered *packp.AdvRefs, ref string) (plumbing.Hash, error) {
	if ref == "" {
		if offered.Head != nil {
			return *offered.Head, nil
		}
		return plumbing.ZeroHash, errors.New("the repository has no default branch: name a ref")
	}
	for _, name := range []string{ref, "refs/heads/" + ref, "refs/tags/" + ref} {
		if h, ok := offered.References[name]; ok {
			return h, nil
		}
	}
	if plumbing.IsHash(ref) {
		return plumbing.NewHash(ref), nil
	}
	return plumbing.ZeroHash, fmt.Errorf("the repository has no branch or tag %s: %w", ref, errdefs.ErrNotFound)
}

// commitOf returns a commit, or the one of a tag.
func commitOf(store *filesystem.Storage, h plumbing.Hash) (*object.Commit, error) {
	if tag, err := object.GetTag(store, h); err == nil {
		return tag.Commit()
	}
	return object.GetCommit(store, h)
}

// writeTree writes the files of a tree into a new directory, and nothing outside it.
func writeTree(ctx context.Context, tree *object.Tree, dir string, out io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	walk := object.NewTreeWalker(tree, true, nil)
	defer walk.Close()
	for {
		name, entry, err := walk.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := writeEntry(root, tree, name, entry, out); err != nil {
			return fmt.Errorf("entry %.200q: %w", name, err)
		}
	}
}

func writeEntry(root *os.Root, tree *object.Tree, name string, entry object.TreeEntry, out io.Writer) error {
	if !filepath.IsLocal(name) || path.Clean(name) != name {
		return fmt.Errorf("the name leads out of the repository: %w", errdefs.ErrInvalidArgument)
	}
	switch entry.Mode {
	case filemode.Dir:
		return root.MkdirAll(name, 0o755)
	case filemode.Submodule:
		fmt.Fprintf(out, "The submodule %s is left out.\n", name)
		return nil
	}
	file, err := tree.TreeEntryFile(&entry)
	if err != nil {
		return err
	}
	in, err := file.Reader()
	if err != nil {
		return err
	}
	defer in.Close()
	if entry.Mode == filemode.Symlink {
		target, err := io.ReadAll(io.LimitReader(in, 4096))
		if err != nil {
			return err
		}
		return root.Symlink(string(target), name)
	}
	mode := os.FileMode(0o644)
	if entry.Mode == filemode.Executable {
		mode = 0o755
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}

// describe finds the description of the build, and the Dockerfiles that it can refer to.
func describe(tree *object.Tree, name, commit string) (*build.Fetched, error) {
	out := &build.Fetched{Commit: commit, ContainerFiles: map[string]string{}}
	names := recipe.Descriptions()
	if name != "" {
		names = []string{path.Clean(name)}
	}
	for _, name := range names {
		file, err := tree.File(name)
		if err != nil {
			continue
		}
		if out.Text, err = textOf(file); err != nil {
			return nil, err
		}
		out.File = name
		break
	}
	if out.File == "" {
		return nil, fmt.Errorf("commit %s has none of the files %v: %w", commit, names, errdefs.ErrNotFound)
	}
	err := tree.Files().ForEach(func(f *object.File) error {
		if len(out.ContainerFiles) < maxContainerFiles && f.Mode != filemode.Symlink && f.Size <= maxText && recipe.IsContainerFile(f.Name) {
			text, err := f.Contents()
			out.ContainerFiles[f.Name] = text
			return err
		}
		return nil
	})
	return out, err
}

func textOf(f *object.File) (string, error) {
	if f.Mode == filemode.Symlink {
		return "", fmt.Errorf("%s is a symbolic link: %w", f.Name, errdefs.ErrInvalidArgument)
	}
	if f.Size > maxText {
		return "", fmt.Errorf("%s has %d bytes, more than %d: %w", f.Name, f.Size, int64(maxText), errdefs.ErrInvalidArgument)
	}
	return f.Contents()
}
