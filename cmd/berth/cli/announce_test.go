package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

// A person sees each announcement once, without anything that controls the terminal; programs do not see it.
func TestAnnouncements(t *testing.T) {
	person := true
	f := clitest.New(t, func(a *cli.App) []*cobra.Command {
		a.Interactive = func() bool { return person }
		return []*cobra.Command{a.Verb("ask", "Ask the server", cli.Args(0, 0), func(context.Context, *client.Client, []string) error { return nil })}
	})
	f.Data("CurrentAnnouncements", `{"currentAnnouncements":[{"id":"n","text":"Maintenance\n\u001b[2Jtoday","severity":"WARNING","audience":"EVERYONE","scopeID":null,"dismissable":true,"startsAt":"2026-03-01T12:00:00Z","endsAt":null,"createdAt":"2026-03-01T12:00:00Z"}]}`)
	env := map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.URL, "BERTH_CONFIG": t.TempDir() + "/config.yaml"}
	run := func() string {
		t.Helper()
		got := f.RunWith(env, "", "ask")
		if got.Code != 0 {
			t.Fatalf("%+v", got)
		}
		return got.Errors
	}
	person = false
	if said := run(); strings.Contains(said, "Maintenance") {
		t.Errorf("a program sees %q", said)
	}
	person = true
	env["BERTH_ANNOUNCEMENTS"] = "off"
	if said := run(); strings.Contains(said, "Maintenance") {
		t.Errorf("it is turned off: %q", said)
	}
	delete(env, "BERTH_ANNOUNCEMENTS")
	if said := run(); !strings.Contains(said, "Announcement (warning): Maintenance [2Jtoday") {
		t.Errorf("%q", said)
	}
	if said := run(); strings.Contains(said, "Maintenance") {
		t.Errorf("again: %q", said)
	}
}
