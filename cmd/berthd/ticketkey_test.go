package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/internal/ticket"
)

// The command as an operator gives it, to replicas and beside a berthd up.
func TestRotateTicketKey(t *testing.T) {
	data := t.TempDir()
	secrets := filepath.Join(data, "secrets")
	if err := os.Mkdir(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := ticket.LoadRing(secrets); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		cmd := root()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs(append([]string{"rotate-ticket-key"}, args...))
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, c := range []struct {
		args []string
		says string
		keys int
	}{
		{[]string{"--secrets", secrets}, "the new key signs from ", 2},
		{[]string{"--data", data, "--after", "2m"}, "tickets of the old one count until ", 3},
		{[]string{"--data", data, "--stolen"}, "tickets of the old keys count no longer\n", 1},
	} {
		said, err := run(c.args...)
		ring, lerr := ticket.LoadRing(secrets)
		if err != nil || lerr != nil || !strings.Contains(said, c.says) {
			t.Fatalf("%v: %q, %v, %v", c.args, said, err, lerr)
		}
		if n := len(ring.PublicKeys()); n != c.keys {
			t.Errorf("%v: %d keys count, want %d", c.args, n, c.keys)
		}
	}
	for _, args := range [][]string{nil, {"--data", data, "--secrets", secrets}, {"--data", t.TempDir()}, {"--data", data, "--after", "-1s"}} {
		if said, err := run(args...); err == nil {
			t.Errorf("%v is accepted: %s", args, said)
		}
	}
}
