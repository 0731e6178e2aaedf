package notice_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/noticedelivery"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/noticekind"
	"github.com/berthhq/berth/manager/notice"
)

// A receiver that was down for an hour gets everything once, in order, and signed.
func TestReceiverThatWasDown(t *testing.T) {
	t.Parallel()
	b, r := newBed(t), newReceiver(t)
	s := b.service(t, nil, "127.0.0.1")
	_, secret := b.channel(t, s, b.A.Member, r.URL)
	r.set(true)
	for minute := range 60 {
		if minute%5 == 0 { // twelve kinds of events, so that none is grouped
			e := failures(1, b.A.Member)[0]
			e.Key, e.Parameters = fmt.Sprint("m", minute), map[string]string{"name": strconv.Itoa(minute)}
			if err := s.Post(b.ctx, e); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Deliver(b.ctx); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Minute)
	}
	r.set(false)
	for range 12 {
		if err := s.Deliver(b.ctx); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Minute)
	}
	var names, ids []string
	for _, q := range r.requests() {
		var body struct {
			ID         string
			Parameters map[string]string
			Link       string
		}
		if err := json.Unmarshal(q.body, &body); err != nil {
			t.Fatal(err)
		}
		seconds, _, _ := strings.Cut(strings.TrimPrefix(q.signature, "t="), ",")
		at, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil || q.signature != notice.Sign([]byte(secret), time.Unix(at, 0), q.body) || b.clock().Sub(time.Unix(at, 0)) > time.Hour {
			t.Errorf("signature %q: %v", q.signature, err)
		}
		if body.ID != q.id || slices.Contains(ids, q.id) {
			t.Errorf("delivery %s: body %s, before: %v", q.id, body.ID, ids)
		}
		names, ids = append(names, body.Parameters["name"]), append(ids, q.id)
	}
	if got := strings.Join(names, " "); got != "0 5 10 15 20 25 30 35 40 45 50 55" {
		t.Errorf("%s", got)
	}
}

