// Package mail sends notices by SMTP. The notices of the manager use it.
package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed" // the templates
	"errors"
	"fmt"
	htmltemplate "html/template"
	"os"
	"strconv"
	"strings"
	texttemplate "text/template"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/berthhq/berth/internal/noticekind"
)

// Security is how the connection to the server is encrypted.
type Security string

// The values.
const (
	StartTLS Security = "starttls" // required
	TLS      Security = "tls"      // from the first byte
	None     Security = "none"     // for a server on the same machine
)

// Config describes the server.
type Config struct {
	Host         string
	Port         int // 0: 587 with STARTTLS, 465 with TLS, 25 without
	Security     Security
	User         string // "": no login
	PasswordFile string
	From         string // address, with or without a name
	CAFile       string // certificates that the server's is checked with; "": those of the system
	Site         string // address of the page, in the footer; "": none
}

// sendTimeout limits the connection and each step of the dialogue.
const sendTimeout = 30 * time.Second

// Sender sends mails. New creates one.
type Sender struct {
	cfg     Config
	options []gomail.Option
	text    *texttemplate.Template
	html    *htmltemplate.Template
}

//go:embed mail.txt
var textSource string

//go:embed mail.html
var htmlSource string

// New checks the configuration, and returns nil without an error if there is no host. It does not contact the server.
func New(cfg Config) (*Sender, error) {
	if cfg.Host == "" {
		return nil, nil //nolint:nilnil // no mail
	}
	if err := gomail.NewMsg().From(cfg.From); err != nil {
		return nil, fmt.Errorf("sender %q of mails is not an address: %w", cfg.From, err)
	}
	s := &Sender{cfg: cfg}
	conf, err := tlsConfig(cfg)
	if err != nil {
		return nil, err
	}
	s.options = []gomail.Option{gomail.WithTimeout(sendTimeout), gomail.WithTLSConfig(conf)}
	port := 0
	switch cfg.Security {
	case StartTLS, "":
		port = 587
		s.options = append(s.options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case TLS:
		port = 465
		s.options = append(s.options, gomail.WithSSL())
	case None:
		port = 25
		s.options = append(s.options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		return nil, fmt.Errorf("encryption %q of mails is not one of starttls, tls and none", cfg.Security)
	}
	if cfg.Port != 0 {
		port = cfg.Port
	}
	s.options = append(s.options, gomail.WithPort(port))
	if cfg.User != "" {
		if cfg.PasswordFile == "" {
			return nil, fmt.Errorf("user %q of the mail server has no file with a password", cfg.User)
		}
		if cfg.Security == None {
			return nil, errors.New("the password of the mail server is sent only over an encrypted connection: set the encryption to starttls or tls")
		}
		if _, err := os.Stat(cfg.PasswordFile); err != nil {
			return nil, fmt.Errorf("password of the mail server: %w", err)
		}
		s.options = append(s.options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(cfg.User))
	}
	if s.text, err = texttemplate.New("text").Parse(textSource); err != nil {
		return nil, fmt.Errorf("template of mails: %w", err)
	}
	if s.html, err = htmltemplate.New("html").Parse(htmlSource); err != nil {
		return nil, fmt.Errorf("template of mails: %w", err)
	}
	return s, nil
}

func tlsConfig(cfg Config) (*tls.Config, error) {
	c := &tls.Config{ServerName: cfg.Host, MinVersion: tls.VersionTLS12}
	if cfg.CAFile == "" {
		return c, nil
	}
	pem, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("certificates of the mail server: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificates of the mail server: %s has none", cfg.CAFile)
	}
	return c, nil
}

// Item is a notice in a mail.
type Item struct {
	Text, Link string
	Severity   noticekind.Severity
	At         string
}

// Mail is what a person gets.
type Mail struct {
	ID       string // the same in every attempt, so that servers and programs can drop duplicates
	To       string
	Language noticekind.Language
	Items    []Item
	More     int // further notices that are only in the page
}

// page is the input of the templates.
type page struct {
	Mail
	Words map[string]string
	Site  string
	Title string
}

// ErrRefused marks an error that another attempt does not change, such as an unknown recipient.
var ErrRefused = errors.New("the mail server refused the mail")

// Send sends one mail, with a text and an HTML part.
func (s *Sender) Send(ctx context.Context, m Mail) error {
	msg, err := s.compose(m)
	if err != nil {
		return err
	}
	options := s.options
	if s.cfg.User != "" {
		password, err := os.ReadFile(s.cfg.PasswordFile) // each time, so that it can be changed
		if err != nil {
			return fmt.Errorf("read the password of the mail server: %w", err)
		}
		options = append(options[:len(options):len(options)], gomail.WithPassword(strings.TrimRight(string(password), "\r\n")))
	}
	client, err := gomail.NewClient(s.cfg.Host, options...)
	if err != nil {
		return fmt.Errorf("prepare the connection to the mail server: %w", err)
	}
	if err := client.DialAndSendWithContext(ctx, msg); err != nil {
		var refused *gomail.SendError
		if errors.As(err, &refused) && !refused.IsTemp() && refused.Reason == gomail.ErrSMTPRcptTo {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
		return fmt.Errorf("send mail: %w", err)
	}
	return nil
}

// compose returns the message. Headers are encoded by the library, and texts of notices have no line breaks.
func (s *Sender) compose(m Mail) (*gomail.Msg, error) {
	w := words[m.Language]
	if w == nil {
		w = words[noticekind.English]
	}
	title := strings.ReplaceAll(w["several"], "{count}", strconv.Itoa(len(m.Items)+m.More))
	if len(m.Items) == 1 && m.More == 0 {
		title = m.Items[0].Text
	}
	p := page{Mail: m, Words: w, Site: s.cfg.Site, Title: title}
	var text, html bytes.Buffer
	if err := s.text.Execute(&text, p); err != nil {
		return nil, fmt.Errorf("write mail: %w", err)
	}
	if err := s.html.Execute(&html, p); err != nil {
		return nil, fmt.Errorf("write mail: %w", err)
	}
	msg := gomail.NewMsg()
	if err := msg.From(s.cfg.From); err != nil {
		return nil, fmt.Errorf("sender of mail: %w", err)
	}
	if err := msg.To(m.To); err != nil {
		return nil, fmt.Errorf("%w: recipient: %w", ErrRefused, err)
	}
	msg.SetMessageIDWithValue(m.ID + "@" + s.cfg.Host)
	msg.Subject(oneLine(title))
	msg.SetDate()
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(gomail.TypeTextPlain, text.String())
	msg.AddAlternativeString(gomail.TypeTextHTML, html.String())
	return msg, nil
}

// subjectRunes limits a subject.
const subjectRunes = 150

// oneLine removes line breaks, which would begin another header, and shortens the text.
func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
	if r := []rune(s); len(r) > subjectRunes {
		s = string(r[:subjectRunes]) + "…"
	}
	return s
}

// words are the fixed words of mails.
var words = map[noticekind.Language]map[string]string{
	noticekind.English: {
		"several": "{count} notices of Berth", "open": "Open", "more": "More notices in the page", "why": "You get this mail because of your settings of notices in Berth.",
		"settings": "Change the settings", "lang": "en",
	},
	noticekind.Korean: {
		"several": "Berth 알림 {count}건", "open": "열기", "more": "페이지에서 볼 수 있는 추가 알림", "why": "Berth의 알림 설정에 따라 발송된 메일입니다.",
		"settings": "설정 변경", "lang": "ko",
	},
	noticekind.Japanese: {
		"several": "Berth からの通知 {count} 件", "open": "開く", "more": "その他の通知はページで確認できます", "why": "このメールは Berth の通知設定に基づいて送信されています。",
		"settings": "設定を変更", "lang": "ja",
	},
}
