package layers

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/internal/ticket"
)

// blob is a part that arrives in steps.
type blob struct {
	data  []byte
	steps chan int64 // available bytes; closed when the part is complete
	have  int64
	err   error // after the last step
}

func (b *blob) Size() int64                            { return int64(len(b.data)) }
func (b *blob) Close() error                           { return nil }
func (b *blob) ReadAt(p []byte, at int64) (int, error) { return bytes.NewReader(b.data).ReadAt(p, at) }
func (b *blob) Await(ctx context.Context, n int64) (int64, bool, error) {
	for {
		select {
		case have, more := <-b.steps:
			if !more {
				return b.Size(), b.err == nil, b.err
			}
			if b.have = have; have > n {
				return have, false, nil
			}
		case <-ctx.Done():
			return b.have, false, ctx.Err()
		}
	}
}

// complete returns a part that is complete.
func complete(data []byte) *blob {
	steps := make(chan int64)
	close(steps)
	return &blob{data: data, steps: steps}
}

type store map[string]*blob

func (s store) OpenPart(_ context.Context, d string) (runtime.Part, error) {
	if b := s[d]; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("part %s: %w", d, errdefs.ErrNotFound)
}

// bench is a server and a client. TLS of the cluster is tested in internal/cluster.
type bench struct {
	server   *Server
	client   *Client
	signer   *ticket.Signer
	url      string
	manifest []byte
	image    string
	layer    []byte
	store    store
	caller   string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	key, err := ticket.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{signer: ticket.NewSigner(key), layer: make([]byte, 700<<10), caller: "node-2"}
	rand.Read(b.layer)
	b.manifest, _ = json.Marshal(map[string]any{"layers": []map[string]any{{"digest": digest.FromBytes(b.layer).String()}}})
	b.image = digest.FromBytes(b.manifest).String()
	b.store = store{b.image: complete(b.manifest), digest.FromBytes(b.layer).String(): complete(b.layer)}
	verifier := &ticket.Verifier{}
	if err := verifier.SetKeys([][]byte{b.signer.PublicKey()}); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	b.server = &Server{
		Parts: b.store, Verifier: verifier, Uploads: make(chan struct{}, 2), Meter: NewMeter(nil), Logger: log,
		Caller: func(*http.Request) string { return b.caller },
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /parts/{digest}", b.server.part)
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	b.url = strings.TrimPrefix(s.URL, "https://")
	b.client = &Client{
		Meter: NewMeter(nil), Logger: log, Verifier: verifier,
		Dial: func(string) *tls.Config { return &tls.Config{InsecureSkipVerify: true} },
	}
	return b
}

func (b *bench) ticket(c ticket.Claims) string {
	if c.Operation == "" {
		c.Operation = ticket.Layers
	}
	if c.Expires.IsZero() {
		c.Expires = time.Now().Add(time.Minute)
	}
	return b.signer.Sign(c)
}

func (b *bench) open(t *testing.T, token string, r runtime.PartRequest) (runtime.PeerPart, error) {
	t.Helper()
	p, err := b.client.open(t.Context(), &agentpb.LayerAnswer{Agent: "node-1", Address: b.url, Ticket: token}, r, func() {})
	if err == nil {
		t.Cleanup(func() { p.Close() })
	}
	return p, err
}

func TestPartIsSent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	token := b.ticket(ticket.Claims{User: "node-2", Path: b.image})
	for _, offset := range []int64{0, 1, 300_000, int64(len(b.layer))} {
		p, err := b.open(t, token, runtime.PartRequest{Digest: digest.FromBytes(b.layer).String(), Offset: offset, Documents: [][]byte{b.manifest}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(p)
		if err != nil || !bytes.Equal(got, b.layer[offset:]) {
			t.Errorf("from %d: %d bytes, %v; want %d", offset, len(got), err, len(b.layer)-int(offset))
		}
	}
}

func TestPartIsSentWhileItArrives(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	arriving := &blob{data: b.layer, steps: make(chan int64)}
	b.store[digest.FromBytes(b.layer).String()] = arriving
	p, err := b.open(t, b.ticket(ticket.Claims{User: "node-2", Path: b.image}),
		runtime.PartRequest{Digest: digest.FromBytes(b.layer).String(), Documents: [][]byte{b.manifest}})
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, len(b.layer))
	arriving.steps <- 1000
	if _, err := io.ReadFull(p, buf[:1000]); err != nil {
		t.Fatalf("the first bytes, before the others exist: %v", err)
	}
	arriving.steps <- int64(len(b.layer))
	if _, err := io.ReadFull(p, buf[1000:]); err != nil || !bytes.Equal(buf, b.layer) {
		t.Fatalf("the other bytes: %v", err)
	}
	arriving.err = fmt.Errorf("wrong digest: %w", errdefs.ErrDataLoss)
	close(arriving.steps)
	p.Corrupt(t.Context())
	if list := b.client.shunned(); len(list) > 0 {
		t.Errorf("not asked again: %v, although the agent has withdrawn the part", list)
	}
}

func TestCorruptAgentIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p, err := b.open(t, b.ticket(ticket.Claims{User: "node-2", Path: b.image}), runtime.PartRequest{Digest: b.image})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p, make([]byte, len(b.manifest))); err != nil {
		t.Fatal(err)
	}
	p.Corrupt(t.Context()) // a receiver found that the digest differs
	if list := b.client.shunned(); len(list) != 1 || list[0] != "node-1" {
		t.Errorf("not asked again: %v, want node-1", list)
	}
}