// A manager that is killed after a request and before it stores the result repeats the request with the same id.
func TestKilledBetweenRequestAndResult(t *testing.T) {
	t.Parallel()
	b, r := newBed(t), newReceiver(t)
	s := b.service(t, nil, "127.0.0.1")
	b.channel(t, s, b.A.Member, r.URL)
	if err := s.Post(b.ctx, failures(1, b.A.Member)...); err != nil {
		t.Fatal(err)
	}
	killed, kill := context.WithCancel(b.ctx)
	r.on = kill
	if err := s.Deliver(killed); err == nil {
		t.Fatal("the manager was not killed")
	}
	r.mu.Lock()
	r.on = nil
	r.mu.Unlock()
	other := b.service(t, nil, "127.0.0.1")
	if err := other.Deliver(b.ctx); err != nil || len(r.requests()) != 1 {
		t.Fatalf("within the lease: %v, %d requests", err, len(r.requests()))
	}
	b.pass(3 * time.Minute)
	for range 2 {
		if err := other.Deliver(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.requests(); len(got) != 2 || got[0].id != got[1].id || string(got[0].body) != string(got[1].body) {
		t.Errorf("%d requests: %v", len(got), got)
	}
}

// After a day a delivery is a dead letter, which can be sent again; after five days the channel is disabled, with a notice.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	b, r := newBed(t), newReceiver(t)
	s := b.service(t, nil, "127.0.0.1")
	channel, _ := b.channel(t, s, b.A.Member, r.URL)
	me := b.As(t, b.A.Member)
	r.set(true)
	if err := s.Post(b.ctx, failures(1, b.A.Member)...); err != nil {
		t.Fatal(err)
	}
	deliver := func(hours int) {
		t.Helper()
		for range hours * 2 {
			if err := s.Deliver(b.ctx); err != nil {
				t.Fatal(err)
			}
			b.pass(30 * time.Minute)
		}
	}
	deliver(25)
	d := b.Client.NoticeDelivery.Query().OnlyX(me)
	if d.Status != noticedelivery.StatusDead || d.Attempts < 10 || !strings.Contains(d.Message, "503") {
		t.Fatalf("%v", d)
	}
	r.set(false)
	if _, err := s.ResendNoticeDelivery(b.As(t, b.A.Lead), notice.ResendNoticeDeliveryInput{ID: d.ID}); err == nil {
		t.Error("a person sends the delivery of another one")
	}
	if _, err := s.ResendNoticeDelivery(me, notice.ResendNoticeDeliveryInput{ID: d.ID}); err != nil {
		t.Fatal(err)
	}
	deliver(1)
	if got := r.requests(); len(got) != 1 || got[0].id != d.ID.String() {
		t.Fatalf("%v", got)
	}
	r.set(true)
	for day := range 7 {
		e := failures(1, b.A.Member)[0]
		e.Key = fmt.Sprint("day ", day)
		if err := s.Post(b.ctx, e); err != nil {
			t.Fatal(err)
		}
		deliver(24)
	}
	c := b.Client.NoticeChannel.GetX(me, channel)
	last := b.notices(t, b.A.Member)
	if c.Enabled || !strings.Contains(c.DisabledReason, "503") || !slices.ContainsFunc(last, func(n *ent.Notice) bool { return n.Kind == noticekind.ChannelDisabled }) {
		t.Errorf("%v %v", c, last)
	}
	if n := b.Client.NoticeDelivery.Query().Where(noticedelivery.StatusEQ(noticedelivery.StatusWaiting)).CountX(me); n != 0 {
		t.Errorf("%d deliveries wait for a disabled channel", n)
	}
}

// What waits for a person who was deactivated is dropped.
func TestDeactivatedPerson(t *testing.T) {
	t.Parallel()
	b, r := newBed(t), newReceiver(t)
	s := b.service(t, nil, "127.0.0.1")
	b.channel(t, s, b.A.Member, r.URL)
	if err := s.Post(b.ctx, failures(1, b.A.Member)...); err != nil {
		t.Fatal(err)
	}
	b.A.Member.Update().SetStatus(user.StatusInactive).ExecX(b.ctx)
	if err := s.Deliver(b.ctx); err != nil {
		t.Fatal(err)
	}
	if d := b.Client.NoticeDelivery.Query().OnlyX(b.ctx); d.Status != noticedelivery.StatusDropped || len(r.requests()) != 0 {
		t.Errorf("%v, %d requests", d, len(r.requests()))
	}
}

// A channel cannot reach the platform's own network, neither by address nor by redirect.
func TestChannelsStayOutside(t *testing.T) {
	t.Parallel()
	b, r := newBed(t), newReceiver(t)
	closed := b.service(t, nil)
	me := b.As(t, b.A.Member)
	for _, address := range []string{r.URL, "http://169.254.169.254/latest", "ftp://example.org", "https://a:b@example.org/", "https://", "https://example.org/#x", "javascript:alert(1)"} {
		if _, err := closed.CreateNoticeChannel(me, notice.CreateNoticeChannelInput{Type: "webhook", Name: "hook", URL: address}); err == nil {
			t.Errorf("%s is accepted", address)
		}
	}
	host := strings.TrimPrefix(r.URL, "http://")
	for _, address := range []string{"https://" + host, "https://" + strings.Replace(host, "127.0.0.1", "localhost", 1), "https://169.254.169.254/", "https://[::1]/"} {
		made, err := closed.CreateNoticeChannel(me, notice.CreateNoticeChannelInput{Type: "slack", Name: "hook", URL: address})
		if err != nil {
			t.Fatal(err)
		}
		out, err := closed.TestNoticeChannel(me, notice.TestNoticeChannelInput{ID: &made.Channel.ID})
		if err != nil || out.Delivered || !strings.Contains(out.Message, "--notice-network") || strings.Contains(out.Message, "127") {
			t.Errorf("%s: %v %v", address, out, err)
		}
	}
	if len(r.requests()) != 0 {
		t.Error("the receiver was reached")
	}
}

// A channel of the cluster is for superadmins, gets the notices for administrators, and its secret is not in the database in clear.
func TestClusterChannel(t *testing.T) {
	t.Parallel()
	b, r := newBed(t), newReceiver(t)
	s := b.service(t, nil, "127.0.0.1")
	yes := true
	in := notice.CreateNoticeChannelInput{Type: "slack", Name: "ops", URL: r.URL + "/T000/secret", Cluster: &yes}
	if _, err := s.CreateNoticeChannel(b.As(t, b.A.Admin), in); err == nil {
		t.Error("a domain admin creates a channel of the cluster")
	}
	made, err := s.CreateNoticeChannel(b.As(t, b.Superadmin), in)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(made.Channel.AddressSealed)+made.Channel.Host, "secret") {
		t.Error("the address is readable")
	}
	if n := b.Client.NoticeChannel.Query().CountX(b.As(t, b.A.Admin)); n != 0 {
		t.Errorf("a domain admin sees %d channels", n)
	}
	events := []notice.Event{
		{Kind: noticekind.AgentLost, Subject: uuid.New(), Parameters: map[string]string{"name": "<!channel> & <http://x|y>"}},
		{Kind: noticekind.SessionFailed, Users: []uuid.UUID{b.Superadmin.ID}},
	}
	if err := s.Post(b.ctx, events...); err != nil {
		t.Fatal(err)
	}
	if err := s.Deliver(b.ctx); err != nil {
		t.Fatal(err)
	}
	got := r.requests()
	want := `Machine &lt;!channel&gt; &amp; &lt;http://x|y&gt; does not answer. <https://berth.example/account/notices|Open>`
	var body struct{ Text string }
	if len(got) != 1 || json.Unmarshal(got[0].body, &body) != nil || body.Text != want {
		t.Errorf("%v %q", got, body.Text)
	}
}
