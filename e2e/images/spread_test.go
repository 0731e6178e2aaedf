package images

import (
	"testing"
	"time"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// The registry sends an image of 48 MB about once, although eight agents need it at the same time.
func TestRegistrySendsAnImageOnce(t *testing.T) {
	size := offer(t, "once", 4, 12<<20)
	u := platform.UserAs(t, "SUPERADMIN")
	t.Cleanup(func() { end(t, u) })
	before := platform.Egress.Sent()
	everywhere(t, u, "once", agentIDs(t))
	if sent := platform.Egress.Sent() - before; float64(sent) > 1.3*float64(size) {
		t.Errorf("the registry sent %d bytes for an image of %d: %.2f copies", sent, size, float64(sent)/float64(size))
	} else {
		t.Logf("the registry sent %.2f copies", float64(sent)/float64(size))
	}
}

// The registry dies when one agent has the image; the others still get it.
func TestRegistryDiesAfterTheFirstCopy(t *testing.T) {
	offer(t, "first", 2, 8<<20)
	u := platform.UserAs(t, "SUPERADMIN")
	t.Cleanup(func() { end(t, u) })
	ids := agentIDs(t)
	everywhere(t, u, "first", ids[:1])
	platform.Egress.Down(true)
	defer platform.Egress.Down(false)
	everywhere(t, u, "first", ids[1:])
}

// The agent that fetches from the registry is killed while others read from it: another takes over, and the
// bytes that are present are used.
func TestSourceIsKilled(t *testing.T) {
	size := offer(t, "killed", 1, 96<<20)
	u := platform.UserAs(t, "SUPERADMIN")
	t.Cleanup(func() { end(t, u) })
	ids := agentIDs(t)
	before := platform.Egress.Sent()
	first := start(u, "killed", ids[0])
	cluster.Eventually(t, "the first agent fetches", func() bool { return platform.Egress.Sent() > before })
	var others []*client.Session
	for _, id := range ids[1:4] {
		others = append(others, start(u, "killed", id))
	}
	cluster.Eventually(t, "a third was sent", func() bool { return platform.Egress.Sent()-before > size/3 })
	if err := platform.Agents[0].Kill(); err != nil {
		t.Fatal(err)
	}
	killed := platform.Egress.Sent() - before
	for _, s := range others {
		u.Until(s.ID, "RUNNING")
	}
	sent := platform.Egress.Sent() - before
	platform.Agents[0].Return(t)
	u.Until(first.ID, "RUNNING")
	// Bytes that only the killed agent had are lost to the others: those are sent twice, and nothing else.
	all := platform.Egress.Sent() - before
	t.Logf("the registry sent %.2f copies, %.2f with the agent that returned", float64(sent)/float64(size), float64(all)/float64(size))
	if float64(all) > float64(killed)+1.2*float64(size) {
		t.Errorf("the registry sent %d bytes for an image of %d, %d of them before the agent was killed", all, size, killed)
	}
}

// BenchmarkImage compares the pull of an image of 400 MB by one agent with the pull by eight agents at once. All
// agents share the processors of this machine, so that the time also has eight times the work of transfers and
// unpacking. With a registry of 16 MB/s, the work hides behind its link, as on machines of their own.
func BenchmarkImage(b *testing.B) {
	b.Run("local", func(b *testing.B) { compare(b, 0) })
	b.Run("16MB-per-second", func(b *testing.B) { compare(b, 16e6) })
}

func compare(b *testing.B, rate float64) {
	u := platform.UserAs(b, "SUPERADMIN")
	ids := agentIDs(b)
	for b.Loop() {
		stamp := time.Now().Format("150405")
		lone, all := "lone"+stamp, "all"+stamp
		offer(b, lone, 8, 50<<20)
		size := offer(b, all, 8, 50<<20)
		platform.Egress.Limit(rate)
		from := len(platform.Log())
		everywhere(b, u, lone, ids[:1])
		one := pulls(b, from)
		from = len(platform.Log())
		before := platform.Egress.Sent()
		everywhere(b, u, all, ids)
		eight := pulls(b, from)
		platform.Egress.Limit(0)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(platform.Egress.Sent()-before)/float64(size), "copies-sent-by-registry")
		b.ReportMetric(eight.fetched.Seconds(), "s-fetch-slowest-of-8")
		b.ReportMetric(one.fetched.Seconds(), "s-fetch-lone")
		b.ReportMetric(eight.took.Seconds(), "s-pull-slowest-of-8")
		b.ReportMetric(one.took.Seconds(), "s-pull-lone")
		b.ReportMetric(eight.fetched.Seconds()/one.fetched.Seconds(), "fetch-ratio")
		b.ReportMetric(eight.took.Seconds()/one.took.Seconds(), "pull-ratio")
		end(b, u)
	}
}