func TestBrokenConnectionIsAnError(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.store[b.image] = &blob{data: b.manifest, steps: make(chan int64, 1), err: errors.New("disk broke")}
	b.store[b.image].steps <- 10
	close(b.store[b.image].steps)
	p, err := b.open(t, b.ticket(ticket.Claims{User: "node-2", Path: b.image}), runtime.PartRequest{Digest: b.image})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(p); !errors.Is(err, errAborted) || len(got) > 10 {
		t.Errorf("read %d bytes and %v, want an aborted part", len(got), err)
	}
}

// TestForeignPartsAreRefused is a row of docs/security.md.
func TestForeignPartsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	secret := []byte("layer of a private image")
	b.store[digest.FromBytes(secret).String()] = complete(secret)
	forged, _ := json.Marshal(map[string]any{"layers": []map[string]any{{"digest": digest.FromBytes(secret).String()}}})
	other, _ := ticket.NewKey()
	good := b.ticket(ticket.Claims{User: "node-2", Path: b.image})
	for name, tc := range map[string]struct {
		ticket    string
		digest    string
		documents [][]byte
		status    int
	}{
		"no ticket":             {"", b.image, nil, http.StatusUnauthorized},
		"ticket of another key": {ticket.NewSigner(other).Sign(ticket.Claims{Operation: ticket.Layers, User: "node-2", Path: b.image, Expires: time.Now().Add(time.Minute)}), b.image, nil, http.StatusUnauthorized},
		"expired ticket":        {b.ticket(ticket.Claims{User: "node-2", Path: b.image, Expires: time.Now().Add(-time.Minute)}), b.image, nil, http.StatusUnauthorized},
		"ticket for files":      {b.ticket(ticket.Claims{Operation: ticket.Download, User: "node-2", Path: b.image}), b.image, nil, http.StatusForbidden},
		"another agent's":       {b.ticket(ticket.Claims{User: "node-3", Path: b.image}), b.image, nil, http.StatusForbidden},
		"part of another image": {good, digest.FromBytes(secret).String(), [][]byte{b.manifest}, http.StatusForbidden},
		"forged manifest":       {good, digest.FromBytes(secret).String(), [][]byte{forged}, http.StatusForbidden},
		"forged second":         {good, digest.FromBytes(secret).String(), [][]byte{b.manifest, forged}, http.StatusForbidden},
		"three documents":       {good, b.image, [][]byte{b.manifest, b.manifest, b.manifest}, http.StatusBadRequest},
		"path":                  {good, "..%2f..%2fetc%2fpasswd", nil, http.StatusBadRequest},
		"other algorithm":       {good, "sha512:" + strings.Repeat("0", 128), nil, http.StatusBadRequest},
		"capitals":              {good, strings.ToUpper(b.image), nil, http.StatusBadRequest},
		"absent":                {b.ticket(ticket.Claims{User: "node-2", Path: digest.FromString("x").String()}), digest.FromString("x").String(), nil, http.StatusNotFound},
	} {
		body, _ := json.Marshal(request{Ticket: tc.ticket, Documents: tc.documents})
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		resp, err := client.Post("https://"+b.url+"/parts/"+tc.digest, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tc.status || bytes.Contains(text, secret) {
			t.Errorf("%s: %s %q, want %d", name, resp.Status, text, tc.status)
		}
	}
}

func TestUploadsAreLimited(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	slow := &blob{data: b.manifest, steps: make(chan int64)}
	b.store[b.image] = slow
	token := b.ticket(ticket.Claims{User: "node-2", Path: b.image})
	for range cap(b.server.Uploads) {
		b.server.Uploads <- struct{}{}
	}
	if _, err := b.open(t, token, runtime.PartRequest{Digest: b.image}); !errdefs.IsUnavailable(err) {
		t.Errorf("error is %v, want unavailable", err)
	}
}
