package integration

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/berthhq/berth/ent/objectstorage"
	"github.com/berthhq/berth/ent/task"
	"github.com/berthhq/berth/manager/managertest"
)

const (
	updateStorage = `mutation($in: UpdateObjectStorageInput!) { updateObjectStorage(input: $in) { objectStorage { id } } }`
	testStorage   = `mutation($id: ID!) { testObjectStorage(input: {id: $id}) { ok message field } }`
)

func TestHostileObjects(t *testing.T) {
	l := newLake(t, map[string][]byte{"good": []byte("good"), "zz": []byte("zz")})
	hostile := []string{"..%2Fup", "a%2F..%2Fb", "%2Fabsolute", "n%00ul", "b%2F", "good%2Fbelow", "x%2F%2Fy", strings.Repeat("n", 256), "bell%07"}
	l.breaks(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/lake/good/below" { // the server keeps objects as files and cannot serve this key
			w.Header().Set("ETag", `"x"`)
			_, _ = io.WriteString(w, "four")
			return true
		}
		if r.URL.Query().Get("list-type") != "2" {
			return false
		}
		resp, body := l.answer(t, r)
		after := r.URL.Query().Get("start-after")
		var more strings.Builder
		for i, key := range hostile {
			if name := fmt.Sprintf("h%d", i); name > after || after == "" {
				fmt.Fprintf(&more, "<Contents><Key>%s</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>&quot;x&quot;</ETag><Size>4</Size></Contents>", key)
			}
		}
		if r.URL.Query().Get("prefix") == "" && after == "" {
			body = bytes.Replace(body, []byte("</ListBucketResult>"), []byte(more.String()+"<EncodingType>url</EncodingType></ListBucketResult>"), 1)
			resp.Header.Del("Content-Length")
		}
		reply(w, resp, body)
		return true
	})
	got := l.ends(t, l.bring(t, nil), task.StatusFailed)
	if f := got.ObjectTransfer; f.Failed != int64(len(hostile)) || f.Files != int64(len(hostile))+2 {
		t.Errorf("figures %+v", f)
	}
	for _, one := range got.ObjectTransfer.Failures {
		if one.Error == "" || one.Error == "internal error" || strings.Contains(one.Error, "NoSuchKey") {
			t.Errorf("%q is refused: %s", one.Path, one.Error)
		}
	}
	if string(l.file(t, "good")) != "good" || string(l.file(t, "zz")) != "zz" {
		t.Error("the valid objects were not imported")
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("in the folder: %v %v", entries, err)
	}
}

