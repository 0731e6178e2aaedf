package notice_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berthhq/berth/ent/noticedelivery"
	"github.com/berthhq/berth/manager/notice/mail/mailtest"
)

// Notices within a minute are one mail, and 10,000 sessions are one too.
func TestDigest(t *testing.T) {
	t.Parallel()
	b, server := newBed(t), mailtest.New(t)
	s := b.service(t, server.Sender(t))
	send := func(want int) {
		t.Helper()
		if err := s.SendMail(b.ctx); err != nil {
			t.Fatal(err)
		}
		if got := len(server.Messages()); got != want {
			t.Fatalf("%d mails, want %d", got, want)
		}
	}
	for i, list := range [][]int{{0, 3}, {3, 10_000}} {
		if err := s.Post(b.ctx, failures(10_000, b.A.Member)[list[0]:list[1]]...); err != nil {
			t.Fatal(err)
		}
		send(0)
		b.pass(time.Duration(20*(i+1)) * time.Second)
	}
	b.pass(time.Minute)
	send(1)
	send(1)
	if m := server.Messages()[0]; m.To[0] != b.A.Member.Email || !strings.Contains(m.Data, "9995 sessions have failed") {
		t.Errorf("%+v", m)
	}
	if n := b.Client.NoticeDelivery.Query().Where(noticedelivery.StatusEQ(noticedelivery.StatusSent)).CountX(b.ctx); n != 6 {
		t.Errorf("%d deliveries are sent, want 6", n)
	}
}

// A person gets at most 20 mails in an hour; what comes later is one mail.
func TestMailsAreLimited(t *testing.T) {
	t.Parallel()
	b, server := newBed(t), mailtest.New(t)
	s := b.service(t, server.Sender(t))
	for minute := range 50 {
		e := failures(1, b.A.Member)[0]
		e.Key = fmt.Sprint("m", minute)
		if err := s.Post(b.ctx, e); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Minute)
		if err := s.SendMail(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(server.Messages()); n != 20 {
		t.Errorf("%d mails within 50 minutes", n)
	}
	b.pass(time.Hour)
	if err := s.SendMail(b.ctx); err != nil {
		t.Fatal(err)
	}
	if list := server.Messages(); len(list) != 21 || !strings.Contains(list[20].Data, "Subject: 30 notices of Berth") {
		t.Errorf("%d mails", len(list))
	}
}

// A mail whose manager was killed before it stored the result is sent again with the same Message-ID and content.
func TestKilledBetweenMailAndResult(t *testing.T) {
	t.Parallel()
	b, server := newBed(t), mailtest.New(t)
	s := b.service(t, server.Sender(t))
	if err := s.Post(b.ctx, failures(2, b.A.Member)...); err != nil {
		t.Fatal(err)
	}
	b.pass(time.Minute)
	killed, kill := context.WithCancel(b.ctx)
	server.On(kill)
	if err := s.SendMail(killed); err == nil {
		t.Fatal("the manager was not killed")
	}
	server.On(nil)
	e := failures(1, b.A.Member)[0]
	e.Key = "later"
	if err := s.Post(b.ctx, e); err != nil {
		t.Fatal(err)
	}
	other := b.service(t, server.Sender(t))
	for range 8 {
		if err := other.SendMail(b.ctx); err != nil {
			t.Fatal(err)
		}
		b.pass(time.Minute)
	}
	var ids []string
	for _, m := range server.Messages() {
		_, after, _ := strings.Cut(m.Data, "Message-ID: ")
		id, _, _ := strings.Cut(after, "\r\n")
		ids = append(ids, id)
	}
	if len(ids) != 3 || ids[0] != ids[1] || ids[1] == ids[2] {
		t.Errorf("%v", ids)
	}
}

// A server that is down gets the mail later, and a recipient that it refuses is a dead letter at once.
func TestMailServerThatWasDown(t *testing.T) {
	t.Parallel()
	b, server := newBed(t), mailtest.New(t)
	s := b.service(t, server.Sender(t))
	server.Fail(errors.New("down"))
	server.Refuse(b.A.Lead.Email)
	if err := s.Post(b.ctx, failures(1, b.A.Member, b.A.Lead)...); err != nil {
		t.Fatal(err)
	}
	for minute := range 90 {
		if minute == 60 {
			server.Fail(nil)
		}
		b.pass(time.Minute)
		if err := s.SendMail(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if list := server.Messages(); len(list) != 1 || list[0].To[0] != b.A.Member.Email {
		t.Errorf("%+v", list)
	}
	if d := b.Client.NoticeDelivery.Query().Where(noticedelivery.UserID(b.A.Lead.ID)).OnlyX(b.ctx); d.Status != noticedelivery.StatusDead || d.Attempts != 1 {
		t.Errorf("%v", d)
	}
}
