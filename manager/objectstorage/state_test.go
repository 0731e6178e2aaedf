package objectstorage

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/minio/minio-go/v7"

	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/storage/storagepb"
)

func TestBefore(t *testing.T) {
	order := []string{"a/0", "a/b/c", "a/b-c", "a/z", "a.txt", "b"} // order of a walk
	for i, a := range order {
		for j, b := range order {
			if before(a, b) != (i < j) {
				t.Errorf("%s before %s: %v", a, b, before(a, b))
			}
		}
	}
}

func TestParts(t *testing.T) {
	for size, want := range map[int64]int64{
		partsAbove + 1:  partsAbove,
		600_000 << 20:   partsAbove,
		640_001 << 20:   65 << 20,
		int64(5) << 40:  525 << 20,
		maxObject - 100: 525 << 20,
	} {
		p := partSize(size)
		if p != want || p > 5<<30 || (size+p-1)/p > maxParts {
			t.Errorf("%d bytes in parts of %d, want %d", size, p, want)
		}
	}
	up := &parts{Size: 3*partsAbove + 5, Part: partsAbove, Done: []donePart{{Number: 2}}}
	if got := up.missing(); len(got) != 3 || got[0] != 1 || got[1] != 3 || got[2] != 4 {
		t.Errorf("missing %v", got)
	}
	if offset, n := up.section(4); offset != 3*partsAbove || n != 5 {
		t.Errorf("the last part is %d bytes from %d", n, offset)
	}
	if up.sent() != partsAbove {
		t.Errorf("sent %d", up.sent())
	}
}

func TestHostileKeys(t *testing.T) {
	for key, good := range map[string]bool{
		"a": true, "a/b.c": true, "ünï/ cödé": true, ".hidden": true, "...": true,
		"": false, "/a": false, "a/": false, "a//b": false, "..": false, "a/../b": false, "./a": false, "a\x00": false, "a\n": false, "\xff": false,
	} {
		if why := folderpath.NewFault(key); (why == "") != good {
			t.Errorf("%q: %q", key, why)
		}
	}
}

func TestEndpoints(t *testing.T) {
	for text, want := range map[string]string{
		"https://S3.Example.org/": "https://s3.example.org", "http://10.0.0.1:9000": "http://10.0.0.1:9000", "https://[::1]:9000": "https://[::1]:9000",
		"https://[::1]":  "https://[::1]",
		"s3.example.org": "", "ftp://x": "", "https://u:p@x": "", "https://x/bucket": "", "https://x?a=b": "", "https://": "", "https://x:0": "", "https://a b": "",
	} {
		got, err := cleanEndpoint(text)
		p, _ := problem.From(err)
		if got != want || (err != nil) != (want == "") || err != nil && p.Field != "endpoint" {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
}

func TestLifeOfSignedRequests(t *testing.T) {
	for bytes, seconds := range map[int64]float64{0: 3600, 1 << 30: 3600 + 1024, 1 << 60: longest.Seconds()} {
		if got := life(bytes).Seconds(); got != seconds {
			t.Errorf("for %d bytes %v s, want %v", bytes, got, seconds)
		}
	}
}

// An upload whose ID was lost is recognized by its start time, and by excluding the uploads that
// existed before.
func TestUploadsThatMayBeOurs(t *testing.T) {
	now := time.Now()
	up := upload{Key: "k", Intended: now, Others: []string{"other"}}
	for name, c := range map[string]struct {
		id    string
		after time.Duration
		want  bool
	}{
		"just then":               {"x", time.Second, true},
		"by a clock that is slow": {"x", -15 * time.Minute, true},
		"there before":            {"other", 0, false},
		"much earlier":            {"x", -time.Hour, false},
		"much later":              {"x", time.Hour, false},
	} {
		if got := up.may(minio.ObjectMultipartInfo{Key: "k", UploadID: c.id, Initiated: now.Add(c.after)}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// An object that may be from an earlier run of the task is not an error, even if the task must not
// replace objects.
func TestWhatIsThereMayBeOurs(t *testing.T) {
	core, err := minio.NewCore("s3.example.org", &minio.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		existing Existing
		ours     bool
		want     storagepb.ObjectItem_Existing
	}{
		{Update, false, storagepb.ObjectItem_UPDATE}, {Update, true, storagepb.ObjectItem_UPDATE},
		{Overwrite, true, storagepb.ObjectItem_OVERWRITE},
		{Fail, false, storagepb.ObjectItem_FAIL}, {Fail, true, storagepb.ObjectItem_RESUME},
	} {
		r := &fetching{run: &run{moving: moving{Existing: c.existing, Path: "in"}, prefix: "p/", bucket: &bucket{core: *core, name: "lake", nobody: true}}}
		item, err := r.item(t.Context(), object{key: "p/a b", size: 1}, c.ours, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(item.Get.Url)
		if item.Existing != c.want || item.Path != "in/a b" || err != nil || u.Path != "/lake/p/a b" {
			t.Errorf("%s, ours %v: %v", c.existing, c.ours, item)
		}
	}
}

func TestFilesThatCannotBeObjects(t *testing.T) {
	for name, c := range map[string]struct {
		key   string
		file  *storagepb.TreeFile
		field string
	}{
		"the longest key":        {strings.Repeat("k", maxKey), &storagepb.TreeFile{Path: "k", Size: maxObject}, ""},
		"a key that is too long": {strings.Repeat("k", maxKey+1), &storagepb.TreeFile{Path: "k"}, "key"},
		"a control character":    {"k\n", &storagepb.TreeFile{Path: "k\n"}, "key"},
		"too large":              {"k", &storagepb.TreeFile{Path: "k", Size: maxObject + 1}, "size"},
	} {
		p, known := problem.From(refusedFile(c.key, c.file))
		if known != (c.field != "") || p.Field != c.field {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p, _ := problem.From(unreadable("a\uFFFD", errdefs.ErrNotFound)); !strings.Contains(p.Message, "not UTF-8") {
		t.Errorf("a name that is not UTF-8: %s", p.Message)
	}
	if err := unreadable("a", errdefs.ErrNotFound); err != errdefs.ErrNotFound {
		t.Errorf("a missing file: %v", err)
	}
}
