package notice

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/noticekind"
	"github.com/berthhq/berth/internal/seal"
)

// Sign returns the header Berth-Signature of a request: the time, and the HMAC-SHA256 of the time, a dot and the body.
func Sign(secret []byte, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// send makes one request to a channel. Every answer of the class 2xx is a success.
func (s *Service) send(ctx context.Context, c *ent.NoticeChannel, delivery uuid.UUID, n *ent.Notice) error {
	address, err := s.Keys.Open(seal.ChannelAddress, c.AddressSealed)
	if err != nil {
		return fmt.Errorf("decrypt the address: %w", err)
	}
	body, err := s.body(c, delivery, n)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(address), bytes.NewReader(body))
	if err != nil {
		return errors.New("the address is not valid") // the error contains the address, which can have a secret
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Berth")
	if c.Type == noticekind.Webhook {
		secret, err := s.Keys.Open(seal.ChannelSecret, c.SecretSealed)
		if err != nil {
			return fmt.Errorf("decrypt the secret: %w", err)
		}
		req.Header.Set("Berth-Delivery", delivery.String())
		req.Header.Set("Berth-Signature", Sign(secret, s.Now(), body))
	}
	client := s.operators
	if c.UserID != nil {
		client = s.people
	}
	resp, err := client.Do(req)
	if err != nil {
		return errors.New(plain(err))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the receiver answered with status %d", resp.StatusCode)
	}
	return nil
}

// plain describes an error without the address, and names the option with which the operator allows a host.
func plain(err error) string {
	var refused *egress.Refused
	if errors.As(err, &refused) {
		return "the host is not one that channels can reach: the operator allows more hosts with --notice-network"
	}
	return egress.Plain(err)
}

func (s *Service) body(c *ent.NoticeChannel, delivery uuid.UUID, n *ent.Notice) ([]byte, error) {
	p := s.payloadOf(delivery, n)
	if c.Type != noticekind.Slack {
		return json.Marshal(p)
	}
	text := slackText(p.Text)
	if p.Link != "" {
		text += " <" + p.Link + "|Open>"
	}
	return json.Marshal(map[string]string{"text": text})
}

// slackText escapes the three characters that have a meaning in Slack's messages, so that a name cannot make a link or address a
// channel.
func slackText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
