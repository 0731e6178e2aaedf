package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/containerd/errdefs"
)

const transportProtocol = "graphql-transport-ws"

// The close codes of graphql-transport-ws.
const (
	closeBadRequest      = 4400
	closeUnauthorized    = 4401 // clients do not reconnect
	closeInitTimeout     = 4408
	closeBadSubprotocol  = 4406
	closeDuplicate       = 4409
	closeTooManyRequests = 4429
)

// closeCodes maps gqlgen's reasons for closing a socket to close codes.
var closeCodes = map[string]int{
	"connection initialisation timeout": closeInitTimeout,
	"decoding error":                    closeBadRequest,
	"unexpected message":                closeBadRequest,
}

// sockets accepts WebSockets that follow graphql-transport-ws strictly where gqlgen is
// lenient: an id in use, a second connection_init, and the close codes.
type sockets struct {
	transport.CoderWebsocketImplementation
}

// Accept implements transport.WebsocketImplementation.
func (s sockets) Accept(w http.ResponseWriter, r *http.Request, opt transport.WebsocketAcceptOptions) (transport.WebsocketConn, error) {
	opt.Subprotocols = []string{transportProtocol}
	c, err := s.CoderWebsocketImplementation.Accept(w, r, opt)
	if err != nil {
		return nil, err
	}
	conn := connectionOf(r.Context())
	if conn == nil {
		conn = &connection{}
	}
	conn.follow(r.Context())
	k := &socket{WebsocketConn: c, connection: conn, active: map[string]bool{}}
	conn.mu.Lock()
	conn.flooded = func() { _ = k.WriteClose(closeTooManyRequests, "Too many requests") }
	conn.mu.Unlock()
	if c.Subprotocol() != transportProtocol {
		return nil, fmt.Errorf("subprotocol: %w", k.refuse(closeBadSubprotocol, "Subprotocol not acceptable"))
	}
	return k, nil
}

// socket is one WebSocket.
type socket struct {
	transport.WebsocketConn
	connection *connection

	mu      sync.Mutex
	began   bool // connection_init was received
	greeted bool // connection_ack was sent
	active  map[string]bool
}

// frame has the common fields of all messages of the protocol.
type frame struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// NextReader implements transport.WebsocketConn.
func (s *socket) NextReader() (int, io.Reader, error) {
	kind, r, err := s.WebsocketConn.NextReader()
	if err != nil {
		return kind, r, err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return kind, nil, err
	}
	var f frame
	if err := json.Unmarshal(text, &f); err != nil {
		return kind, nil, s.refuse(closeBadRequest, "Invalid message received")
	}
	if code, reason := s.note(f); code != 0 {
		return kind, nil, s.refuse(code, reason)
	}
	return kind, bytes.NewReader(text), nil
}

// note tracks the state of the protocol, and returns the reason why the socket must be closed.
func (s *socket) note(f frame) (code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f.Type {
	case "connection_init":
		if s.began {
			return closeTooManyRequests, "Too many initialisation requests"
		}
		s.began = true
	case "subscribe":
		switch {
		case !s.greeted:
			return closeUnauthorized, "Unauthorized"
		case f.ID == "":
			return closeBadRequest, "Invalid message received"
		case s.active[f.ID]:
			return closeDuplicate, "Subscriber for " + cutReason(f.ID) + " already exists"
		}
		s.active[f.ID] = true
	case "complete":
		delete(s.active, f.ID)
	case "ping", "pong":
	default:
		return closeBadRequest, "Invalid message received"
	}
	return 0, ""
}

// cutReason truncates a reason to the 123 bytes that a close frame can contain.
func cutReason(id string) string {
	if len(id) > 64 || !json.Valid([]byte(`"`+id+`"`)) {
		return "this id"
	}
	return id
}

// WriteJSON implements transport.WebsocketConn.
func (s *socket) WriteJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var f frame
	if err := json.Unmarshal(text, &f); err == nil {
		s.mu.Lock()
		switch f.Type {
		case "connection_ack":
			s.greeted = true
		case "complete", "error":
			delete(s.active, f.ID)
		}
		s.mu.Unlock()
	}
	return s.WebsocketConn.WriteJSON(json.RawMessage(text))
}

// WriteClose implements transport.WebsocketConn with the codes of the protocol. A socket whose
// login ended, or that never sent one, closes with 4401.
func (s *socket) WriteClose(code int, reason string) error {
	if own, ok := closeCodes[reason]; ok {
		code = own
	} else if code == transport.WebsocketCloseNormalClosure && reason == "terminated" {
		s.mu.Lock()
		refused := s.began && !s.greeted
		s.mu.Unlock()
		if refused || s.connection.revoked() {
			code, reason = closeUnauthorized, "Unauthorized"
		}
	}
	return s.WebsocketConn.WriteClose(code, reason)
}

func (s *socket) refuse(code int, reason string) error {
	_ = s.WebsocketConn.WriteClose(code, reason)
	return transport.ErrWebsocketClosed
}

// connection is the state of one request or WebSocket.
type connection struct {
	mu            sync.Mutex
	open, refused int
	flooded       func()          // closes a WebSocket
	ctx           context.Context // context of its login
}

type connectionKey struct{}

// connected adds a connection to the context of requests for WebSockets.
func connected(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			r = r.WithContext(context.WithValue(r.Context(), connectionKey{}, &connection{}))
		}
		next.ServeHTTP(w, r)
	})
}

func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// follow makes the end of ctx close the connection.
func (c *connection) follow(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = ctx
}

// revoked reports whether the connection ends because its login was revoked.
func (c *connection) revoked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx != nil && errdefs.IsUnauthorized(context.Cause(c.ctx))
}

// followed wraps init so that the connection ends with the context that init returns.
func followed(init transport.WebsocketInitFunc) transport.WebsocketInitFunc {
	return func(ctx context.Context, p transport.InitPayload) (context.Context, *transport.InitPayload, error) {
		ctx, ack, err := init(ctx, p)
		if c := connectionOf(ctx); c != nil && err == nil {
			c.follow(ctx)
		}
		return ctx, ack, err
	}
}
