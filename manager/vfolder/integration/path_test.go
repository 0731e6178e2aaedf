package integration

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// Every query and mutation that takes a path refuses paths that lead out of the folder. A name that
// only looks like such a path is an ordinary name.
func TestPathsThatLeadOut(t *testing.T) {
	c := clustertest.New(t, 0)
	d := clustertest.NewProxy(t, c)
	a, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "data"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	c.Member.Must(t, `mutation($id: ID!) { createDirectories(input: {vfolder: $id, paths: ["mine"]}) { results { error } } }`, managertest.Vars{"id": a}, nil)
	before := tree(t, d.Root)
	pair := func(from, to string) managertest.Vars {
		return managertest.Vars{"vfolder": a, "items": []managertest.Vars{{"from": from, "to": to}}}
	}
	for _, path := range []string{"../x", "..", "/etc/passwd", "a/../../b", "a\x00", "mine/../../x", "./../x", strings.Repeat("../", 40) + "etc/passwd"} {
		for door, ask := range map[string]struct {
			query string
			in    any
		}{
			"files":             {`query($in: String) { vfolders(first: 1) { edges { node { files(path: $in) { files { path } } } } } }`, path},
			"search":            {`query($in: String) { vfolders(first: 1) { edges { node { search(path: $in, text: "a") { files { path } } } } } }`, path},
			"createUpload":      {`mutation($in: CreateUploadInput!) { createUpload(input: $in) { uploads { url } } }`, managertest.Vars{"vfolder": a, "files": []managertest.Vars{{"path": path, "size": 1}}}},
			"createDownload":    {`mutation($in: CreateDownloadInput!) { createDownload(input: $in) { url } }`, managertest.Vars{"vfolder": a, "path": path}},
			"createDirectories": {`mutation($in: CreateDirectoriesInput!) { done: createDirectories(input: $in) { results { error } } }`, managertest.Vars{"vfolder": a, "paths": []string{path}}},
			"deleteFiles":       {`mutation($in: DeleteFilesInput!) { done: deleteFiles(input: $in) { results { error } } }`, managertest.Vars{"vfolder": a, "paths": []string{path}, "recursive": true}},
			"moveFiles from":    {`mutation($in: MoveFilesInput!) { done: moveFiles(input: $in) { results { error } } }`, pair(path, "x")},
			"moveFiles to":      {`mutation($in: MoveFilesInput!) { done: moveFiles(input: $in) { results { error } } }`, pair("mine", path)},
			"copyFiles from":    {`mutation($in: CopyFilesInput!) { copy: copyFiles(input: $in) { task { id } } }`, pair(path, "x")},
			"copyFiles to":      {`mutation($in: CopyFilesInput!) { copy: copyFiles(input: $in) { task { id } } }`, pair("mine", path)},
		} {
			var got struct {
				Done struct{ Results []struct{ Error *string } }
				Copy struct{ Task struct{ ID uuid.UUID } }
			}
			switch errs := c.Member.Ask(t, ask.query, managertest.Vars{"in": ask.in}, &got); {
			case errs.Code() == "INVALID_ARGUMENT":
			case len(errs) > 0:
				t.Errorf("%s of %q: %s", door, path, errs)
			case len(got.Done.Results) == 1 && got.Done.Results[0].Error != nil: // the error of the item
			case got.Copy.Task.ID != uuid.Nil:
				if job := ended(t, c, got.Copy.Task.ID); job.Status != task.StatusFailed {
					t.Errorf("%s of %q: %v", door, path, job)
				}
			default:
				t.Errorf("%s of %q is done", door, path)
			}
		}
	}
	if now := tree(t, d.Root); !slices.Equal(now, before) {
		t.Errorf("on disk: %q, and was %q", now, before)
	}
	c.Member.Must(t, `mutation($in: CreateDirectoriesInput!) { createDirectories(input: $in) { results { error } } }`,
		managertest.Vars{"in": managertest.Vars{"vfolder": a, "paths": []string{`..\x`, "..%2fx", "..%c0%afx"}}}, nil)
	if now := tree(t, d.Root); len(now) != len(before)+3 {
		t.Errorf("names that only look so: %q", now)
	}
}

// tree returns the entries on a volume and in the directory beside it.
func tree(t *testing.T, root string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Dir(root), func(path string, _ fs.DirEntry, err error) error {
		list = append(list, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Targets in directories of the system, and paths out of the folder, are refused when the session
// is requested, with the field.
func TestMountsThatAreNone(t *testing.T) {
	c := clustertest.New(t, 0)
	clustertest.NewProxy(t, c)
	if _, errs := clustertest.CreateFolder(t, c.Member, managertest.Vars{"name": "data"}); len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, target := range []string{
		"/", "//", "/proc", "/proc/self", "/sys", "/dev/shm", "/etc", "/etc/passwd", "/bin", "/usr/lib", "/lib64", "/opt/berth", "/home/work",
		"relative", "../../etc", "/data/../../etc", "/data/..", "/./data", "/data\x00", "/data\n", "/" + strings.Repeat("x", 2000),
	} {
		_, errs := clustertest.TryCreate(t, c.Member, clustertest.SessionInput(managertest.Vars{"mounts": []managertest.Vars{{"vfolder": "data", "target": target}}}, "sleep", "1"))
		if errs.Code() != "INVALID_ARGUMENT" || !strings.HasSuffix(errs[0].Extensions.Field, "target") {
			t.Errorf("target %.40q: %s", target, errs)
		}
	}
	for _, subpath := range []string{"..", "../x", "/etc", "a/../../x", "a\x00"} {
		_, errs := clustertest.TryCreate(t, c.Member, clustertest.SessionInput(managertest.Vars{"mounts": []managertest.Vars{{"vfolder": "data", "subpath": subpath}}}, "sleep", "1"))
		if errs.Code() != "INVALID_ARGUMENT" || !strings.HasSuffix(errs[0].Extensions.Field, "subpath") {
			t.Errorf("subpath %q: %s", subpath, errs)
		}
	}
	for _, name := range []string{"../data", "/data", "data/..", "nobody's", "data\x00"} {
		if _, errs := clustertest.TryCreate(t, c.Member, clustertest.SessionInput(managertest.Vars{"mounts": []managertest.Vars{{"vfolder": name}}}, "sleep", "1")); errs.Code() != "NOT_FOUND" && errs.Code() != "INVALID_ARGUMENT" {
			t.Errorf("folder %q: %s", name, errs)
		}
	}
}
