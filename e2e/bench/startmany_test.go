package bench

import (
	"testing"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// BenchmarkStartMany creates 100 sessions at once. It measures the time until all of them run, and
// the platform's processor time per session: of the server, containerd, shims, runc and the
// programs that they start.
func BenchmarkStartMany(b *testing.B) {
	const sessions = 100
	u := platform.User(b)
	warm := u.Run(cluster.Interactive()) // this session pulls the image
	u.Until(warm.ID, "RUNNING")
	u.End(warm.ID)
	var took, used time.Duration
	for b.Loop() {
		before, began := spent(b), time.Now()
		all := make([]*client.Session, sessions)
		for i := range all {
			in := cluster.Interactive()
			in.Slots = cluster.Slots("cpu", "0.01", "mem", "16m")
			all[i] = u.Run(in)
		}
		for _, s := range all {
			u.Until(s.ID, "RUNNING")
		}
		took += time.Since(began)
		for pid, now := range spent(b) {
			used += now - before[pid]
		}
		for _, s := range all {
			if _, err := u.TerminateSession(b.Context(), s.ID, true); err != nil {
				b.Fatal(err)
			}
		}
		for _, s := range all {
			u.Until(s.ID, "TERMINATED")
		}
	}
	n := float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took.Seconds()/n, "s-until-all-run")
	b.ReportMetric(float64(used.Milliseconds())/n/sessions, "cpu-ms/session")
}
