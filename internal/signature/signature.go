// Package signature signs requests with a keypair and checks what was signed.
// Servers and clients import it; docs/signing.md is its specification, and
// testdata/vectors.json what every other implementation must reproduce.
package signature

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
)

// Scheme names the one algorithm there is. A request cannot choose another.
const Scheme = "BERTH-HMAC-SHA256"

// The headers of a signed request, besides Authorization.
const (
	HeaderDate  = "X-Berth-Date"
	HeaderNonce = "X-Berth-Nonce"
	HeaderBody  = "X-Berth-Content-SHA256"
)

// DateLayout is how HeaderDate is written, always in UTC.
const DateLayout = "20060102T150405Z"

// MaxSkew is how far the date of a request may be from the server's clock.
const MaxSkew = 5 * time.Minute

const (
	minNonce = 16
	maxNonce = 64
	maxKey   = 64
)

// Parts are what a signed request says about itself.
type Parts struct {
	AccessKey string
	Date      time.Time
	Nonce     string
	BodyHash  string // lower-case hex

	signature []byte
	canonical string
}

// Signed reports whether an Authorization value is of this scheme.
func Signed(authorization string) bool {
	scheme, _, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, Scheme)
}

// Parse reads the parts of a request. They mean nothing before Verify.
func Parse(r *http.Request) (*Parts, error) {
	for _, name := range []string{"Authorization", HeaderDate, HeaderNonce, HeaderBody} {
		if len(r.Header.Values(name)) != 1 {
			return nil, malformed("the header %s must be there once", name)
		}
	}
	authorization := r.Header.Get("Authorization")
	if !Signed(authorization) {
		return nil, malformed("not of the scheme %s", Scheme)
	}
	p := &Parts{Nonce: r.Header.Get(HeaderNonce), BodyHash: r.Header.Get(HeaderBody)}
	var err error
	if p.AccessKey, p.signature, err = credential(authorization[len(Scheme):]); err != nil {
		return nil, err
	}
	date := r.Header.Get(HeaderDate)
	if p.Date, err = time.Parse(DateLayout, date); err != nil || len(date) != len(DateLayout) {
		return nil, malformed("the date is not like %s", DateLayout)
	}
	if err := checkNonce(p.Nonce); err != nil {
		return nil, err
	}
	if sum, err := hex.DecodeString(p.BodyHash); err != nil || len(sum) != sha256.Size || p.BodyHash != strings.ToLower(p.BodyHash) {
		return nil, malformed("the body's hash is not SHA-256 in lower-case hex")
	}
	p.canonical, err = Canonical(r, date, p.Nonce, p.BodyHash)
	return p, err
}

// credential reads "Credential=<access key>, Signature=<hex>".
func credential(text string) (key string, sum []byte, err error) {
	first, second, found := strings.Cut(text, ",")
	key, isKey := strings.CutPrefix(strings.TrimSpace(first), "Credential=")
	digits, isSum := strings.CutPrefix(strings.TrimSpace(second), "Signature=")
	if !found || !isKey || !isSum || key == "" || len(key) > maxKey {
		return "", nil, malformed("not Credential=…, Signature=…")
	}
	if strings.ContainsFunc(key, func(r rune) bool { return !unreserved(r) }) {
		return "", nil, malformed("the access key has other characters")
	}
	sum, err = hex.DecodeString(digits)
	if err != nil || len(sum) != sha256.Size {
		return "", nil, malformed("the signature is not 64 digits in hex")
	}
	return key, sum, nil
}

func checkNonce(nonce string) error {
	if len(nonce) < minNonce || len(nonce) > maxNonce || strings.ContainsFunc(nonce, func(r rune) bool { return !unreserved(r) }) {
		return malformed("the nonce is not %d to %d letters, digits and -._~", minNonce, maxNonce)
	}
	return nil
}

// Verify reports whether the holder of secret signed the request.
func (p *Parts) Verify(secret string) bool {
	return hmac.Equal(p.signature, mac(secret, p.canonical))
}

// Fresh reports whether the date is near enough to the server's clock.
func (p *Parts) Fresh(now time.Time) bool { return now.Sub(p.Date).Abs() <= MaxSkew }

// Sign puts date, nonce and signature on a request with the given body, which
// must be all that is sent. Host and query must not change afterwards.
func Sign(r *http.Request, accessKey, secret string, body []byte, now time.Time) error {
	return sign(r, accessKey, secret, HashBody(body), newNonce(), now.UTC().Format(DateLayout))
}

func sign(r *http.Request, accessKey, secret, bodyHash, nonce, date string) error {
	text, err := Canonical(r, date, nonce, bodyHash)
	if err != nil {
		return err
	}
	r.Header.Set(HeaderDate, date)
	r.Header.Set(HeaderNonce, nonce)
	r.Header.Set(HeaderBody, bodyHash)
	r.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s, Signature=%s", Scheme, accessKey, hex.EncodeToString(mac(secret, text))))
	return nil
}

// HashBody is the value of HeaderBody.
func HashBody(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Canonical is the text that is signed: eight lines without one at the end.
func Canonical(r *http.Request, date, nonce, bodyHash string) (string, error) {
	query, err := canonicalQuery(r.URL.RawQuery)
	if err != nil {
		return "", err
	}
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	return strings.Join([]string{Scheme, date, nonce, method, canonicalHost(host), path, query, bodyHash}, "\n"), nil
}

// canonicalHost has no port that its scheme implies: proxies drop them.
func canonicalHost(host string) string {
	host = strings.ToLower(host)
	for _, port := range []string{":80", ":443"} {
		if cut, ok := strings.CutSuffix(host, port); ok && (!strings.Contains(cut, ":") || strings.HasSuffix(cut, "]")) {
			return cut
		}
	}
	return host
}

// canonicalQuery decodes every name and value, encodes all but unreserved
// characters, and sorts.
func canonicalQuery(raw string) (string, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return "", malformed("the query cannot be read")
	}
	var pairs [][2]string
	for name, list := range values {
		for _, value := range list {
			pairs = append(pairs, [2]string{encode(name), encode(value)})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int {
		if c := strings.Compare(a[0], b[0]); c != 0 {
			return c
		}
		return strings.Compare(a[1], b[1])
	})
	out := make([]string, len(pairs))
	for i, p := range pairs {
		out[i] = p[0] + "=" + p[1]
	}
	return strings.Join(out, "&"), nil
}

func encode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; unreserved(rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// unreserved are the characters that RFC 3986 never encodes.
func unreserved(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~", r)
}

func mac(secret, text string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return h.Sum(nil)
}

func newNonce() string { return rand.Text() } // 26 characters, 130 bits

func malformed(format string, args ...any) error {
	return errors.Join(fmt.Errorf("signed request: "+format, args...), errdefs.ErrInvalidArgument)
}
