package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// sayings notes what each operation was told.
func sayings(f *fake, answers map[string]string) map[string]string {
	said := map[string]string{}
	for op, answer := range answers {
		f.answer[op] = func(vars json.RawMessage) string { said[op] = string(vars); return answer }
	}
	return said
}

const (
	oneFolder = `{"vfolders":{"edges":[{"node":{"id":"f-1","name":"data","kind":"project","status":"ready","usageMode":"model","permission":"read_only","fileCount":12,
		"project":{"id":"p-1","name":"thesis"},"quotaScope":{"id":"s-1","volume":{"id":"v-1","name":"fast"}}}}],"pageInfo":{}}}`
	oneProject = `{"projects":{"edges":[{"node":{"id":"p-1","name":"thesis"}}],"pageInfo":{}}}`
)

func TestFolderList(t *testing.T) {
	f := newFake(t)
	file := func(path string) string {
		return `{"name":"` + path[strings.LastIndex(path, "/")+1:] + `","path":"` + path + `","type":"file","size":1234567,"modifiedAt":"2026-03-04T11:00:00.5Z"}`
	}
	said := sayings(f, map[string]string{
		"Vfolders": oneFolder, "Projects": oneProject,
		"Files":       `{"node":{"page":{"files":[` + file("runs/a.pt") + `],"endCursor":null}}}`,
		"SearchFiles": `{"node":{"page":{"files":[` + file("runs/7/check.pt") + `],"endCursor":null}}}`,
	})
	for _, c := range []struct {
		args string
		code int
		op   string
		says string // to the server
		out  string
	}{
		{"folder ls", 0, "Vfolders", `"ready"`, "data"},
		{"folder ls -l", 0, "Vfolders", "", "read-only"},
		{"folder ls --mine", 0, "Vfolders", `"kind":"mine"`, "data"},
		{"folder ls --shared --usage-mode model", 0, "Vfolders", `"usageMode":"model"`, "data"},
		{"folder ls --project thesis", 0, "Vfolders", `"projectID":"p-1"`, "data"},
		{"folder ls --search dAt", 0, "Vfolders", `"nameContainsFold":"dAt"`, "data"},
		{"folder ls --mine --shared", exitUsage, "", "", ""},
		{"folder ls --usage-mode fast", exitUsage, "", "", ""},
		{"folder ls -R", exitUsage, "", "", ""},
		{"folder ls data:runs", 0, "Files", `"runs"`, "a.pt"},
		{"folder ls data:runs -R", 0, "Files", `"runs"`, "runs/a.pt"},
		{"folder ls data:runs -l", 0, "Files", `"runs"`, "1234567"},
		{"folder ls data:runs --search CHECK", 0, "SearchFiles", `"text":"CHECK"`, "runs/7/check.pt"},
		{"folder ls data --mine", exitUsage, "", "", ""},
		{"folder ls data -R --search x", exitUsage, "", "", ""},
	} {
		r := f.berth(strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(said[c.op], c.says) || !strings.Contains(r.out, c.out) {
			t.Errorf("%s: %+v, said %s", c.args, r, said[c.op])
		}
	}
	r := f.berth("folder", "ls", "data:runs", "-o", "json")
	var files []struct {
		Path string
		Size int64
	}
	if err := json.Unmarshal([]byte(r.out), &files); err != nil || len(files) != 1 || files[0].Size != 1234567 {
		t.Errorf("%+v: %v", r, err)
	}
}

func TestFolderUsage(t *testing.T) {
	f := newFake(t)
	said := sayings(f, map[string]string{
		"Vfolders": oneFolder,
		"QuotaScopes": `{"quotaScopes":{"edges":[{"node":{"id":"s-1","usedBytes":2048,"effectiveLimitBytes":4096,"usedInodes":13,"limitInodes":100,"enforcement":"hard",
			"volume":{"id":"v-1","name":"fast"},"holderProject":{"id":"p-1","name":"thesis"}}}],"pageInfo":{}}}`,
	})
	r := f.berth("folder", "usage")
	for _, want := range []string{"project thesis", "all", "data", "2 KiB", "4 KiB", "100", "hard", "12"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	if !strings.Contains(said["QuotaScopes"], `"mine":true`) {
		t.Errorf("asked for %s", said["QuotaScopes"])
	}
}

func TestFolderMove(t *testing.T) {
	f := newFake(t)
	said := sayings(f, map[string]string{
		"MoveFiles":       `{"payload":{"results":[{"path":"a","error":null},{"path":"b","error":"it exists"}]}}`,
		"MakeDirectories": `{"payload":{"results":[{"path":"z","error":null}]}}`,
		"CopyFiles":       `{"payload":{"vfolder":{"id":"f-2"},"task":{"id":"t-1","title":"copy","status":"done"}}}`,
		"DeleteFiles":     `{"payload":{"results":[{"path":"a","error":null}]}}`,
	})
	f.answer["Vfolders"] = func(vars json.RawMessage) string {
		for name, volume := range map[string]string{"near": "v-1", "far": "v-2"} {
			if strings.Contains(string(vars), `"`+name+`"`) {
				return `{"vfolders":{"edges":[{"node":{"id":"f-` + name + `","name":"` + name + `","quotaScope":{"volume":{"id":"` + volume + `"}}}}],"pageInfo":{}}}`
			}
		}
		return oneFolder
	}
	for _, c := range []struct {
		args, op, says string
		code           int
	}{
		{"folder mv data:a b/c", "MoveFiles", `"items":[{"from":"a","to":"b/c"}],"toVfolder":"f-1"}}`, exitGeneral},
		{"folder mv data:a data:b/ -f", "MoveFiles", `"items":[{"from":"a","to":"b/a"}],"toVfolder":"f-1","overwrite":true}}`, exitGeneral},
		{"folder mv data:a data:x/b near:", "MoveFiles", `"items":[{"from":"a","to":"a"},{"from":"x/b","to":"b"}],"toVfolder":"f-near"}}`, exitGeneral},
		{"folder mv data:a far:z", "CopyFiles", `"items":[{"from":"a","to":"z"}],"toVfolder":"f-far"}}`, 0},
		{"folder cp data:a data:b far:z", "CopyFiles", `"items":[{"from":"a","to":"z/a"},{"from":"b","to":"z/b"}]`, 0},
		{"folder cp -p data:a data:b far:z/y", "MakeDirectories", `"vfolder":"f-far","paths":["z/y"]`, 0},
		{"folder mv --parents data:a x/y/b", "MakeDirectories", `"vfolder":"f-1","paths":["x/y"]`, exitGeneral},
		{"folder mv data a", "", "", exitUsage},
		{"folder mv data:a near:b far:", "", "", exitUsage},
	} {
		r := f.berth(strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(said[c.op], c.says) {
			t.Errorf("%s: %+v, said %s", c.args, r, said[c.op])
		}
	}
	if !strings.Contains(said["DeleteFiles"], `"paths":["a"]`) {
		t.Errorf("after it was copied, deleted %s", said["DeleteFiles"])
	}
	if r := f.berth("folder", "mv", "data:a", "data:b", "near:"); !strings.Contains(r.errors, "b: it exists") || !strings.Contains(r.errors, "1 path failed") || strings.TrimSpace(r.out) != "a" {
		t.Errorf("%+v", r)
	}
	// Nothing is copied where its directory could not be made.
	f.data("MakeDirectories", `{"payload":{"results":[{"path":"z","error":"it is a file"}]}}`)
	delete(said, "CopyFiles")
	if r := f.berth("folder", "cp", "-p", "data:a", "far:z/"); r.code == 0 || !strings.Contains(r.errors, "it is a file") || said["CopyFiles"] != "" {
		t.Errorf("%+v, copied %s", r, said["CopyFiles"])
	}
	// What could not be copied stays.
	f.data("CopyFiles", `{"payload":{"vfolder":{"id":"f-2"},"task":{"id":"t-1","title":"copy","status":"failed","message":"no room"}}}`)
	delete(said, "DeleteFiles")
	if r := f.berth("folder", "mv", "data:a", "far:z"); r.code == 0 || !strings.Contains(r.errors, "no room") || said["DeleteFiles"] != "" {
		t.Errorf("%+v, deleted %s", r, said["DeleteFiles"])
	}
}

func TestFolderCreate(t *testing.T) {
	f := newFake(t)
	said := sayings(f, map[string]string{
		"Vfolders": oneFolder, "Projects": oneProject,
		"CreateVfolder": `{"payload":{"vfolder":{"id":"f-1","name":"new"}}}`,
		"CloneVfolder":  `{"payload":{"vfolder":{"id":"f-1","name":"new"},"task":{"id":"t-1","status":"done"}}}`,
	})
	for _, c := range []struct {
		args, op, says string
		code           int
	}{
		{"folder create new --usage-mode data", "CreateVfolder", `{"name":"new","usageMode":"data"}`, 0},
		{"folder create new --project thesis --permission read-write-delete", "CreateVfolder", `{"name":"new","project":"p-1","permission":"read_write_delete"}`, 0},
		{"folder clone data new --project thesis --usage-mode model --permission read-only", "CloneVfolder",
			`{"id":"f-1","name":"new","project":"p-1","usageMode":"model","permission":"read_only"}`, 0},
		{"folder create new --permission all", "", "", exitUsage},
	} {
		r := f.berth(strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(said[c.op], c.says) {
			t.Errorf("%s: %+v, said %s", c.args, r, said[c.op])
		}
	}
}

func TestAdminVolume(t *testing.T) {
	f := newFake(t)
	said := sayings(f, map[string]string{
		"Volumes": `{"volumes":[{"id":"v-1","name":"fast"}]}`,
		"VolumeDetails": `{"volumes":[{"id":"v-1","name":"fast","backend":"xfs","proxy":"s1","health":"degraded","healthMessage":"slow disk","usedBytes":1024,"totalBytes":2048,
			"usedInodes":7,"totalInodes":70,"enforcement":"hard","capabilities":["scope","quota-inodes"],"myPermissions":["create_folder"],
			"performance":{"at":"2026-03-04T11:59:00Z","windowSeconds":10,"readOpsPerSecond":12.4,"readBytesPerSecond":1048576,"writeLatencyMicros":1500},
			"grants":[{"id":"g-1","everybody":true,"permissions":["mount"]}]}]}`,
		"VolumeOrphans": `{"node":{"orphans":{"complete":true,"scopes":[{"scope":"s-1","usedBytes":4096}],
			"folders":[{"state":"present","scope":"s-1","folder":"f-1","path":"s1/f1"},{"state":"unknown","scope":"","folder":"","path":"lost+found"}],
			"missing":[{"id":"f-9","name":"gone"}]}}}`,
		"QuotaScopes":   `{"quotaScopes":{"edges":[],"pageInfo":{}}}`,
		"Users":         `{"users":{"edges":[{"node":{"id":"u-1","email":"ada@example.org"}}],"pageInfo":{}}}`,
		"SetQuotaScope": `{"payload":{"quotaScope":{"id":"s-1","kind":"user","limitInodes":10,"enforcement":"hard","volume":{"id":"v-1","name":"fast"}}}}`,
	})
	var removed []string
	f.answer["RemoveOrphan"] = func(vars json.RawMessage) string {
		removed = append(removed, string(vars))
		return `{"payload":{"task":{"id":"t-1","title":"remove","status":"done"}}}`
	}
	for _, c := range []struct {
		args string
		code int
		out  []string
	}{
		{"admin volume ls", 0, []string{"fast", "degraded", "1 KiB", "2 KiB", "hard", "12/s, 1 MiB/s", "slow disk"}},
		{"admin volume show fast", 0, []string{"degraded: slow disk", "7 of 70", "scope, quota-inodes", "create-folder", "over 10 s", "1.50 ms", "everybody", "mount"}},
		{"admin volume show slow", exitNotFound, nil},
		{"admin volume orphans fast", 0, []string{"s1/f1", "unknown", "lost+found", "quota scope", "folder gone", "missing"}},
		{"admin volume orphans fast --remove", exitUsage, nil},
		{"admin volume orphans fast --remove --yes", 0, []string{"remove", "done"}},
		{"admin quota set fast --user ada@example.org --files 10", 0, []string{"10", "hard"}},
	} {
		r := f.berth(strings.Fields(c.args)...)
		if r.code != c.code {
			t.Errorf("%s: %+v", c.args, r)
		}
		for _, want := range c.out {
			if !strings.Contains(r.out, want) {
				t.Errorf("%s: no %q in\n%s", c.args, want, r.out)
			}
		}
	}
	if len(removed) != 2 || !strings.Contains(removed[0], `"folder":"f-1"`) || strings.Contains(removed[1], "folder") {
		t.Errorf("removed %v", removed)
	}
	if !strings.Contains(said["SetQuotaScope"], `"limitInodes":10`) || strings.Contains(said["SetQuotaScope"], `"limitBytes"`) {
		t.Errorf("said %s", said["SetQuotaScope"])
	}
}
