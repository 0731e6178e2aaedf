package mail_test

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/berthhq/berth/internal/noticekind"
	"github.com/berthhq/berth/manager/notice/mail"
	"github.com/berthhq/berth/manager/notice/mail/mailtest"
)

// parts returns the subject and the two parts of a mail.
func parts(t *testing.T, data string) (header netmail.Header, text, html string) {
	t.Helper()
	m, err := netmail.ReadMessage(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	r := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return m.Header, text, html
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(p))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
			html = string(body)
		} else {
			text = string(body)
		}
	}
}

// A mail has both parts in the language of the person, and nothing in it can be HTML or another header.
func TestSend(t *testing.T) {
	t.Parallel()
	s := mailtest.New(t)
	evil := "x</p><script>alert(1)</script>\r\nBcc: other@example.org"
	text := noticekind.Text(noticekind.Japanese, noticekind.SessionFailed, map[string]string{"name": evil, "reason": "r"}, 1)
	err := s.Sender(t).Send(t.Context(), mail.Mail{ID: "id-1", To: "you@example.org", Language: noticekind.Japanese,
		Items: []mail.Item{{Text: text, Link: "https://berth.example/sessions/1", Severity: noticekind.Error, At: "now"}}})
	if err != nil {
		t.Fatal(err)
	}
	got := s.Messages()
	if len(got) != 1 || got[0].From != "berth@example.org" || len(got[0].To) != 1 || got[0].To[0] != "you@example.org" {
		t.Fatalf("%+v", got)
	}
	header, plain, html := parts(t, got[0].Data)
	subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
	if err != nil || !strings.HasPrefix(subject, "セッション x") || strings.ContainsAny(subject, "\r\n") || header.Get("Bcc") != "" {
		t.Errorf("%q %v %v", subject, err, header)
	}
	if !strings.Contains(plain, "https://berth.example/sessions/1") || !strings.Contains(plain, "このメール") || header.Get("Message-ID") != "<id-1@127.0.0.1>" {
		t.Errorf("%q %v", plain, header)
	}
	if strings.Contains(html, "<script") || !strings.Contains(html, "&lt;script&gt;") || !strings.Contains(html, `href="https://berth.example/account/notices"`) {
		t.Errorf("%q", html)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := mailtest.New(t)
	m := mail.Mail{ID: "1", To: "you@example.org", Items: []mail.Item{{Text: "hello"}}}
	s.Refuse("you@example.org")
	if err := s.Sender(t).Send(t.Context(), m); !errors.Is(err, mail.ErrRefused) {
		t.Errorf("an unknown recipient: %v", err)
	}
	s.Refuse("")
	s.Fail(&smtp.SMTPError{Code: 451, Message: "later"})
	if err := s.Sender(t).Send(t.Context(), m); err == nil || errors.Is(err, mail.ErrRefused) {
		t.Errorf("a server that is busy: %v", err)
	}
	s.Fail(nil)
	other := s.Config
	other.CAFile = ""
	sender, err := mail.New(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := sender.Send(t.Context(), m); err == nil || len(s.Messages()) != 0 {
		t.Errorf("an unknown certificate: %v", err)
	}
	if err := s.Sender(t).Send(t.Context(), mail.Mail{ID: "1", To: "a@b\r\nBcc: c@d", Items: m.Items}); !errors.Is(err, mail.ErrRefused) {
		t.Errorf("an address with a line break: %v", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]mail.Config{
		"no sender":                      {Host: "h"},
		"an unknown encryption":          {Host: "h", From: "a@b.c", Security: "ssl"},
		"a user without a password":      {Host: "h", From: "a@b.c", User: "u"},
		"a password without encryption":  {Host: "h", From: "a@b.c", User: "u", PasswordFile: "/dev/null", Security: mail.None},
		"a file that does not exist":     {Host: "h", From: "a@b.c", User: "u", PasswordFile: "/nonexistent"},
		"certificates that are not some": {Host: "h", From: "a@b.c", CAFile: "/dev/null"},
	} {
		if _, err := mail.New(c); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if s, err := mail.New(mail.Config{}); s != nil || err != nil {
		t.Errorf("no server: %v %v", s, err)
	}
}
