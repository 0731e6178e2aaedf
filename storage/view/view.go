// Package view serves the folders of a user by WebDAV and SFTP, to clients with an access
// token: a tree with a directory for each folder. A manager decides which folders a token
// gives access to. Package volume resolves paths in folders, package transfer writes files,
// and package sshd accepts SSH connections. Package storage imports it.
package view

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"

	"github.com/berthhq/berth/storage/storagepb"
	"github.com/berthhq/berth/storage/transfer"
	"github.com/berthhq/berth/storage/volume"
)

// Manager authenticates users, returns their permissions, and records the audit log.
type Manager interface {
	List(context.Context, *storagepb.ListRequest) (*storagepb.ListResponse, error)
	Record(context.Context, *storagepb.RecordRequest) (*storagepb.RecordResponse, error)
}

// Config of views.
type Config struct {
	Volumes   *volume.Set
	Transfers *transfer.Server
	Manager   Manager
	Dir       string // stores the activity that no manager has recorded
	// Prefix is the path of WebDAV, such as /storage/dav.
	Prefix string
	Logger *slog.Logger
}

// Views serves the trees of all clients. New creates one.
type Views struct {
	cfg      Config
	accounts *accounts
	activity *activityLog
	locks    locks
	began    time.Time
}

// New returns views.
func New(cfg Config) *Views {
	v := &Views{cfg: cfg, began: time.Now(), activity: newActivityLog(cfg.Manager, cfg.Dir, cfg.Logger)}
	v.accounts = newAccounts(cfg.Manager, func(name string) bool {
		_, err := cfg.Volumes.Get(name)
		return err == nil
	})
	return v
}

// Run sends file activity to the managers until the context ends, and once more after that.
func (v *Views) Run(ctx context.Context) error {
	v.activity.run(ctx)
	return nil
}

// Forget drops the cached permissions of all clients.
func (v *Views) Forget() { v.accounts.forget() }

// Credentials are an access token, or an SSH key with the user's e-mail address, and the
// address of the client.
type Credentials struct {
	Token     string
	Email     string   // set with PublicKey
	PublicKey string   // in the SSH wire format
	Peer      string   // address and port
	Forwarded []string // X-Forwarded-For of the request
}

// key identifies the credentials without revealing the secret. The client's port does not
// count.
func (g Credentials) key() [sha256.Size]byte {
	host, _, err := net.SplitHostPort(g.Peer)
	if err != nil {
		host = g.Peer
	}
	return sha256.Sum256([]byte(strings.Join(append([]string{g.Token, g.Email, g.PublicKey, host}, g.Forwarded...), "\x00")))
}

const (
	// fresh is how long an answer of a manager is cached. Together with the timeout of one request,
	// it limits how long a revoked token can be used: 4 s + 5 s < 10 s.
	fresh   = 4 * time.Second
	timeout = 5 * time.Second
	// maxKept limits the cached answers. maxAsking limits the concurrent requests to managers,
	// however many tokens clients try.
	maxKept   = 10_000
	maxAsking = 32
	maxSecret = 256 // bytes; Berth's tokens are shorter
)

// accounts caches the answers of managers.
type accounts struct {
	manager Manager
	serves  func(volume string) bool
	asking  chan struct{}

	mu   sync.Mutex
	kept map[[sha256.Size]byte]*answer
}

// answer is the cached answer for one token. Concurrent callers with the same token wait for
// one request.
type answer struct {
	mu   sync.Mutex
	got  *account
	err  error
	till time.Time
}

// account is what a token gives access to.
type account struct {
	user       string
	credential string
	address    string // address of the client, as determined by the manager
	root       *node
	byID       map[string]*open
}

// open is one folder that the client can open.
type open struct {
	ref         *storagepb.FolderRef
	path        string // path in the view
	read, write bool
}

// node is a folder, or a directory of the view that contains folders.
type node struct {
	name   string
	folder *open
	below  map[string]*node
}

func newAccounts(m Manager, serves func(string) bool) *accounts {
	return &accounts{manager: m, serves: serves, asking: make(chan struct{}, maxAsking), kept: map[[sha256.Size]byte]*answer{}}
}

