package stories

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// The database is restored from a backup as in docs/backup.md. Sessions that are newer than the
// backup continue, and nothing ends until an operator leaves recovery mode. Then the operator ends
// the sessions that are not in the database.
func TestRestoreOfTheDatabase(t *testing.T) {
	berth := operator(t)
	group := group(t, berth, "restored", nodes())
	u := platform.User(t)
	t.Cleanup(func() { endAll(t, u) })
	start := func() string {
		s := u.Run(asks(group))
		u.Until(s.ID, "RUNNING")
		return s.ID
	}
	older, ended := start(), start()
	dump := filepath.Join(t.TempDir(), "berth.dump")
	postgres(t, "pg_dump", "--format=custom", "--file="+dump, platform.DSN())
	u.End(ended)
	u.Until(ended, "TERMINATED")
	newer := u.Show(start())

	for _, m := range platform.Managers {
		if err := m.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	postgres(t, "psql", platform.DSN(), "--quiet", "--command=DROP SCHEMA public CASCADE", "--command=CREATE SCHEMA public")
	postgres(t, "pg_restore", "--exit-on-error", "--no-owner", "--dbname="+platform.DSN(), dump)
	for _, m := range platform.Managers {
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
	}

	strays := func() (found []client.OccupancyDrift, missing int) {
		var audit client.OccupancyAudit
		if r := berth.Run("admin", "occupancy", "-o", "json"); r.Code > 1 || !strings.HasPrefix(r.Stdout, "{") {
			return nil, 0 // no manager answers yet
		} else {
			read(t, r.Stdout, &audit)
		}
		for _, d := range audit.Drift {
			switch d.Kind {
			case "ORPHAN":
				found = append(found, d)
			case "MISSING":
				missing++
			}
		}
		return found, missing
	}
	// A report of the agent about the end of this session can arrive before recovery mode is on. In
	// that case the session is not missing, because its end is recorded again.
	reported := func() bool { return u.Show(ended).Status == "TERMINATED" }
	var found []client.OccupancyDrift
	cluster.Eventually(t, "the platform shows unknown and missing containers", func() bool {
		var missing int
		found, missing = strays()
		return len(found) == 1 && (missing == 1 || reported())
	})
	cluster.Eventually(t, "a manager leads, and has turned recovery mode on", func() bool {
		r := berth.Run("admin", "cluster")
		return r.Code == 0 && strings.Contains(r.Stdout, "restored from a backup")
	})
	if d := found[0]; d.Kernel == nil || *d.Kernel != newer.Kernels[0].ID || d.Owner != u.Email || !strings.Contains(d.Next, "--repair") {
		t.Errorf("the unknown container: %+v", d)
	}
	if u.Show(older).Status != "RUNNING" || u.Show(ended).Status != "RUNNING" && !reported() || len(containers(t)) != 2 {
		t.Errorf("in recovery mode something has ended: %s, %s, %v", u.Show(older).Status, u.Show(ended).Status, containers(t))
	}
	if r := berth.Run("admin", "occupancy", "--repair"); !strings.Contains(r.Stderr, "recovery mode") {
		t.Errorf("%+v", r)
	}
	said := berth.Must("admin", "cluster", "recovery", "off", "--yes")
	for _, want := range []string{u.Email, "--repair", "ends as lost"} {
		if !strings.Contains(said, want) && (want != "ends as lost" || !reported()) {
			t.Errorf("the list of what will end lacks %q:\n%s", want, said)
		}
	}
	cluster.Eventually(t, "a session that ran at the time of the backup ends", func() bool { return u.Show(ended).Status != "RUNNING" })
	if u.Show(older).Status != "RUNNING" || len(containers(t)) != 2 {
		t.Errorf("after recovery mode: %s, %v", u.Show(older).Status, containers(t))
	}
	cluster.Eventually(t, "sessions that are not in the database end", func() bool {
		berth.Run("admin", "occupancy", "--repair")
		return len(containers(t)) == 1
	})
	once(t, berth)
}

// postgres runs a program of PostgreSQL.
func postgres(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
