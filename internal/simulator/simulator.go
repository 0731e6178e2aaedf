package simulator

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/berthhq/berth/internal/simulator/image"
)

// Factory makes a product on an array, as it is delivered: with one file system or
// volume, which is what is mounted at the array's tree.
type Factory func(a *Server) (Product, error)

// Product answers as one vendor's does. It keeps what it was told in memory and
// bytes in the array's Tree. Requests come concurrently.
type Product interface {
	http.Handler
	// Options are what its plugin must be told to reach the array, without the
	// secrets: those are in files that Server.Secret made.
	Options() map[string]any
}

// ErrorFormatter is a Product whose errors that are injected look like its own.
type ErrorFormatter interface {
	// Refusal is the body of an answer with a status.
	Refusal(status int) any
}

// Options are how an array behaves. The zero value is one that is well and quick.
type Options struct {
	// Mount is a directory on btrfs to use; empty makes an image, until Close.
	Mount string
	// Listen is the address of the REST interface; empty = any port of 127.0.0.1.
	Listen string
	// PageSize bounds the records of an answer, whatever is asked for; 0 = 1000.
	PageSize int
	// JobTime is how long a job is queued and running; 0 = 40 ms, negative: work
	// is done before the answer, where the product can do so.
	JobTime time.Duration
	// TokenLife is how long a log-in holds; 0 = 1 h.
	TokenLife time.Duration
	// Settings are the product's own: "licence", "version". Its package lists them.
	Settings map[string]string
	Logger   *slog.Logger // nil = discard
}

// Server is a product that runs.
type Server struct {
	// URL is where its REST interface is, without a slash at the end, and CAFile
	// what its certificate is signed by.
	URL, CAFile string
	// User is who may do everything, with the password in PasswordFile.
	User, Password, PasswordFile string
	// Tree is what its clients have mounted.
	Tree *Tree
	// Jobs are its jobs.
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

// Start makes an array and lets it run until Close. Its error is Unavailable
// where there can be no btrfs.
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

// Close ends the array: its server, its jobs, and the image with all that is in it.
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

// Mount is where a client has the array's file system.
func (a *Server) Mount() string { return a.Tree.path }

// Reached are the options that lead to an array whose clients log in by name, with the
// product's own. For its Product.
func (a *Server) Reached(own map[string]any) map[string]any {
	all := map[string]any{"url": a.URL, "ca_file": a.CAFile, "username": a.User, "password_file": a.PasswordFile}
	maps.Copy(all, own)
	return all
}

// PluginOptions is the options_json of a volume on this array; more replaces
// options, or adds to them.
func (a *Server) PluginOptions(more ...map[string]any) string {
	all := a.product.Options()
	for _, m := range more {
		maps.Copy(all, m)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err) // of a product's own strings and numbers
	}
	return string(raw)
}

// Product is what the maker made.
func (a *Server) Product() Product { return a.product }

// Setting is one of the product's own settings, "" when it was not given.
func (a *Server) Setting(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settings[name]
}

// Set changes a setting while the array runs: a licence ends.
func (a *Server) Set(name, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settings[name] = value
}

// Secret puts a secret into a file that a plugin can be told of, and out of the log.
func (a *Server) Secret(name, value string) (path string, err error) {
	a.hide(value)
	path = filepath.Join(a.dir, name)
	return path, os.WriteFile(path, []byte(value+"\n"), 0o600)
}

// hide keeps a value out of the log.
func (a *Server) hide(value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secrets = append(a.secrets, value)
}

// Random is 32 hex digits, for passwords and the like.
func Random() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
