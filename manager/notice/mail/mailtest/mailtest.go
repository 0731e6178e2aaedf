// Package mailtest runs an SMTP server for tests.
package mailtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/berthhq/berth/manager/notice/mail"
)

// User and Password are the login of the server.
const (
	User     = "berth"
	Password = "correct horse"
)

// Message is a mail that the server accepted.
type Message struct {
	From string
	To   []string
	Data string
}

// Server accepts mails, with STARTTLS and a login.
type Server struct {
	Config mail.Config // of a client

	mu     sync.Mutex
	fail   error
	on     func() // called after a mail was accepted, before the answer
	refuse string // recipient
	got    []Message
}

// New starts a server.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{}
	dir := t.TempDir()
	cert, ca := certificate(t)
	caFile, passwordFile := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "password")
	for name, text := range map[string][]byte{caFile: ca, passwordFile: []byte(Password + "\n")} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := smtp.NewServer(s)
	server.Domain, server.TLSConfig, server.ReadTimeout, server.WriteTimeout = "localhost", &tls.Config{Certificates: []tls.Certificate{cert}}, time.Minute, time.Minute
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	s.Config = mail.Config{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Security: mail.StartTLS, User: User, PasswordFile: passwordFile,
		From: "Berth <berth@example.org>", CAFile: caFile, Site: "https://berth.example"}
	return s
}

// Sender returns a sender that uses the server.
func (s *Server) Sender(t testing.TB) *mail.Sender {
	t.Helper()
	sender, err := mail.New(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	return sender
}

// Fail makes the server answer every mail with an error; nil: it accepts mails.
func (s *Server) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// Refuse makes the server refuse a recipient.
func (s *Server) Refuse(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = to
}

// On sets what is called after a mail was accepted and before the server answers.
func (s *Server) On(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = f
}

// Messages returns the accepted mails.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// NewSession is called for each connection.
func (s *Server) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }

type session struct {
	server *Server
	known  bool
	m      Message
}

func (x *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (x *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if x.known = user == User && password == Password; !x.known {
			return errors.New("wrong password")
		}
		return nil
	}), nil
}

func (x *session) Mail(from string, _ *smtp.MailOptions) error {
	if !x.known {
		return smtp.ErrAuthRequired
	}
	x.m.From = from
	return nil
}

func (x *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	if to == x.server.refuse {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such person"}
	}
	x.m.To = append(x.m.To, to)
	return nil
}

func (x *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	if x.server.fail != nil {
		return x.server.fail
	}
	x.m.Data = string(data)
	x.server.got = append(x.server.got, x.m)
	if x.server.on != nil {
		x.server.on()
	}
	return nil
}

func (x *session) Reset() { x.m = Message{} }

func (x *session) Logout() error { return nil }

// certificate returns a certificate of 127.0.0.1, and the file with which clients check it.
func certificate(t testing.TB) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
