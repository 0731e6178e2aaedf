package remote

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/containerd/errdefs"
)

const (
	ecrRegistry = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
	ecrAPI      = "api.ecr.eu-central-1.amazonaws.com"
	accessKey   = "AKIAIOSFODNN7EXAMPLE"
	secretKey   = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)

// amazon is a stand-in for the documented API of Amazon ECR and for a registry with its passwords.
type amazon struct {
	mu     sync.Mutex
	issued int // passwords
	life   time.Duration
	answer string // instead of a password
	status int
}

// ServeHTTP implements http.Handler: GetAuthorizationToken, whose signature it computes again.
func (a *amazon) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	refuse := func(kind string) {
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(rw, `{"__type":"com.amazonaws.ecr#%s","message":"The security token is invalid."}`, kind)
	}
	switch {
	case a.status != 0:
		rw.WriteHeader(a.status)
		_, _ = fmt.Fprint(rw, a.answer)
	case r.Method != http.MethodPost || r.URL.Path != "/" || string(body) != "{}" || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" ||
		r.Header.Get("X-Amz-Target") != "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken":
		refuse("UnknownOperationException")
	case r.Header.Get("Authorization") != resigned(r):
		refuse("InvalidSignatureException")
	case a.answer != "":
		_, _ = fmt.Fprint(rw, a.answer)
	default:
		a.issued++
		token := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "AWS:password-%d", a.issued))
		_, _ = fmt.Fprintf(rw, `{"authorizationData":[{"authorizationToken":%q,"expiresAt":%d.123,"proxyEndpoint":"https://%s"}]}`,
			token, time.Now().Add(a.life).Unix(), ecrRegistry)
	}
}

var signedBy = regexp.MustCompile(`Credential=([^/]+)/[0-9]{8}/eu-central-1/ecr/aws4_request`)

// resigned returns the signature that the owner of the key would have made.
func resigned(r *http.Request) string {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	key := signedBy.FindStringSubmatch(r.Header.Get("Authorization"))
	if err != nil || key == nil || key[1] != accessKey {
		return "none"
	}
	again, _ := http.NewRequest(http.MethodPost, "https://"+ecrAPI+"/", strings.NewReader("{}"))
	again.Header.Set("Content-Type", r.Header.Get("Content-Type"))
	again.Header.Set("X-Amz-Target", r.Header.Get("X-Amz-Target"))
	const ofBody = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" // sha256 of {}
	keys := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey}
	if err := v4.NewSigner().SignHTTP(context.Background(), keys, again, ofBody, "ecr", "eu-central-1", at); err != nil {
		return "none"
	}
	return again.Header.Get("Authorization")
}

// registry takes the newest password.
func (a *amazon) registry(rw http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	want := fmt.Sprint("password-", a.issued)
	a.mu.Unlock()
	if user, password, _ := r.BasicAuth(); user != "AWS" || password != want {
		rw.Header().Set("WWW-Authenticate", fmt.Sprintf(`Basic realm="https://%s/",service="ecr.amazonaws.com"`, ecrRegistry))
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(rw, "Not Authorized\n")
		return
	}
	newImage("amd64").serve(rw, r)
}

func newAmazon(t *testing.T) (*amazon, *world) {
	a := &amazon{life: 12 * time.Hour}
	return a, newWorld(t, map[string]http.Handler{ecrRegistry: http.HandlerFunc(a.registry), ecrAPI: a})
}

