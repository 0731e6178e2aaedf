package diagnosis

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/clock"
)

const (
	// slow is the time of an answer of a store above which starts of sessions become slow.
	slow = 250 * time.Millisecond
	// maxSkew is the difference between the clock of a manager and that of the database above which leases and limits are wrong.
	maxSkew = 5 * time.Second
	// fewConnections is the share of the connections of the database that should stay free.
	fewConnections = 0.1
)

// database checks PostgreSQL: time of an answer, clock, connections, and whether it is a standby.
func (s *Service) database(ctx context.Context) (found []Finding, err error) {
	const query = `SELECT current_setting('server_version'), pg_is_in_recovery(), clock_timestamp(), pg_database_size(current_database()),
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), current_setting('max_connections')::int`
	var (
		version        string
		standby        bool
		at             time.Time
		size           int64
		used, most     int
		began, elapsed = time.Now(), time.Duration(0)
	)
	rows, err := s.Client.QueryContext(ctx, query)
	if err != nil {
		return s.noDatabase(err), nil
	}
	defer rows.Close()
	for rows.Next() {
		elapsed = time.Since(began)
		if err := rows.Scan(&version, &standby, &at, &size, &used, &most); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return s.noDatabase(err), nil
	}
	if standby {
		found = append(found, Finding{Severity: Fault, Text: "PostgreSQL is a standby, which only reads", Consequence: "nothing can be changed or started",
			Fix: "point --postgres to the primary, or promote this server"})
	}
	if skew := clock.Now().Sub(at).Abs(); skew > maxSkew {
		found = append(found, Finding{Severity: Warning, Text: fmt.Sprintf("the clocks of this manager and of PostgreSQL differ by %s", skew.Round(time.Second)),
			Consequence: "times of sessions and limits are wrong, and agents can be taken for lost", Fix: "synchronize the clocks of both machines with NTP"})
	}
	if free := most - used; float64(free) < fewConnections*float64(most) {
		found = append(found, Finding{Severity: Warning, Text: fmt.Sprintf("%d of %d connections of PostgreSQL are in use", used, most),
			Consequence: "a manager or gateway that starts gets none", Fix: "raise max_connections of PostgreSQL, or lower --postgres-connections"})
	}
	if elapsed > slow {
		found = append(found, Finding{Severity: Warning, Text: fmt.Sprintf("PostgreSQL answered after %d ms", elapsed.Milliseconds()),
			Consequence: "pages and starts of sessions are slow", Fix: "look at the load and the disk of its machine"})
	}
	return orFine(found, "PostgreSQL %s, %.1f ms, %d of %d connections, %s", version, milliseconds(elapsed), used, most, mebibytes(size))
}

func (s *Service) noDatabase(err error) []Finding {
	return []Finding{{Severity: Fault, Text: fmt.Sprintf("PostgreSQL does not answer: %v", err), Consequence: "sessions continue, and nothing can be changed or started",
		Fix: "start PostgreSQL, and check --postgres and the network between"}}
}

// redis checks the time of an answer and the memory.
func (s *Service) redis(ctx context.Context) (found []Finding, err error) {
	began := time.Now()
	text, err := s.Redis.Info(ctx, "server", "memory").Result()
	elapsed := time.Since(began)
	if err != nil {
		return []Finding{{Severity: Fault, Text: fmt.Sprintf("Redis does not answer: %v", err),
			Consequence: "numbers of sessions are not shown, limits of logins and keys are not counted together, and keys with limits are refused",
			Fix:         "start Redis, and check --redis; sessions need no Redis"}}, nil
	}
	info := infoOf(text)
	used, most := number(info["used_memory"]), number(info["maxmemory"])
	if most > 0 && used > most*9/10 && info["maxmemory_policy"] == "noeviction" {
		found = append(found, Finding{Severity: Warning, Text: fmt.Sprintf("Redis uses %s of %s and evicts nothing", mebibytes(used), mebibytes(most)),
			Consequence: "writes fail when it is full", Fix: "raise maxmemory, or set maxmemory-policy allkeys-lru: nothing in Redis must outlive it"})
	}
	if elapsed > slow {
		found = append(found, Finding{Severity: Warning, Text: fmt.Sprintf("Redis answered after %d ms", elapsed.Milliseconds()),
			Consequence: "logins and requests to models are slow", Fix: "look at the load of its machine and the network between"})
	}
	return orFine(found, "Redis %s, %.1f ms, %s", info["redis_version"], milliseconds(elapsed), mebibytes(used))
}

// infoOf reads the lines NAME:VALUE of the command INFO.
func infoOf(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, is := strings.Cut(strings.TrimSpace(line), ":"); is {
			info[name] = value
		}
	}
	return info
}

// etcdQuota is the default limit of the database of etcd, in bytes. etcd does not report the limit that is set.
const etcdQuota = 2 << 30

// etcd checks each member, its alarms and its database.
func (s *Service) etcd(ctx context.Context) (found []Finding, err error) {
	var up []string
	for _, at := range s.Etcd.Endpoints() {
		began := time.Now()
		status, err := s.Etcd.Status(ctx, at)
		if err != nil {
			found = append(found, Finding{Severity: Warning, Subject: at, Text: fmt.Sprintf("etcd at %s does not answer: %v", at, err),
				Consequence: "one more fault of etcd can stop the election of a leader", Fix: "start this member, or remove it from --etcd"})
			continue
		}
		up = append(up, fmt.Sprintf("%s at %s, %.1f ms, %s", status.Version, at, milliseconds(time.Since(began)), mebibytes(status.DbSize)))
		if status.Leader == 0 {
			found = append(found, Finding{Severity: Fault, Subject: at, Text: "etcd has no leader: a majority of its members is away",
				Consequence: "no manager can lead, so no session starts or ends", Fix: "start the other members of etcd"})
		}
		if status.DbSize > etcdQuota*9/10 {
			found = append(found, Finding{Severity: Warning, Subject: at, Text: fmt.Sprintf("the database of etcd has %s", mebibytes(status.DbSize)),
				Consequence: "etcd stops writes at its quota, 2 GiB by default", Fix: "compact and defragment it, or raise --quota-backend-bytes of etcd"})
		}
		for _, e := range status.Errors {
			found = append(found, Finding{Severity: Fault, Subject: at, Text: "etcd reports an alarm: " + e,
				Consequence: "etcd refuses writes until the alarm is disarmed", Fix: "free space, defragment, then run etcdctl alarm disarm"})
		}
	}
	if len(up) == 0 {
		return []Finding{{Severity: Fault, Text: "no member of etcd answers", Consequence: "no manager can lead, so no session starts or ends; running sessions continue",
			Fix: "start etcd, and check --etcd and its certificates"}}, nil
	}
	return orFine(found, "etcd %s", strings.Join(up, "; "))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// mebibytes shows a size, for people.
func mebibytes(n int64) string {
	if n >= 10<<30 {
		return fmt.Sprintf("%.0f GiB", math.Round(float64(n)/(1<<30)))
	}
	return fmt.Sprintf("%.0f MiB", math.Round(float64(n)/(1<<20)))
}

// number reads a number of INFO; 0 if it is none.
func number(text string) (n int64) {
	_, _ = fmt.Sscan(text, &n)
	return n
}