func TestBrokenObjectStorage(t *testing.T) {
	body := random(5 << 20)
	l := newLake(t, map[string][]byte{"a": body, "b": random(100)})
	for name, c := range map[string]struct {
		wrong    func() func(w http.ResponseWriter, r *http.Request) bool
		want     task.Status
		wantText string
	}{
		"cut twice": {func() func(http.ResponseWriter, *http.Request) bool {
			var n atomic.Int32
			return func(w http.ResponseWriter, r *http.Request) bool {
				if !isObject(r, http.MethodGet) || r.URL.Path != "/lake/a" || n.Add(1) > 2 {
					return false
				}
				if at := r.Header.Get("Range"); n.Load() == 2 && (at == "" || r.Header.Get("If-Match") == "") {
					t.Errorf("it begins again: range %q", at)
				}
				resp, all := l.answer(t, r)
				resp.Header.Set("Content-Length", fmt.Sprint(len(all)))
				reply(w, resp, all[:len(all)/2])
				panic(http.ErrAbortHandler)
			}
		}, task.StatusDone, ""},
		"damaged once": {func() func(http.ResponseWriter, *http.Request) bool {
			var n atomic.Int32
			return func(w http.ResponseWriter, r *http.Request) bool {
				if !isObject(r, http.MethodGet) || r.URL.Path != "/lake/a" || n.Add(1) > 1 {
					return false
				}
				resp, all := l.answer(t, r)
				all[len(all)/3]++
				reply(w, resp, all)
				return true
			}
		}, task.StatusDone, ""},
		"busy at first": {func() func(http.ResponseWriter, *http.Request) bool {
			var mu sync.Mutex
			seen := map[string]bool{} // each request fails once, regardless of concurrent ones
			return func(w http.ResponseWriter, r *http.Request) bool {
				key := r.Method + " " + r.URL.String() + " " + r.Header.Get("Range")
				mu.Lock()
				defer mu.Unlock()
				if seen[key] {
					return false
				}
				seen[key] = true
				w.Header().Set("Retry-After", "0")
				w.WriteHeader([]int{http.StatusServiceUnavailable, http.StatusTooManyRequests}[len(seen)%2])
				return true
			}
		}, task.StatusDone, ""},
		"changed after it was listed": {func() func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if isObject(r, http.MethodGet) && r.URL.Path == "/lake/a" {
					body = append(random(10), body[10:]...)
					if _, err := l.minio.PutObject(t.Context(), "lake", "a", bytes.NewReader(body), int64(len(body)), minio.PutObjectOptions{}); err != nil {
						t.Error(err)
					}
				}
				return false
			}
		}, task.StatusFailed, "1 of 2 files could not be imported; a: the object has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			l.breaks(c.wrong())
			defer l.breaks(nil)
			got := l.ends(t, l.bring(t, managertest.Vars{"existing": "OVERWRITE", "directory": strings.ReplaceAll(name, " ", "-")}), c.want)
			if !strings.Contains(got.Message, c.wantText) {
				t.Errorf("says %q, want %q", got.Message, c.wantText)
			}
			if c.want == task.StatusDone && !bytes.Equal(l.file(t, strings.ReplaceAll(name, " ", "-")+"/a"), body) {
				t.Error("other bytes came")
			}
			if left := l.leftovers(t); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A storage that is busy during its first listing is retried.
func TestBusyObjectStorage(t *testing.T) {
	l := newLake(t, map[string][]byte{"a": random(10)})
	var refused atomic.Int32
	l.breaks(func(w http.ResponseWriter, _ *http.Request) bool {
		if refused.Add(1) > 2 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	var got struct {
		TestObjectStorage struct {
			Ok      bool
			Message string
		}
	}
	l.Member.Must(t, testStorage, managertest.Vars{"id": l.id}, &got)
	if !got.TestObjectStorage.Ok || refused.Load() < 3 {
		t.Errorf("%+v after %d requests", got.TestObjectStorage, refused.Load())
	}
}

func TestWhatIsWrongWithAnObjectStorage(t *testing.T) {
	l := newLake(t, map[string][]byte{"x/y/z": []byte("z"), "x/a": []byte("a"), "w": []byte("w")})
	admin, member := l.Manager.As(t, l.A.Admin), l.Member
	n := 0
	inside := strings.Replace(l.gate.url, "127.0.0.1", "127.0.0.2", 1) // 127.0.0.1 is allowed by the operator
	su := l.Manager.As(t, l.Superadmin)
	const unproven = "does not answer a listing"
	for name, c := range map[string]struct {
		as              *managertest.Client
		more            managertest.Vars
		field, wantText string
	}{
		"nothing":        {admin, nil, "", ""},
		"the bucket":     {su, managertest.Vars{"bucket": "no-such"}, "bucket", "bucket"},
		"the access key": {su, managertest.Vars{"accessKeyID": "nobody"}, "accessKeyId", "access key"},
		"the secret":     {su, managertest.Vars{"secret": "another"}, "secret", "signature"},
		"the region":     {su, managertest.Vars{"region": "eu-north-9"}, "region", "region"},
		"nobody listens": {su, managertest.Vars{"endpoint": "http://127.0.0.1:1"}, "endpoint", "cannot be reached: connection refused"},
		"no such host":   {su, managertest.Vars{"endpoint": "http://no-such-host.invalid"}, "endpoint", "cannot be reached: the host does not exist"},
		"metadata":       {su, managertest.Vars{"endpoint": "http://169.254.169.254"}, "endpoint", "is not on the Internet"},
		"inside":         {su, managertest.Vars{"endpoint": inside}, "endpoint", "is not on the Internet"},
		// Only operators see which services listen on which host.
		"a domain's bucket":              {admin, managertest.Vars{"bucket": "no-such"}, "endpoint", unproven},
		"a domain's secret":              {admin, managertest.Vars{"secret": "another"}, "endpoint", unproven},
		"a domain's, without a listener": {admin, managertest.Vars{"endpoint": "http://127.0.0.1:1"}, "endpoint", unproven},
		"a domain's, another server":     {admin, managertest.Vars{"endpoint": l.Manager.URL}, "endpoint", unproven},
		"a domain's, inside":             {admin, managertest.Vars{"endpoint": inside}, "endpoint", unproven},
		"a domain's, metadata":           {admin, managertest.Vars{"endpoint": "http://169.254.169.254"}, "endpoint", unproven},
		"a user's, inside":               {member, managertest.Vars{"domain": nil, "endpoint": inside}, "endpoint", unproven},
		"a user's, metadata":             {member, managertest.Vars{"domain": nil, "endpoint": "http://[fd00:ec2::254]"}, "endpoint", unproven},
	} {
		t.Run(name, func(t *testing.T) {
			n++
			in := l.storage(fmt.Sprint("s", n), "lake", managertest.Vars{"domain": l.A.ID})
			maps.Copy(in, c.more)
			id := addStorage(t, c.as, in)
			var got struct {
				TestObjectStorage struct {
					Ok             bool
					Message, Field string
				}
			}
			c.as.Must(t, testStorage, managertest.Vars{"id": id}, &got)
			r := got.TestObjectStorage
			if r.Ok != (c.field == "") || r.Field != c.field || !strings.Contains(r.Message, c.wantText) {
				t.Errorf("%+v, want field %q and %q", r, c.field, c.wantText)
			}
			if strings.Contains(r.Message, "secret of the test") || strings.Contains(r.Message, "X-Amz-") {
				t.Errorf("a secret shows in %q", r.Message)
			}
		})
	}
	t.Run("its input", func(t *testing.T) {
		for field, more := range map[string]managertest.Vars{
			"name": {"name": ""}, "endpoint": {"endpoint": "http://user:pw@host"}, "bucket": {"bucket": "A"},
			"region": {"region": "a b"}, "prefix": {"prefix": "a/../b"}, "secret": {"secret": ""},
		} {
			errs := member.Ask(t, createStorage, managertest.Vars{"in": l.storage("bad", "lake", more)}, nil)
			if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != field {
				t.Errorf("%s: %s", field, errs)
			}
		}
	})
	t.Run("too many", func(t *testing.T) {
		own := func(n int) managertest.Vars {
			return l.storage(fmt.Sprint("own-", n), "lake", managertest.Vars{"domain": nil})
		}
		there := l.Client.ObjectStorage.Query().Where(objectstorage.OwnerID(l.A.Member.ID)).CountX(l.System(t))
		for n := range 100 - there {
			l.Client.ObjectStorage.Create().SetName(fmt.Sprint("many-", n)).SetEndpoint("https://s3.example.org").SetBucket("lake").SetOwnerID(l.A.Member.ID).ExecX(l.System(t))
		}
		if errs := member.Ask(t, createStorage, managertest.Vars{"in": own(100)}, nil); errs.Code() != "RESOURCE_EXHAUSTED" || errs[0].Extensions.Limit != "100" {
			t.Errorf("the 101st: %s", errs)
		}
		l.Client.ObjectStorage.Delete().Where(objectstorage.NameHasPrefix("many-")).ExecX(l.System(t))
	})
	t.Run("another endpoint", func(t *testing.T) {
		errs := admin.Ask(t, updateStorage, managertest.Vars{"in": managertest.Vars{"id": l.id, "endpoint": "https://thief.example.org"}}, nil)
		if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "secret" {
			t.Errorf("the secret goes elsewhere: %s", errs)
		}
		errs = admin.Ask(t, updateStorage, managertest.Vars{"in": managertest.Vars{"id": l.id, "accessKeyID": "another"}}, nil)
		if errs.Code() != "INVALID_ARGUMENT" || errs[0].Extensions.Field != "secret" {
			t.Errorf("the secret goes with another key: %s", errs)
		}
	})
	t.Run("read only", func(t *testing.T) {
		admin.Must(t, updateStorage, managertest.Vars{"in": managertest.Vars{"id": l.id, "readOnly": true}}, nil)
		errs := member.Ask(t, exportObjects, managertest.Vars{"in": l.input(nil)}, nil)
		if errs.Code() != "FAILED_PRECONDITION" {
			t.Errorf("export from a read-only folder: %s", errs)
		}
	})
	t.Run("browse", func(t *testing.T) {
		var got struct {
			Node struct {
				Objects struct {
					Objects []struct {
						Name, Path string
						Directory  bool
						Size       int64
					}
					EndCursor *string
				}
			}
		}
		const browse = `query($id: ID!, $path: String, $first: Int, $after: String) { node(id: $id) { ... on ObjectStorage {
			objects(path: $path, first: $first, after: $after) { objects { name path directory size } endCursor } } } }`
		var seen []string
		for after := (*string)(nil); ; after = got.Node.Objects.EndCursor {
			member.Must(t, browse, managertest.Vars{"id": l.id, "path": "x", "first": 1, "after": after}, &got)
			for _, o := range got.Node.Objects.Objects {
				seen = append(seen, fmt.Sprint(o.Path, o.Directory))
			}
			if got.Node.Objects.EndCursor == nil {
				break
			}
		}
		own := addStorage(t, member, l.storage("own", "lake", nil))
		errs := l.Manager.As(t, l.Superadmin).Ask(t, browse, managertest.Vars{"id": own}, nil)
		if errs.Code() != "PERMISSION_DENIED" {
			t.Errorf("a superadmin reads a member's own storage: %s", errs)
		}
		slices.Sort(seen)
		if want := []string{"x/afalse", "x/ytrue"}; !slices.Equal(seen, want) {
			t.Errorf("below x: %v, want %v", seen, want)
		}
	})
	t.Run("fields that are kept", func(t *testing.T) {
		l.ends(t, l.bring(t, nil), task.StatusDone)
		for _, row := range l.Client.Task.Query().AllX(l.System(t)) {
			if all := string(row.Input) + string(row.State) + row.Message + row.Title; strings.Contains(all, l.Secret) || strings.Contains(all, "X-Amz-Signature") {
				t.Errorf("a secret is kept with task %s: %s", row.ID, all)
			}
		}
		if row := l.Client.ObjectStorage.GetX(l.System(t), l.id); bytes.Contains(row.SecretSealed, []byte(l.Secret)) || len(row.SecretSealed) == 0 {
			t.Error("the secret is not sealed")
		}
	})
}
