package main

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func newServer(t *testing.T) *clitest.Server { return clitest.New(t, commands) }

func TestErrorsNameTheFlag(t *testing.T) {
	f := newServer(t)
	f.Data("CreateResourcePolicy", `{"code":"INVALID_ARGUMENT","field":"maxSessions","message":"must be less"}`)
	if r := f.Run("admin", "policy", "create", "x", "--sessions", "7"); r.Code != cli.ExitInvalid || !strings.Contains(r.Errors, "see --sessions") {
		t.Errorf("%+v", r)
	}
	for line, flag := range map[string]string{
		"admin policy create x --slots cpu":            "--slots",
		"admin policy create x --sessions many":        "--sessions",
		"admin policy create x --lifetime soon":        "--lifetime",
		"admin policy attach x --user a --domain b":    "--user",
		"admin role create x --allow moon=read":        "--allow",
		"admin role grant x y":                         "--project",
		"admin volume grant v --everybody --allow fly": "--allow",
		"admin user create a@b --role boss":            "--role",
		"admin project create x --type other":          "--type",
		"admin domain update x --sign-up maybe":        "--sign-up",
		"admin group grant x":                          "--keypair",
		"admin retention set audit 0":                  "DAYS",
		"token create x --scope all":                   "--scope",
		"token create x --expires soon":                "--expires",
	} {
		if r := f.Run(strings.Fields(line)...); r.Code != cli.ExitUsage || !strings.Contains(r.Errors, flag) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	f := newServer(t)
	for _, args := range [][]string{
		{"nope"}, {"session", "nope"}, {"session", "show"}, {"session", "ls", "-o", "xml"}, {"run"}, {"api", "{x}", "-F", "a=}"},
		{"session", "forward", "s"}, {"usage", "--from", "yesterday"}, {"session", "events"},
	} {
		want := cli.ExitUsage
		if args[0] == "run" {
			want = cli.ExitOwnFailure
		}
		if r := f.Run(args...); r.Code != want || r.Out != "" || r.Errors == "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := f.RunWith(map[string]string{"HOME": t.TempDir()}, "", "session", "ls"); r.Code != cli.ExitDenied {
		t.Errorf("without a login: %+v", r)
	}
}
