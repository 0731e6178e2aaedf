package folders

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// hostile are names that users choose and that programs often handle wrongly.
var hostile = []string{
	"with space", " leading and trailing ", "quote'\"s", "<img src=x onerror=alert(1)>", "-rf", "--", "$(reboot)", "`id`", "a;b&c|d",
	"back\\slash", "100%25 %2e%2e", "?query#fragment", "*", "~", "...", ".hidden", "..double", "con", "naïve", "nai\u0308ve", "日本語", "שלום",
	"🚀🇪🇺", "right\u202eleft", "zero\u200bwidth", "plus+plus", "a=b", "@at", "[brackets]{braces}", "comma,semicolon;", "x:y", strings.Repeat("長", 85),
}

// fill creates n files below a directory. The first one has the given size. The files are in nested
// directories, and some are empty or have hostile names. It returns the total size.
func fill(t *testing.T, dir string, n int, large int) (total int64) {
	t.Helper()
	rnd := rand.NewChaCha8([32]byte{byte(n)})
	for i := range n {
		name := fmt.Sprintf("part-%d/%d/file-%04d.dat", i%7, i%3, i)
		size := (i * 613) % 20_000
		switch {
		case i == 0:
			name, size = "a large one.bin", large
		case i <= len(hostile):
			name = filepath.Join("hostile", hostile[i-1], hostile[i-1])
		case i%10 == 0:
			name, size = strings.Replace(name, "file", "empty", 1), 0
		}
		data := make([]byte, size)
		_, _ = rnd.Read(data)
		put(t, filepath.Join(dir, name), data)
		total += int64(size)
	}
	return total
}

func put(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// sums returns the SHA-256 of all regular files below a directory, by path.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		all[rel] = hex.EncodeToString(sum.Sum(nil))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// folderOn creates a folder on the volume with this name, and returns the id of the folder.
func folderOn(t *testing.T, u *cluster.User, on, name string) string {
	t.Helper()
	all, err := u.Volumes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Name != on {
			continue
		}
		f, err := u.CreateFolder(t.Context(), client.CreateVfolderInput{Name: name, Volume: v.ID})
		if err != nil {
			t.Fatal(err)
		}
		return f.ID
	}
	t.Fatalf("there is no volume %s", on)
	return ""
}
