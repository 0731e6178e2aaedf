package efs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	service   = "elasticfilesystem"
	stamp     = "20060102T150405Z"
	skew      = 5 * time.Minute // that a clock may be wrong
)

// signed passes a request on if its signature is valid and its credentials have the permission.
func (p *product) signed(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if code, text := p.verify(r); code != "" {
			refuse(w, http.StatusForbidden, code, text)
			return
		}
		if p.server.Setting("policy") == "denied" {
			refuse(w, http.StatusForbidden, "AccessDeniedException", "User: arn:aws:iam::123456789012:user/berth is not authorized to perform: elasticfilesystem:DescribeFileSystems")
			return
		}
		f(w, r)
	}
}

// authorization is the header of a signed request.
type authorization struct {
	id, date, region, service string
	headers                   []string
	signature                 string
}

func parse(header string) (a authorization, ok bool) {
	rest, ok := strings.CutPrefix(header, algorithm+" ")
	parts := strings.Split(rest, ",")
	if !ok || len(parts) != 3 {
		return a, false
	}
	values := map[string]string{}
	for _, part := range parts {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		values[name] = value
	}
	scope := strings.Split(values["Credential"], "/")
	if len(scope) != 5 || scope[4] != "aws4_request" {
		return a, false
	}
	return authorization{scope[0], scope[1], scope[2], scope[3], strings.Split(values["SignedHeaders"], ";"), values["Signature"]}, true
}

// verify computes the signature again. It returns AWS's code of the error.
func (p *product) verify(r *http.Request) (code, text string) {
	a, ok := parse(r.Header.Get("Authorization"))
	if !ok {
		return "MissingAuthenticationTokenException", "Missing Authentication Token"
	}
	p.mu.Lock()
	k, known := p.keys[a.id]
	p.mu.Unlock()
	sent := r.Header.Get("X-Amz-Date")
	at, err := time.Parse(stamp, sent)
	switch {
	case !known || r.Header.Get("X-Amz-Security-Token") != k.token:
		return "UnrecognizedClientException", "The security token included in the request is invalid."
	case k.token != "" && !p.sessions.Valid(k.token):
		return "ExpiredTokenException", "The security token included in the request is expired"
	case err != nil || time.Since(at).Abs() > skew || !strings.HasPrefix(sent, a.date):
		return "InvalidSignatureException", "Signature expired: " + sent
	case a.region != Region || a.service != service:
		return "InvalidSignatureException", "Credential should be scoped to a valid region, and to the correct service: " + service
	case !slices.Contains(a.headers, "host") || !slices.Contains(a.headers, "x-amz-date") || k.token != "" && !slices.Contains(a.headers, "x-amz-security-token"):
		return "InvalidSignatureException", "'Host', 'X-Amz-Date' and a token must be signed"
	}
	request := canonical(r, a.headers)
	if want := sign(k.secret, a, sent, request); !hmac.Equal([]byte(want), []byte(a.signature)) {
		// As with AWS, the message contains the request with the secrets in its headers.
		return "InvalidSignatureException", "The request signature we calculated does not match the signature you provided.\n\nThe Canonical String for this request should have been\n'" + request + "'"
	}
	return "", ""
}

// canonical is a request in the form that is signed. ServeHTTP of the array has put a
// copy of the body in its place.
func canonical(r *http.Request, headers []string) string {
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	lines := []string{r.Method, (&url.URL{Path: r.URL.Path}).EscapedPath(), query}
	for _, name := range headers {
		value := strings.Join(r.Header.Values(name), ",")
		if name == "host" {
			value = r.Host
		}
		lines = append(lines, name+":"+strings.Join(strings.Fields(value), " "))
	}
	body, _ := io.ReadAll(r.Body)
	sum := sha256.Sum256(body)
	return strings.Join(append(lines, "", strings.Join(headers, ";"), hex.EncodeToString(sum[:])), "\n")
}

func sign(secret string, a authorization, at, request string) string {
	derived := []byte("AWS4" + secret)
	for _, part := range []string{a.date, a.region, a.service, "aws4_request"} {
		derived = mac(derived, part)
	}
	sum := sha256.Sum256([]byte(request))
	scope := strings.Join([]string{a.date, a.region, a.service, "aws4_request"}, "/")
	return hex.EncodeToString(mac(derived, strings.Join([]string{algorithm, at, scope, hex.EncodeToString(sum[:])}, "\n")))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
