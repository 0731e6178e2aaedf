package sshaccess

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/auditentry"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/portstream"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/testenv/wait"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/audit"
	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/idle"
	"github.com/berthhq/berth/manager/policy"
	"github.com/berthhq/berth/manager/session"
)

const long = 2 * time.Minute

// machine is an agent whose kernels are this machine: it runs the runner's server. It opens streams to itself.
type machine struct{ program string }

// Open implements portstream.Opener.
func (m *machine) Open(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go m.serve(context.WithoutCancel(ctx), theirs)
	return ours, nil
}

func (m *machine) serve(ctx context.Context, stream net.Conn) {
	defer stream.Close()
	call, err := portstream.Accept(stream)
	if err != nil {
		return
	}
	if call.Port != portstream.SSH {
		err = errdefs.ErrInvalidArgument
	}
	if _, err := call.Answer(err); err != nil {
		return
	}
	cmd := exec.CommandContext(ctx, m.program, "sshd")
	cmd.Stdin, cmd.Stdout, cmd.WaitDelay = stream, stream, time.Second
	_ = cmd.Run()
}

// world is an SSH server for sessions of the domain A, whose kernels are on the machine.
type world struct {
	*identitytest.World
	t       *testing.T
	ctx     context.Context // context of the platform
	auth    *auth.Service
	machine *machine
	agent   *ent.Agent
	group   *ent.ResourceGroup
	image   *ent.Image
	server  *Server
	address string
}

