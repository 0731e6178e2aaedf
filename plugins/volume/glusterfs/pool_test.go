package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
)

func TestMounted(t *testing.T) {
	for source, want := range map[string][2]string{
		"server:berth": {"berth", ""}, "server:/berth": {"berth", ""}, "a,b:/berth/some/where": {"berth", "some/where"},
		"[fd00::1]:/berth": {"berth", ""}, "/dev/sda1": {}, "server:": {}, "server:/": {}, "": {},
	} {
		volume, below, ok := mounted(source)
		if ok != (want[0] != "") || ok && (volume != want[0] || below != want[1]) {
			t.Errorf("%q is %q, %q, %v", source, volume, below, ok)
		}
	}
}

// TestRead parses shortened outputs of Gluster 10.3.
func TestRead(t *testing.T) {
	xml := func(ret, errno, text, more string) string {
		return `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><cliOutput><opRet>` + ret + `</opRet><opErrno>` + errno +
			`</opErrno><opErrstr>` + text + `</opErrstr>` + more + `</cliOutput>`
	}
	for name, c := range map[string]struct {
		out      driver.Output
		want     codes.Code
		wantText string
	}{
		"done":           {driver.Output{Stdout: xml("0", "0", "", "<cliOp>volQuota</cliOp>")}, codes.OK, ""},
		"quota":          {driver.Output{Stdout: xml("0", "0", "", "<volQuota><limit><path>/x</path><hard_limit>N/A</hard_limit><used_space>7</used_space></limit></volQuota>")}, codes.OK, ""},
		"busy":           {driver.Output{Stdout: xml("-1", "30802", "Another transaction is in progress for berth. Please try again after some time.", ""), Code: 2}, codes.Unavailable, "Another"},
		"disabled":       {driver.Output{Stdout: xml("-1", "30800", "Quota is disabled, please enable quota", "")}, codes.FailedPrecondition, "disabled"},
		"no volume":      {driver.Output{Stdout: xml("-1", "30800", "Volume nov does not exist", "")}, codes.FailedPrecondition, "nov"},
		"no directory":   {driver.Output{Stdout: xml("-2", "30800", "Failed to get trusted.gfid attribute on path /nope. Reason : No such file or directory", "")}, codes.FailedPrecondition, "/nope"},
		"stopped":        {driver.Output{Stdout: xml("-1", "30800", "Volume is stopped, start volume before executing quota command.", "")}, codes.FailedPrecondition, "stopped"},
		"something else": {driver.Output{Stdout: xml("-1", "30800", "Staging failed", "")}, codes.Internal, "Staging"},
		"no glusterd":    {driver.Output{Stderr: "Connection failed. Please check if gluster daemon is operational.\n", Code: 1}, codes.Unavailable, "glusterd"},
		"nothing":        {driver.Output{Code: 1}, codes.Internal, "ended with 1 and no output"},
		"half":           {driver.Output{Stdout: xml("0", "0", "", "")[:70]}, codes.Internal, ""},
		"no number":      {driver.Output{Stdout: xml("0", "0", "", "<volQuota><limit><hard_limit>20MB</hard_limit></limit></volQuota>")}, codes.Internal, ""},
	} {
		a, err := read(c.out)
		if got := status.Code(err); got != c.want || !strings.Contains(status.Convert(err).Message(), c.wantText) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "quota" && (a.Quotas[0].Limit.int64 != nil || a.Quotas[0].Used.or(0) != 7) {
			t.Errorf("%s: %+v", name, a.Quotas)
		}
	}
}

// program creates a gluster program from shell commands.
func program(t *testing.T, text string) *pool {
	path := filepath.Join(t.TempDir(), "gluster")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return newPool(path, "berth")
}

const (
	done = `<cliOutput><opRet>0</opRet><opErrno>0</opErrno><opErrstr/></cliOutput>`
	busy = `<cliOutput><opRet>-1</opRet><opErrno>30802</opErrno><opErrstr>Another transaction is in progress</opErrstr></cliOutput>`
)

func TestAskAgain(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	p := program(t, `echo "$@" >>`+seen+`; if [ $(wc -l <`+seen+`) -lt 3 ]; then echo '`+busy+`'; else echo '`+done+`'; fi`)
	n := int64(5)
	if err := p.limit(t.Context(), ofBytes, "/a $(b)", &n); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(seen)
	if want := strings.Repeat("--mode=script --xml volume quota berth limit-usage /a $(b) 5\n", 3); err != nil || string(raw) != want {
		t.Errorf("asked %q, %v", raw, err)
	}
}

// TestHangs checks that a caller waits only until its deadline and does not block the next one.
func TestHangs(t *testing.T) {
	p := program(t, `exec sleep 1000`)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := p.ask(ctx, "info", "berth")
		cancel()
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("it hangs: %v", err)
		}
	}
}
