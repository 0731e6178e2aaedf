package notice_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/internal/resource"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/identity/identitytest"
	"github.com/berthhq/berth/manager/notice"
	"github.com/berthhq/berth/manager/notice/mail"
)

// bed is a database with a clock that the test moves.
type bed struct {
	*identitytest.World
	ctx   context.Context // of the system
	keys  *seal.Ring
	image *ent.Image
	group *ent.ResourceGroup

	mu  sync.Mutex
	now time.Time
	n   int
}

func newBed(t testing.TB) *bed {
	t.Helper()
	b := &bed{World: identitytest.New(t), now: clock.Now()}
	b.ctx = viewer.SystemContext(t.Context())
	var err error
	if b.keys, err = seal.Load(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	reg := b.Client.Registry.Create().SetName("r").SetHost("r.example.org").SaveX(b.ctx)
	b.image = b.Client.Image.Create().SetReference("r.example.org/i:1").SetName("i:1").SetArchitecture("x86_64").SetDigest("-").SetRegistry(reg).SaveX(b.ctx)
	b.group = b.Client.ResourceGroup.Create().SetName("g").SaveX(b.ctx)
	return b
}

func (b *bed) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now.IsZero() {
		return clock.Now()
	}
	return b.now
}

func (b *bed) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// service returns the service of one manager, which can reach the hosts.
func (b *bed) service(t testing.TB, sender *mail.Sender, hosts ...string) *notice.Service {
	t.Helper()
	policy, err := egress.Parse(hosts)
	if err != nil {
		t.Fatal(err)
	}
	return notice.New(notice.Config{Client: b.Client, Bus: event.New(nil, slog.New(slog.DiscardHandler)), Keys: b.keys, Egress: policy, Mail: sender,
		PublicURL: "https://berth.example", Now: b.clock})
}

// session returns a running session of a person.
func (b *bed) session(u *ent.User) *ent.Session {
	b.n++
	return b.Client.Session.Create().SetName(fmt.Sprint("s", b.n)).SetType("batch").SetStatus(lifecycle.Running).SetSlots(resource.Slots{"cpu": 1}).
		SetDomainID(b.A.Domain.ID).SetProject(b.A.Project).SetOwner(u).SetResourceGroup(b.group).SetImage(b.image).SaveX(b.ctx)
}

// fails adds the event of a failed session.
func fails(ctx context.Context, c *ent.SessionEventClient, s *ent.Session) {
	from, to := lifecycle.Running, lifecycle.Error
	c.Create().SetSession(s).SetPhase("run").SetFromStatus(from).SetToStatus(to).SetResult("failure").SetMessage("out of memory.").ExecX(ctx)
}

// notices returns those of a person, the oldest first.
func (b *bed) notices(t *testing.T, u *ent.User) []*ent.Notice {
	t.Helper()
	list := b.Client.Notice.Query().AllX(b.As(t, u))
	return list
}

func failures(n int, to ...*ent.User) []notice.Event {
	var list []notice.Event
	for i := range n {
		e := notice.Event{Key: fmt.Sprint("test ", i), Kind: "session_failed", Group: "array", Parameters: map[string]string{"name": fmt.Sprint("s", i), "reason": "x"}}
		for _, u := range to {
			e.Users = append(e.Users, u.ID)
		}
		list = append(list, e)
	}
	return list
}

// request is what a receiver got.
type request struct {
	id, signature string
	body          []byte
}

// receiver is a server of webhooks.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	down bool
	got  []request
	on   func() // called before the answer
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.on != nil {
			r.on()
		}
		if r.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		r.got = append(r.got, request{q.Header.Get("Berth-Delivery"), q.Header.Get("Berth-Signature"), body})
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) set(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.got...)
}

// channel adds a channel of a person, and returns the secret.
func (b *bed) channel(t *testing.T, s *notice.Service, u *ent.User, url string) (uuid.UUID, string) {
	t.Helper()
	made, err := s.CreateNoticeChannel(b.As(t, u), notice.CreateNoticeChannelInput{Type: "webhook", Name: "hook", URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return made.Channel.ID, *made.Secret
}
