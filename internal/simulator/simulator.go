package simulator

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/berthhq/berth/internal/simulator/image"
)

// Factory creates a product in its initial state, with one file system or volume, which is mounted
// at the simulator's tree.
type Factory func(a *Server) (Product, error)

// Product simulates the API of one vendor. It keeps its state in memory and data in the simulator's
// Tree. Requests are concurrent.
type Product interface {
	http.Handler
	// Options returns the options of its plugin, without secrets: those are in files that
	// Server.Secret created.
	Options() map[string]any
}

// ErrorFormatter is a Product that formats injected errors like its own.
type ErrorFormatter interface {
	// Refusal returns the body of an error response with a status.
	Refusal(status int) any
}

// Options configure a simulator. The zero value is a healthy and fast one.
type Options struct {
	// Mount is a directory on btrfs; empty creates an image, until Close.
	Mount string
	// Listen is the address of the REST API; empty = any port of 127.0.0.1.
	Listen string
	// PageSize limits the records of a response, also if more are requested; 0 = 1000.
	PageSize int
	// JobTime is how long a job is queued and running; 0 = 40 ms. If it is negative, work is done
	// before the response, if the product supports that.
	JobTime time.Duration
	// TokenLife is how long a login is valid; 0 = 1 h.
	TokenLife time.Duration
	// Settings are specific to the product, such as "licence" and "version". Its package documents
	// them.
	Settings map[string]string
	Logger   *slog.Logger // nil = discard
}

// Server is a running simulator.
type Server struct {
	// URL is the address of the REST API, without a slash at the end. CAFile has the certificate
	// that signed its certificate.
	URL, CAFile string
	// User can do everything, with the password in PasswordFile.
	User, Password, PasswordFile string
	// Tree is the file system that its clients have mounted.
	Tree *Tree
	// Jobs are the product's jobs.
	Jobs *Jobs

	options Options
	product Product
	image   *image.Image
	dir     string // of secrets, certificates and programs
	server  *http.Server
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu       sync.Mutex
	settings map[string]string
	faults   []*fault
	log      []Exchange
	secrets  []string
	tokens   []*Tokens
}

// Start starts a simulator, which runs until Close. It returns Unavailable if btrfs is not
// available.
func Start(ctx context.Context, make Factory, o Options) (*Server, error) {
	a, err := prepare(o)
	if err == nil {
		err = a.start(ctx, make)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start array: %w", err), a.Close())
	}
	return a, nil
}

func prepare(o Options) (*Server, error) {
	if o.PageSize <= 0 {
		o.PageSize = 1000
	}
	if o.JobTime == 0 {
		o.JobTime = 40 * time.Millisecond
	}
	if o.TokenLife <= 0 {
		o.TokenLife = time.Hour
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	a := &Server{options: o, User: "berth", settings: map[string]string{}}
	maps.Copy(a.settings, o.Settings)
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.Jobs = newJobs(a)
	dir, err := os.MkdirTemp("", "berth-array-")
	if err != nil {
		return a, err
	}
	a.dir = dir
	a.Password = Random()
	a.PasswordFile, err = a.Secret("password", a.Password)
	return a, err
}

func (a *Server) start(ctx context.Context, make Factory) (err error) {
	mount := a.options.Mount
	if mount == "" {
		if a.image, err = image.Make(ctx); err != nil {
			return err
		}
		mount = a.image.Mount
	}
	if a.Tree, err = openTree(a.ctx, mount, &a.work); err != nil {
		return err
	}
	if a.product, err = make(a); err != nil {
		return err
	}
	certificate, err := a.certificate()
	if err != nil {
		return err
	}
	address := a.options.Listen
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	a.URL = "https://" + listener.Addr().String()
	a.server = &http.Server{
		Handler: a, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(a.options.Logger.Handler(), slog.LevelDebug),
	}
	a.work.Go(func() { _ = a.server.ServeTLS(listener, "", "") })
	return nil
}

// Close stops the server and its jobs, and removes the image with its contents.
func (a *Server) Close() error {
	a.cancel()
	var errs []error
	if a.server != nil {
		errs = append(errs, a.server.Close())
	}
	a.work.Wait()
	if a.Tree != nil {
		errs = append(errs, a.Tree.close())
	}
	if a.image != nil {
		errs = append(errs, a.image.Close())
	}
	if a.dir != "" {
		errs = append(errs, os.RemoveAll(a.dir))
	}
	return errors.Join(errs...)
}

// Mount returns the mount point of the simulator's file system.
func (a *Server) Mount() string { return a.Tree.path }

// Reached returns the connection options for clients that log in by name, with additional options
// of the product. Products call it.
func (a *Server) Reached(own map[string]any) map[string]any {
	all := map[string]any{"url": a.URL, "ca_file": a.CAFile, "username": a.User, "password_file": a.PasswordFile}
	maps.Copy(all, own)
	return all
}

// PluginOptions returns the options_json of a volume on this simulator; more replaces or adds
// options.
func (a *Server) PluginOptions(more ...map[string]any) string {
	all := a.product.Options()
	for _, m := range more {
		maps.Copy(all, m)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err) // impossible: a product's strings and numbers
	}
	return string(raw)
}

// Product returns the product that the factory created.
func (a *Server) Product() Product { return a.product }

// Setting returns one of the product's settings, or "".
func (a *Server) Setting(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settings[name]
}

// Set changes a setting at run time, such as an expired license.
func (a *Server) Set(name, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settings[name] = value
}

// Secret writes a secret to a file, whose path is an option of a plugin, and removes it from the
// log.
func (a *Server) Secret(name, value string) (path string, err error) {
	a.hide(value)
	path = filepath.Join(a.dir, name)
	return path, os.WriteFile(path, []byte(value+"\n"), 0o600)
}

// hide removes a value from the log.
func (a *Server) hide(value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secrets = append(a.secrets, value)
}

// Random returns 32 hexadecimal digits, for passwords and names.
func Random() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// certificate creates a self-signed certificate, as products are delivered with, and writes it to
// CAFile.
func (a *Server) certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	about := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "array"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, 30),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	a.CAFile = filepath.Join(a.dir, "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, os.WriteFile(a.CAFile, text, 0o644)
}