// Streams implements Agents.
func (w *world) Streams(agent string) (portstream.Opener, error) {
	if agent != "machine" {
		return nil, problem.Unavailable("machine %s is not connected", agent)
	}
	return w.machine, nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: identitytest.New(t), t: t, ctx: viewer.SystemContext(t.Context()), machine: &machine{program: filepath.Join(t.TempDir(), "runner")}}
	build := exec.Command("go", "build", "-trimpath", "-o", w.machine.program, "github.com/berthhq/berth/cmd/berth-runner")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.group = w.Client.ResourceGroup.Create().SetName("default").SaveX(w.ctx)
	reg := w.Client.Registry.Create().SetName("test").SetHost("registry.test").SaveX(w.ctx)
	w.image = w.Client.Image.Create().SetReference("registry.test/i:1").SetName("i:1").SetArchitecture("amd64").SetDigest("-").SetRegistry(reg).SaveX(w.ctx)
	w.agent = w.Client.Agent.Create().SetName("machine").SetResourceGroup(w.group).SaveX(w.ctx)
	log, bus := slog.New(slog.DiscardHandler), event.New(nil, nil)
	policies := policy.New(policy.Config{Client: w.Client, Bus: bus})
	w.auth = auth.New(auth.Config{Client: w.Client, Bus: bus, Passwords: identitytest.Hasher(), Logger: log})
	idles := idle.New(idle.Config{Client: w.Client, Bus: bus, Policies: policies, Logger: log,
		Sessions: session.New(session.Config{Client: w.Client, Bus: bus, Policies: policies, Logger: log})})
	l := listen(t)
	w.address = l.Addr().String()
	w.server = New(Config{
		Listener: l, HostKeys: []ssh.Signer{signer(t)}, Client: w.Client, Auth: w.auth, Idle: idles, Audit: audit.New(audit.Config{Client: w.Client, Logger: log}),
		Agents: w, Registry: prometheus.NewRegistry(), Logger: log,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = w.auth.Run(ctx) })
	parts.Go(func() {
		if err := w.server.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); parts.Wait() })
	return w
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func signer(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// running creates a running session with two kernels.
func (w *world) running(name string, owner *ent.User) *ent.Session {
	slots := resource.Slots{"cpu": 1000}
	s := w.Client.Session.Create().SetName(name).SetType("interactive").SetStatus(lifecycle.Running).SetStartedAt(time.Now()).SetSlots(slots).
		SetDomain(w.A.Domain).SetProject(w.A.Project).SetOwner(owner).SetResourceGroup(w.group).SetImage(w.image).SaveX(w.ctx)
	for i, host := range []string{"main", "sub1"} {
		k := w.Client.Kernel.Create().SetSession(s).SetSlots(slots).SetStatus(lifecycle.Running).SetAgent(w.agent).SetIndex(i).SetHostname(host).
			SetDomainID(s.DomainID).SetProjectID(s.ProjectID).SetOwnerID(s.OwnerID)
		if i > 0 {
			k.SetRole("sub")
		}
		k.ExecX(w.ctx)
	}
	return s
}

// key adds a new SSH key to a user.
func (w *world) key(u *ent.User) ssh.Signer {
	w.t.Helper()
	s := signer(w.t)
	w.add(u, s)
	return s
}

func (w *world) add(u *ent.User, s ssh.Signer) *ent.SSHKey {
	w.t.Helper()
	public := string(ssh.MarshalAuthorizedKey(s.PublicKey()))
	made, err := w.auth.CreateSSHKey(w.As(w.t, u), auth.CreateSSHKeyInput{Name: "k", PublicKey: &public})
	if err != nil {
		w.t.Fatal(err)
	}
	return made.SSHKey
}

func (w *world) dial(user string, how ssh.AuthMethod) (*ssh.Client, error) {
	c, err := ssh.Dial("tcp", w.address, &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{how},
		HostKeyCallback: ssh.FixedHostKey(w.server.cfg.HostKeys[0].PublicKey()), Timeout: long})
	if err == nil {
		w.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// token returns the login with a new access token of a user.
func (w *world) token(u *ent.User, scopes ...access.TokenScope) ssh.AuthMethod {
	w.t.Helper()
	made, err := w.auth.CreateAccessToken(w.As(w.t, u), auth.CreateAccessTokenInput{Name: string(scopes[0]), Scopes: scopes})
	if err != nil {
		w.t.Fatal(err)
	}
	return ssh.Password(*made.Secret)
}

// output runs a command and returns its output, or the message of the gateway.
func (w *world) output(user string, how ssh.AuthMethod) string {
	c, err := w.dial(user, how)
	if err != nil {
		return "no login"
	}
	defer c.Close()
	s, err := c.NewSession()
	if err != nil {
		return err.Error()
	}
	out, _ := s.CombinedOutput("echo inside")
	return strings.TrimSpace(string(out))
}

// Users log in with the keys and tokens of their account, and can enter only sessions that they
// have permission for.
func TestWhoEnters(t *testing.T) {
	w := newWorld(t)
	train, other := w.running("train", w.A.Member), w.running("other", w.A.Lead)
	w.Client.Session.Create().SetName("over").SetType("interactive").SetStatus(lifecycle.Terminated).SetTerminatedAt(time.Now()).SetSlots(resource.Slots{}).
		SetDomain(w.A.Domain).SetProject(w.A.Project).SetOwner(w.A.Member).SetResourceGroup(w.group).SetImage(w.image).ExecX(w.ctx)
	member, stranger := ssh.PublicKeys(w.key(w.A.Member)), ssh.PublicKeys(w.key(w.B.Member))
	for name, c := range map[string]struct {
		user string
		how  ssh.AuthMethod
		want string
	}{
		"key":                              {"train", member, "inside"},
		"key and ID":                       {train.ID.String(), member, "inside"},
		"key and account":                  {"member-a@example.org+train", member, "inside"},
		"key of another account":           {"member-b@example.org+train", member, "no login"},
		"unknown key":                      {"train", ssh.PublicKeys(signer(t)), "no login"},
		"token":                            {"train", w.token(w.A.Member, access.TokenSessions), "inside"},
		"token without the scope":          {"train", w.token(w.A.Member, access.TokenFolders), "lacks the scope sessions"},
		"wrong token":                      {"train", ssh.Password("berth_guess"), "no login"},
		"kernel":                           {"train.sub1", member, "inside"},
		"missing kernel":                   {"train.sub7", member, "kernel sub7 not found"},
		"of another domain":                {"train", stranger, `session "train" not found`},
		"ID, of another domain":            {train.ID.String(), stranger, "session not found"},
		"ended":                            {"over", member, `session "over" not found`},
		"missing":                          {uuid.NewString(), member, "session not found"},
		"of a colleague":                   {other.ID.String(), member, "session not found"},
		"of a member, as an administrator": {"train", w.token(w.A.Lead, access.TokenSessions, access.TokenAdmin), "you may not enter this session"},
		"of a member, with a key":          {"train", ssh.PublicKeys(w.key(w.A.Lead)), "not found"}, // keys have no rights of administrators
	} {
		if got := w.output(c.user, c.how); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	log := w.Client.AuditEntry.Query().Where(auditentry.Action("enterSession")).AllX(w.ctx)
	results := map[string]int{}
	for _, e := range log {
		results[e.Result]++
		if e.ClientAddress != "127.0.0.1" {
			t.Errorf("the audit log has the address %q", e.ClientAddress)
		}
	}
	if results[audit.OK] != 5 || results["PERMISSION_DENIED"] == 0 {
		t.Errorf("the audit log has %v", results)
	}
}

// A name of several sessions is an error, but the user's own session takes precedence.
func TestNames(t *testing.T) {
	w := newWorld(t)
	w.running("same", w.A.Member)
	w.running("same", w.A.Loner)
	if got := w.output("same", ssh.PublicKeys(w.key(w.A.Member))); got != "inside" {
		t.Errorf("the own session: %q", got)
	}
	if got := w.output("same", w.token(w.A.Lead, access.TokenSessions, access.TokenAdmin)); !strings.Contains(got, "several sessions are named same") {
		t.Errorf("two of others: %q", got)
	}
}

// If two accounts have the same key, a login with it is ambiguous, so that neither account can
// attract the logins of the other.
func TestKeyOfTwoAccounts(t *testing.T) {
	w := newWorld(t)
	w.running("train", w.A.Member)
	s := w.key(w.A.Member)
	w.add(w.B.Member, s)
	if got := w.output("train", ssh.PublicKeys(s)); got != "no login" {
		t.Errorf("without an account: %q", got)
	}
	if got := w.output("member-a@example.org+train", ssh.PublicKeys(s)); got != "inside" {
		t.Errorf("with the account: %q", got)
	}
}

// Every loss of access ends open connections.
func TestRevoked(t *testing.T) {
	w := newWorld(t)
	train := w.running("train", w.A.Member)
	for name, revoke := range map[string]func(k *ent.SSHKey) error{
		"the key is deleted": func(k *ent.SSHKey) error {
			_, err := w.auth.DeleteSSHKey(w.As(t, w.A.Member), auth.DeleteSSHKeyInput{ID: k.ID})
			return err
		},
		"the person logs out everywhere": func(*ent.SSHKey) error { w.auth.Disconnect(w.ctx, w.A.Member.ID); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := signer(t)
			k := w.add(w.A.Member, s)
			c, err := w.dial(train.ID.String(), ssh.PublicKeys(s))
			if err != nil {
				t.Fatal(err)
			}
			se, err := c.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			se.Stderr = &said
			out, _ := se.StdoutPipe()
			in, _ := se.StdinPipe()
			if err := se.Start("echo started; cat"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(out, make([]byte, 8)); err != nil {
				t.Fatal(err)
			}
			if err := revoke(k); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			wait.Until(t, "the connection ends", func() bool { _, _, err := c.SendRequest("keepalive@openssh.com", true, nil); return err != nil })
			t.Logf("ended after %v", time.Since(began))
			_ = se.Wait()
			in.Close()
			if !strings.Contains(said.String(), "your access has ended") {
				t.Errorf("the person sees %q", said.String())
			}
			_ = w.Client.SSHKey.DeleteOneID(k.ID).Exec(w.ctx)
		})
	}
}
