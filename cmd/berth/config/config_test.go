package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/google/go-cmp/cmp"
)

func TestSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "config.yaml")
	f, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Set(Context{Name: "lab", URL: "https://lab", User: "a@b", Token: "one", TokenID: "1"})
	f.Set(Context{Name: "home", URL: "http://home", User: "a@b", Token: "two"})
	f.Set(Context{Name: "lab", URL: "https://lab", User: "a@b", Token: "three", TokenID: "3"})
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v lets others read the tokens", info.Mode())
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, got); diff != "" {
		t.Error(diff)
	}
	if c, err := got.Get(""); err != nil || c.Token != "three" {
		t.Errorf("current context = %v, %v", c, err)
	}
	if _, err := got.Get("other"); !errdefs.IsNotFound(err) {
		t.Errorf("unknown context: %v", err)
	}
	got.Remove("lab")
	if c, err := got.Get(""); c != nil || err != nil || len(got.Contexts) != 1 {
		t.Errorf("after removal: %v, %v, %v", c, err, got.Contexts)
	}
}

func TestPath(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"own variable": {map[string]string{"BERTH_CONFIG": "/x", "XDG_CONFIG_HOME": "/y", "HOME": "/z"}, "/x"},
		"XDG":          {map[string]string{"XDG_CONFIG_HOME": "/y", "HOME": "/z"}, "/y/berth/config.yaml"},
		"home":         {map[string]string{"HOME": "/z"}, "/z/.config/berth/config.yaml"},
		"nothing":      {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Path(func(k string) string { return c.env[k] })
			if got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
