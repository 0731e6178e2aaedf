// Package remotewrite sends the measurements of containers, machines, devices and deployments to a Prometheus, by its protocol
// remote write (ADR 55). The leader sends what managers have stored (package series), in the order in which it was stored, and
// records in etcd how far it came. So a receiver that was down gets what it missed, as does a new leader's.
package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/series"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
)

const (
	// lookEvery is the time between two looks for new chunks. Managers store a chunk within seconds after its minute.
	lookEvery = 5 * time.Second
	// settled is the age of a chunk from which all chunks with lower IDs exist, because statements that write chunks take less time.
	settled = 30 * time.Second
	// maxPage limits the chunks in memory, and maxSamples the samples of one request, unless one chunk has more.
	maxPage    = 100
	maxSamples = 5000
	readTime   = 20 * time.Second
	etcdTime   = 5 * time.Second
	// positionKey is the key of the recorded position in etcd.
	positionKey = "/berth/remote-write"

	// DefaultBuffer is how old samples can be that are sent after an outage.
	DefaultBuffer = 2 * time.Hour
)

// Config has the address of the receiver and what a Service reads.
type Config struct {
	URL string // of remote write; "": nothing is sent
	// TokenFile has a bearer token. User and PasswordFile are for HTTP basic authentication. Files are read for each request.
	TokenFile, User, PasswordFile string
	Buffer                        time.Duration // 0: DefaultBuffer

	Client   *ent.Client
	Etcd     *clientv3.Client
	Registry prometheus.Registerer
	Logger   *slog.Logger
}

// Check returns an error for an address or a combination of credentials that cannot work.
func (c Config) Check() error {
	if c.URL == "" {
		if c.TokenFile != "" || c.User != "" || c.PasswordFile != "" {
			return errors.New("credentials of remote write are given without its URL")
		}
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errors.New("the URL of remote write does not have the form https://prometheus.example.org/api/v1/write, without credentials")
	}
	if (c.User == "") != (c.PasswordFile == "") {
		return errors.New("the user and the password file of remote write must be given together")
	}
	if c.User != "" && c.TokenFile != "" {
		return errors.New("remote write has a token file and a user: choose one")
	}
	if c.Buffer < 0 {
		return fmt.Errorf("the buffer of remote write %s is negative", c.Buffer)
	}
	return nil
}

// Service sends measurements. New creates one.
type Service struct {
	Config
	codec *series.Codec
	http  *http.Client
	meter *meter
	// subjects are the labels of the subjects of recent chunks.
	subjects map[uuid.UUID]subject
}

// New returns a Service. Lead sends.
func New(cfg Config) (*Service, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Buffer == 0 {
		cfg.Buffer = DefaultBuffer
	}
	codec, err := series.NewCodec()
	if err != nil {
		return nil, err
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // credentials stay with the receiver
	return &Service{
		Config: cfg, codec: codec, meter: newMeter(cfg.Registry), subjects: map[uuid.UUID]subject{},
		http: &http.Client{CheckRedirect: refuse, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 2, IdleConnTimeout: time.Minute}},
	}, nil
}

// chunk is one row of the history.
type chunk struct {
	id     int64
	source uuid.UUID
	start  time.Time
	data   []byte
}

// position is how far the chunks were sent: all with an ID up to low, and those in sent, whose IDs are above it. Chunks can
// become visible out of the order of their IDs, because managers write them at the same time.
type position struct {
	low  int64
	sent map[int64]time.Time // when it was read first
}

// Lead sends until ctx ends. Only the leader runs it.
func (s *Service) Lead(ctx context.Context) {
	if s.URL == "" {
		return
	}
	ctx = store.On(viewer.SystemContext(ctx), store.Leader)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var at *position
	for {
		err := func() (err error) {
			if at == nil {
				if at, err = s.begin(ctx); err != nil {
					return err
				}
			}
			return s.sendNew(ctx, at)
		}()
		if err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "send measurements to Prometheus", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// begin returns the recorded position. The first leader begins with what is stored from now on.
func (s *Service) begin(ctx context.Context) (*position, error) {
	at := &position{sent: map[int64]time.Time{}}
	limited, cancel := context.WithTimeout(ctx, etcdTime)
	defer cancel()
	got, err := s.Etcd.Get(limited, positionKey)
	if err != nil {
		return nil, fmt.Errorf("read the position of remote write: %w", err)
	}
	if len(got.Kvs) > 0 {
		if at.low, err = strconv.ParseInt(string(got.Kvs[0].Value), 10, 64); err != nil {
			return nil, fmt.Errorf("the position of remote write %q in etcd is not a number", got.Kvs[0].Value)
		}
	}
	// A database that was restored from a backup, or is new, has lower IDs.
	newest, err := s.newest(ctx)
	if err != nil {
		return nil, err
	}
	if len(got.Kvs) == 0 || at.low > newest {
		at.low = newest
		return at, s.record(ctx, at.low)
	}
	return at, nil
}

func (s *Service) newest(ctx context.Context) (id int64, err error) {
	ctx = store.StatementTimeout(ctx, readTime)
	res, err := s.Client.QueryContext(ctx, `SELECT coalesce(max(id), 0) FROM series_chunks`)
	if err != nil {
		return 0, fmt.Errorf("find the newest measurements: %w", err)
	}
	defer res.Close()
	if res.Next() {
		err = res.Scan(&id)
	}
	return id, errors.Join(err, res.Err())
}

func (s *Service) record(ctx context.Context, low int64) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTime)
	defer cancel()
	if _, err := s.Etcd.Put(ctx, positionKey, strconv.FormatInt(low, 10)); err != nil {
		return fmt.Errorf("record the position of remote write: %w", err)
	}
	return nil
}

// sendNew sends all chunks that were stored since the last call, page by page.
func (s *Service) sendNew(ctx context.Context, at *position) error {
	from := at.low
	for {
		page, err := s.page(ctx, from)
		if err != nil {
			return err
		}
		var fresh []chunk
		for _, c := range page {
			from = c.id
			if _, before := at.sent[c.id]; !before {
				fresh = append(fresh, c)
			}
		}
		if err := s.sendChunks(ctx, fresh); err != nil {
			return err
		}
		for _, c := range fresh {
			at.sent[c.id] = clock.Now()
		}
		if at.settle(clock.Now()) {
			if err := s.record(ctx, at.low); err != nil {
				return err
			}
		}
		if len(page) < maxPage {
			return nil
		}
	}
}

// settle moves low up to the highest ID that was read long enough ago, and reports whether it moved.
func (p *position) settle(now time.Time) bool {
	low := p.low
	for id, at := range p.sent {
		if now.Sub(at) >= settled {
			low = max(low, id)
		}
	}
	moved := low > p.low
	for id := range p.sent {
		if id <= low {
			delete(p.sent, id)
		}
	}
	p.low = low
	return moved
}

// page returns the next chunks of samples after an ID.
func (s *Service) page(ctx context.Context, after int64) (list []chunk, err error) {
	ctx = store.StatementTimeout(ctx, readTime)
	res, err := s.Client.QueryContext(ctx, `SELECT id, source, start, data FROM series_chunks WHERE id > $1 AND "grain" = 0 ORDER BY id LIMIT $2`, after, maxPage)
	if err != nil {
		return nil, fmt.Errorf("read measurements: %w", err)
	}
	defer res.Close()
	for res.Next() {
		var c chunk
		if err := res.Scan(&c.id, &c.source, &c.start, &c.data); err != nil {
			return nil, err
		}
		c.start = c.start.UTC()
		list = append(list, c)
	}
	return list, res.Err()
}
