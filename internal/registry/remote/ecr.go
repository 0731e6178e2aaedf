package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/containerd/errdefs"
)

// ecrHost is the host of a private registry of Amazon ECR: an account and a region.
var ecrHost = regexp.MustCompile(`^[0-9]{12}\.dkr\.(ecr|ecr-fips)\.([a-z0-9-]{1,32})\.(amazonaws\.com|amazonaws\.com\.cn)$`)

// IsECR reports whether a host is a private registry of Amazon ECR, whose passwords are valid for 12 hours.
func IsECR(host string) bool { return ecrHost.MatchString(host) }

// ecrSpare is the time before the end of a password of Amazon in which it is replaced: an agent that gets it now can
// use it for as long as a pull takes.
const ecrSpare = 3 * time.Hour

// Logins keeps the passwords of registries at Amazon. It can be used by several clients.
type Logins struct {
	now func() time.Time

	mu sync.Mutex
	of map[[sha256.Size]byte]ecrLogin // by host, access key and secret
}

type ecrLogin struct {
	username, password string
	until              time.Time
}

// NewLogins returns an empty Logins.
func NewLogins() *Logins {
	return &Logins{now: time.Now, of: map[[sha256.Size]byte]ecrLogin{}}
}

// Login returns the user name and the password that the registry takes. For a registry at Amazon, those of the client
// are an access key and its secret, which are exchanged for them; the secret itself is not sent.
func (c *Client) Login(ctx context.Context) (username, password string, err error) {
	if c.Anonymous() || !IsECR(c.reg.Host) {
		return c.reg.Username, c.reg.Password, nil
	}
	key := sha256.Sum256([]byte(c.reg.Host + "\n" + c.reg.Username + "\n" + c.reg.Password))
	l := c.reg.Logins
	l.mu.Lock()
	has := l.of[key]
	l.mu.Unlock()
	now := l.now()
	if has.until.Sub(now) > ecrSpare {
		return has.username, has.password, nil
	}
	got, err := c.exchange(ctx, now)
	if err != nil {
		return "", "", fmt.Errorf("get a password from Amazon: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.of) > 1000 {
		clear(l.of)
	}
	l.of[key] = *got
	return got.username, got.password, nil
}

// exchange calls GetAuthorizationToken of the registry's region.
func (c *Client) exchange(ctx context.Context, now time.Time) (*ecrLogin, error) {
	parts := ecrHost.FindStringSubmatch(c.reg.Host)
	host := "api." + parts[1] + "." + parts[2] + "." + parts[3]
	if parts[1] == "ecr-fips" {
		host = "ecr-fips." + parts[2] + "." + parts[3]
	}
	body := []byte("{}")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+host+"/", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errdefs.ErrInvalidArgument, err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken")
	sum := sha256.Sum256(body)
	keys := aws.Credentials{AccessKeyID: c.reg.Username, SecretAccessKey: c.reg.Password}
	if err := v4.NewSigner().SignHTTP(ctx, keys, r, hex.EncodeToString(sum[:]), "ecr", parts[2], now); err != nil {
		return nil, fmt.Errorf("sign: %w: %w", errdefs.ErrInvalidArgument, err)
	}
	resp, err := c.send(r)
	if err != nil {
		return nil, err
	}
	defer drain(resp)
	b, err := readAll(resp, maxToken)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, c.ecrRefusal(resp, b, host)
	}
	return readECR(b, now)
}

// ecrRefusal returns the error of an answer of Amazon. Only the kind of its error is shown.
func (c *Client) ecrRefusal(resp *http.Response, body []byte, host string) error {
	var said struct {
		Type string `json:"__type"`
	}
	_ = json.Unmarshal(body, &said) // the status suffices
	kind := said.Type[strings.LastIndexByte(said.Type, '#')+1:]
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return fmt.Errorf("%s redirects: %w", host, errdefs.ErrInvalidArgument)
	case strings.Contains(kind, "Throttling") || resp.StatusCode == http.StatusTooManyRequests:
		return &Busy{retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return fmt.Errorf("%s refuses the access key: %s %.60q: %w", host, resp.Status, kind, errdefs.ErrUnauthenticated)
	}
	return fmt.Errorf("%s answers %s: %w", host, resp.Status, errdefs.ErrUnavailable)
}

// readECR reads the answer of GetAuthorizationToken: base64 of user:password, and the time in seconds.
func readECR(body []byte, now time.Time) (*ecrLogin, error) {
	var got struct {
		AuthorizationData []struct {
			AuthorizationToken string  `json:"authorizationToken"`
			ExpiresAt          float64 `json:"expiresAt"`
		} `json:"authorizationData"`
	}
	if err := json.Unmarshal(body, &got); err != nil || len(got.AuthorizationData) == 0 {
		return nil, fmt.Errorf("the answer has no token: %w", errdefs.ErrInvalidArgument)
	}
	one := got.AuthorizationData[0]
	text, err := base64.StdEncoding.DecodeString(one.AuthorizationToken)
	username, password, ok := strings.Cut(string(text), ":")
	if err != nil || !ok || username == "" || password == "" {
		return nil, fmt.Errorf("the token is not base64 of a user name and a password: %w", errdefs.ErrInvalidArgument)
	}
	until := time.Unix(int64(one.ExpiresAt), 0)
	if until.After(now.Add(24 * time.Hour)) {
		until = now.Add(24 * time.Hour)
	}
	return &ecrLogin{username, password, until}, nil
}
