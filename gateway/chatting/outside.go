package chatting

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/chat"
)

const (
	// headTime limits the time until an endpoint begins its answer.
	headTime = 10 * time.Minute
	// maxOutside limits the bytes of an answer of an endpoint, and maxHead those of its header.
	maxOutside = 64 << 20
	maxHead    = 64 << 10
)

// newOutside returns the client for endpoints. It follows no redirect, because a redirect could name another server, which would get
// the prompt.
func newOutside(cfg Config) *http.Client {
	t := cfg.Egress.Transport(egress.Public)
	t.ResponseHeaderTimeout, t.MaxResponseHeaderBytes = headTime, maxHead
	t.TLSClientConfig = &tls.Config{RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// askOutside sends the request to an endpoint outside the cluster.
func (r *run) askOutside(ctx context.Context, body []byte, in *reader) error {
	e, err := r.endpoint(ctx)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Address+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask endpoint %s: %w", e.ID, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "berth")
	key := ""
	if len(e.KeySealed) > 0 {
		secret, err := r.Keys.Open(seal.EndpointKey, e.KeySealed)
		if err != nil {
			return fmt.Errorf("decrypt the key of endpoint %s: %w", e.ID, err)
		}
		key = string(secret)
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := r.outside.Do(req)
	if err != nil {
		return r.unreachable(ctx, e, err)
	}
	defer resp.Body.Close()
	return answered(e, key, resp, in)
}

// endpoint returns the endpoint of the answer, if its owner can use it at this time.
func (r *run) endpoint(ctx context.Context) (*ent.ChatEndpoint, error) {
	m := r.answer.Asked.Model
	rights, err := r.Users.Rights(ctx, []uuid.UUID{r.answer.OwnerID})
	if err != nil {
		return nil, fmt.Errorf("read the rights of a user: %w", err)
	}
	v := rights[r.answer.OwnerID]
	if v == nil {
		return nil, failure("the user is not active")
	}
	e, err := r.Client.ChatEndpoint.Get(ctx, *m.EndpointID)
	switch {
	case ent.IsNotFound(err):
		return nil, failure("the endpoint was deleted")
	case err != nil:
		return nil, fmt.Errorf("read endpoint: %w", err)
	case !chat.Usable(e, v.Domain):
		return nil, failure("the endpoint " + e.Name + " is not enabled for your domain")
	case !slices.Contains(e.Models, m.Name):
		return nil, failure("the endpoint " + e.Name + " does not offer the model " + m.Name + " any longer")
	}
	return e, nil
}

// unreachable is the error of an endpoint that does not answer. Operators find the reason in the log, which names no prompt.
func (r *run) unreachable(ctx context.Context, e *ent.ChatEndpoint, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var refused *egress.Refused
	if errors.As(err, &refused) {
		return failure("the endpoint " + e.Name + " is not on the Internet, and not in a network that the operator allows with --chat-network")
	}
	r.Logger.WarnContext(ctx, "an endpoint of chats does not answer", "endpoint", e.Name, "reason", egress.Plain(err))
	return failure("the endpoint " + e.Name + " does not answer")
}

// answered reads the answer of an endpoint. Its errors can repeat the key, which users must not see.
func answered(e *ent.ChatEndpoint, key string, resp *http.Response, in *reader) error {
	limited := io.LimitReader(resp.Body, maxOutside)
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return failure("the endpoint " + e.Name + " answers with a redirect, which is not followed")
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return failure(fmt.Sprintf("the endpoint %s refuses its key (status %d)", e.Name, resp.StatusCode))
	case resp.StatusCode == http.StatusOK && kind == "text/event-stream":
		if _, err := io.Copy(in, limited); err != nil {
			return errCut
		}
		in.failed = without(in.failed, key)
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(limited, maxWhole))
	if err != nil {
		return errCut
	}
	if err := in.all(resp.StatusCode, body); err != nil {
		return failure(without(err.Error(), key))
	}
	in.failed = without(in.failed, key)
	return nil
}

func without(text, key string) string {
	if key == "" {
		return text
	}
	return strings.ReplaceAll(text, key, "***")
}
