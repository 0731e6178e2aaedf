package notice_test

import (
	"fmt"
	"testing"

	"github.com/berthhq/berth/manager/notice"
)

// BenchmarkCollect measures what the leader needs for each event of a session, outside of the path of the session.
func BenchmarkCollect(b *testing.B) {
	bed := newBed(b)
	s := bed.service(b, nil)
	c := s.Collector()
	if err := c.Collect(bed.ctx); err != nil {
		b.Fatal(err)
	}
	sess := bed.session(bed.A.Member)
	const events = 1000
	for b.Loop() {
		b.StopTimer()
		for range events {
			fails(bed.ctx, bed.Client.SessionEvent, sess)
		}
		b.StartTimer()
		if err := c.Collect(bed.ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*events), "µs/event")
}

// BenchmarkInsert measures a notice that is stored at once for each event, as the alternative in the path of the session.
func BenchmarkInsert(b *testing.B) {
	bed := newBed(b)
	s := bed.service(b, nil)
	n := 0
	for b.Loop() {
		n++
		e := notice.Event{Key: fmt.Sprint("x", n), Kind: "session_failed", Group: fmt.Sprint(n), Users: failures(1, bed.A.Member)[0].Users}
		if err := s.Post(bed.ctx, e); err != nil {
			b.Fatal(err)
		}
	}
}
