package peer_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthhq/berth/agent/runner/peer"
)

func files(secret byte) peer.Files {
	return peer.Files{
		Secret:  bytes.Repeat([]byte{secret}, peer.SecretSize),
		Members: []peer.Member{{Hostname: "main", Slots: 2}, {Hostname: "sub1", Slots: 4}},
	}
}

func written(t *testing.T, f peer.Files) (dir string, texts map[string]string) {
	t.Helper()
	dir, texts = filepath.Join(t.TempDir(), "cluster"), map[string]string{}
	if err := f.Write(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		texts[e.Name()] = string(text)
	}
	return dir, texts
}

func TestFilesOfASession(t *testing.T) {
	t.Parallel()
	dir, first := written(t, files(1))
	if want := "main slots=2\nsub1 slots=4\n"; first["hostfile"] != want {
		t.Errorf("hostfile is %q, want %q", first["hostfile"], want)
	}
	if want := "main:2\nsub1:4\n"; first["machinefile"] != want {
		t.Errorf("machinefile is %q, want %q", first["machinefile"], want)
	}
	for _, name := range []string{"id_ed25519", "host_ed25519"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != 0o400 {
			t.Errorf("%s has mode %v, %v", name, st.Mode(), err)
		}
	}
	if first["id_ed25519"] == first["host_ed25519"] {
		t.Error("clients and servers have the same key")
	}
	_, other := written(t, files(2))
	if other["id_ed25519"] == first["id_ed25519"] || other["known_hosts"] == first["known_hosts"] {
		t.Error("two sessions have the same keys")
	}
	// A kernel that is restarted on another machine has the same keys. The public keys are
	// compared, because the text of a private key contains random bytes.
	if _, again := written(t, files(1)); again["known_hosts"] != first["known_hosts"] {
		t.Error("a session has two host keys")
	}
}

func TestFilesWithoutASecret(t *testing.T) {
	t.Parallel()
	f := files(1)
	f.Secret = nil
	dir, texts := written(t, f)
	if want := map[string]string{"hostfile": "main slots=2\nsub1 slots=4\n", "machinefile": "main:2\nsub1:4\n"}; !cmp.Equal(texts, want) {
		t.Error(cmp.Diff(want, texts))
	}
	if f.SSHConfig(dir) != "" || len(f.Keys(dir)) > 0 {
		t.Error("there are keys")
	}
	f.Secret = []byte("short")
	if err := f.Write(dir); err == nil || !strings.Contains(err.Error(), "5 bytes, not 32") {
		t.Errorf("a secret of 5 bytes: %v", err)
	}
}

func TestClientFindsConfiguration(t *testing.T) {
	t.Parallel()
	const include = "Include /opt/berth/cluster/ssh_config\n"
	for name, c := range map[string]struct{ system, own, want string }{
		"Debian":                {"# a comment\nInclude /etc/ssh/ssh_config.d/*.conf\nHost *\n", "Port 1\n", "Port 1\n"},
		"no configuration":      {"", "", include},
		"without an Include":    {"Host *\n    SendEnv LANG\n", "Host a\n", include + "Host a\n"},
		"only a comment":        {"# Include /etc/ssh/ssh_config.d/*.conf\n", "", include},
		"the line exists":       {"", "Port 1\n" + include, "Port 1\n" + include},
		"small letters, equals": {"  include=/etc/ssh/ssh_config.d/*.conf", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			system, own := filepath.Join(home, "ssh_config"), filepath.Join(home, ".ssh", "config")
			if c.system != "" {
				if err := os.WriteFile(system, []byte(c.system), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if c.own != "" {
				if err := os.Mkdir(filepath.Dir(own), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(own, []byte(c.own), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // a restart changes nothing
				if err := peer.Connect(system, home); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(own)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("the user's file is %q, want %q", got, c.want)
			}
		})
	}
}