// An access key and its secret are exchanged for a password, which clients share and replace hours before its end. The
// registry never gets the secret, and Amazon only a signature.
func TestECR(t *testing.T) {
	t.Parallel()
	a, w := newAmazon(t)
	logins := NewLogins()
	open := func(secret string) *Client {
		c, err := Open(Registry{Host: ecrRegistry, Username: accessKey, Password: secret, CA: w.ca, Proxy: w.proxy(t), Logins: logins})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	for range 2 {
		c := open(secretKey)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Inspect(t.Context(), "team/tool:1.0"); err != nil || len(got.Images) != 1 {
			t.Fatalf("image %v, %v", got, err)
		}
	}
	if a.issued != 1 {
		t.Errorf("%d passwords for two clients", a.issued)
	}
	logins.now = func() time.Time { return time.Now().Add(8 * time.Hour) }
	if _, password, err := open(secretKey).Login(t.Context()); err != nil || password != "password-1" {
		t.Errorf("after 8 hours: %s, %v", password, err)
	}
	// The stand-in checks the time of a signature only against itself, so that it accepts one of the future.
	logins.now = func() time.Time { return time.Now().Add(9*time.Hour + time.Minute) }
	if _, password, err := open(secretKey).Login(t.Context()); err != nil || password != "password-2" {
		t.Errorf("less than 3 hours before its end: %s, %v", password, err)
	}
	logins.now = time.Now
	if _, _, err := open("another secret").Login(t.Context()); !errdefs.IsUnauthorized(err) || !strings.Contains(err.Error(), "InvalidSignatureException") {
		t.Errorf("with a wrong secret: %v", err)
	}
	if bad := w.leaks(ecrRegistry, ecrAPI); bad != nil {
		t.Errorf("credentials went to %v", bad)
	}
	for _, r := range w.seen {
		for _, v := range r.Header {
			if strings.Contains(strings.Join(v, " "), secretKey) {
				t.Errorf("%s got the secret", r.Host)
			}
		}
		if user, password, ok := r.BasicAuth(); ok && (user != "AWS" || password == secretKey) {
			t.Errorf("%s got the login %s", r.Host, user)
		}
	}
}

func TestWrongAnswersOfAmazon(t *testing.T) {
	t.Parallel()
	a, w := newAmazon(t)
	for name, c := range map[string]struct {
		status int
		answer string
		is     func(error) bool
	}{
		"no JSON":           {0, "<html>", errdefs.IsInvalidArgument},
		"no token":          {0, `{"authorizationData":[]}`, errdefs.IsInvalidArgument},
		"no base64":         {0, `{"authorizationData":[{"authorizationToken":"%%"}]}`, errdefs.IsInvalidArgument},
		"no password":       {0, `{"authorizationData":[{"authorizationToken":"QVdTOg=="}]}`, errdefs.IsInvalidArgument},
		"too long":          {0, strings.Repeat("x", maxToken+1), errdefs.IsInvalidArgument},
		"a redirect":        {http.StatusTemporaryRedirect, "", errdefs.IsInvalidArgument},
		"no permission":     {http.StatusBadRequest, `{"__type":"AccessDeniedException"}`, errdefs.IsUnauthorized},
		"too many requests": {http.StatusBadRequest, `{"__type":"ThrottlingException"}`, errdefs.IsUnavailable},
		"out of order":      {http.StatusInternalServerError, "", errdefs.IsUnavailable},
	} {
		a.mu.Lock()
		a.status, a.answer = c.status, c.answer
		a.mu.Unlock()
		if _, _, err := w.client(t, ecrRegistry, accessKey, secretKey).Login(t.Context()); err == nil || !c.is(err) || strings.Contains(err.Error(), secretKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHostsOfECR(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		ecrRegistry: true,
		"123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn":     true,
		"123456789012.dkr.ecr-fips.us-east-1.amazonaws.com":    true,
		"123456789012.dkr.ecr.eu-central-1.amazonaws.com:5000": false,
		"123456789012.dkr.ecr.evil.example.amazonaws.com":      false,
		"x.123456789012.dkr.ecr.eu-west-1.amazonaws.com":       false,
		"123456789012.dkr.ecr.eu-west-1.amazonaws.com.evil.de": false,
		"public.ecr.aws": false,
	} {
		if IsECR(host) != want {
			t.Errorf("IsECR(%q) is %t", host, !want)
		}
	}
}