// get returns the account of the credentials. The answer is at most a few seconds old.
func (a *accounts) get(ctx context.Context, g Credentials) (*account, error) {
	if g.PublicKey == "" && (g.Token == "" || len(g.Token) > maxSecret) {
		return nil, fmt.Errorf("the password must be an access token: %w", errdefs.ErrUnauthenticated)
	}
	e := a.answer(g.key())
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Now().Before(e.till) {
		return e.got, e.err
	}
	asked := time.Now()
	got, err := a.question(ctx, g)
	if err != nil && !errdefs.IsUnauthorized(err) {
		return nil, err // after a temporary error, the token may be valid
	}
	e.got, e.err, e.till = got, err, asked.Add(fresh)
	return got, err
}

func (a *accounts) answer(key [sha256.Size]byte) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.kept[key]
	if e == nil {
		if len(a.kept) >= maxKept {
			clear(a.kept)
		}
		e = &answer{}
		a.kept[key] = e
	}
	return e
}

// forget drops all cached answers, because a permission was revoked.
func (a *accounts) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.kept)
}

func (a *accounts) question(ctx context.Context, g Credentials) (*account, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case a.asking <- struct{}{}:
		defer func() { <-a.asking }()
	case <-ctx.Done():
		return nil, fmt.Errorf("too many logins are being checked at the moment: %w", errdefs.ErrUnavailable)
	}
	r, err := a.manager.List(ctx, &storagepb.ListRequest{
		Token: g.Token, Email: g.Email, PublicKey: []byte(g.PublicKey), Peer: g.Peer, Forwarded: g.Forwarded,
	})
	if err != nil {
		return nil, err
	}
	return a.account(r)
}

// account builds the tree of the folders that this proxy serves.
func (a *accounts) account(r *storagepb.ListResponse) (*account, error) {
	user, err := uuid.FromBytes(r.User)
	if err != nil {
		return nil, fmt.Errorf("a manager's answer: user: %w", err)
	}
	out := &account{user: user.String(), address: r.Address, root: &node{below: map[string]*node{}}, byID: map[string]*open{}}
	if credential, err := uuid.FromBytes(r.Credential); err == nil {
		out.credential = credential.String()
	}
	for _, f := range r.Folders {
		if f.Folder == nil || len(f.Path) == 0 || slices.ContainsFunc(f.Path, unnamable) || !a.serves(f.Folder.Volume) {
			continue
		}
		o := &open{ref: f.Folder, path: strings.Join(f.Path, "/"), read: f.Read, write: f.Read && f.Write}
		if out.root.add(f.Path, o) {
			out.byID[f.Folder.Folder] = o
		}
	}
	return out, nil
}

// unnamable reports whether a name cannot be part of a path.
func unnamable(name string) bool {
	return name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00")
}

// add puts a folder at its place in the tree, and reports whether the place was free.
func (n *node) add(path []string, o *open) bool {
	next := n.below[path[0]]
	if len(path) == 1 {
		if next != nil {
			return false
		}
		n.below[path[0]] = &node{name: path[0], folder: o}
		return true
	}
	if next == nil {
		next = &node{name: path[0], below: map[string]*node{}}
		n.below[path[0]] = next
	}
	return next.folder == nil && next.add(path[1:], o)
}

// space returns the space of a folder, or of a directory whose folders all belong to one quota
// scope.
func (t *tree) space(ctx context.Context, name string) (out volume.Space, known bool, err error) {
	at, err := t.find(ctx, name)
	if err != nil {
		return out, false, err
	}
	folder := at.folder
	if folder == nil {
		folder = at.node.only()
	}
	if folder == nil || folder.check(false) != nil {
		return out, false, nil
	}
	err = t.in(folder, func(f *volume.Folder) (err error) {
		out, err = f.Space(ctx)
		return err
	})
	return out, err == nil, err
}

// only returns a folder below a node if all folders there share one quota scope, and nil
// otherwise.
func (n *node) only() (one *open) {
	for _, below := range n.below {
		o := below.folder
		if o == nil {
			o = below.only()
		}
		if o == nil || one != nil && (o.ref.Volume != one.ref.Volume || o.ref.Scope != one.ref.Scope) {
			return nil
		}
		one = o
	}
	return one
}
