package e2e

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// Three sessions are unused for the allowed minute. The one without traffic is ended after a
// warning, with a reason. The one with an open terminal and the one that an admin has exempted
// continue.
func TestIdleSessionsEnd(t *testing.T) {
	u := platform.User(t)
	admin := platform.UserAs(t, "SUPERADMIN").Shell()
	left, open, exempt := u.Run(cluster.Interactive()), u.Run(cluster.Interactive()), u.Run(cluster.Interactive())
	for _, s := range []*client.Session{left, open, exempt} {
		u.Until(s.ID, "RUNNING")
	}
	rule := []string{"--kind", "network", "--timeout", "1m", "--warning", "10s"}
	try := admin.Must(slices.Concat([]string{"admin", "idle", "dry-run", "--project", u.Project}, rule)...)
	if !strings.Contains(try, "of 3 sessions now") || !strings.Contains(try, left.Name) {
		t.Errorf("dry run of the checker:\n%s", try)
	}
	if r := admin.Run("admin", "idle", "create", "hasty", "--kind", "network", "--timeout", "30s"); r.Code != 6 || !strings.Contains(r.Stderr, "60..31536000") {
		t.Errorf("a timeout that is too short: %+v", r)
	}
	admin.Must(slices.Concat([]string{"admin", "idle", "create", "nobody-comes"}, rule)...)
	t.Cleanup(func() { admin.Must("admin", "idle", "delete", "nobody-comes") })
	admin.Must("admin", "idle", "bind", "nobody-comes", "--project", u.Project)
	admin.Must("admin", "idle", "exempt", exempt.ID)

	// The timeout covers the minute, the interval of the checks, and the end of the container.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	terminal, err := u.OpenTerminal(ctx, client.TerminalOptions{Session: open.ID})
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() {
		_, err := terminal.Output(ctx, io.Discard, io.Discard)
		gone <- err
	}()
	if err := u.WatchSession(ctx, left.ID, nil, func(s client.SessionState) bool { return !s.Ended() }); err != nil {
		t.Fatalf("the unused session does not end: %v", err)
	}
	select {
	case err := <-gone:
		t.Errorf("the terminal ended: %v", err)
	default:
	}

	s := u.Show(left.ID)
	if s.TerminationReason == nil || *s.TerminationReason != "IDLE" || !strings.Contains(s.StatusMessage, "nobody-comes") {
		t.Errorf("ended by %v: %s", s.TerminationReason, s.StatusMessage)
	}
	var codes []string
	for _, e := range s.History {
		if strings.HasPrefix(e.Code, "idle") {
			codes = append(codes, e.Code)
		}
	}
	if len(codes) < 2 || codes[0] != "idle_warning" || codes[1] != "idle" {
		t.Errorf("its history has %v", codes)
	}
	if s := u.Show(open.ID); s.Status != "RUNNING" || s.Idle == nil || s.Idle.Checker != "nobody-comes" || s.Idle.WarnedAt != nil {
		t.Errorf("with an open terminal: %s, %+v", s.Status, s.Idle)
	}
	if s := u.Show(exempt.ID); s.Status != "RUNNING" || s.Idle != nil || !s.IdleExempt {
		t.Errorf("exempt: %s, %+v", s.Status, s.Idle)
	}
	terminal.Close()
	u.End(open.ID)
	u.End(exempt.ID)
}
