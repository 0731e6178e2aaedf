// Package signature signs requests with a keypair and verifies signed requests: HTTP Message
// Signatures (RFC 9421) with the body's digest (RFC 9530). Servers and clients import it;
// docs/signing.md is its profile, and testdata/vectors.json has requests that every other
// implementation must reproduce.
package signature

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/dunglas/httpsfv"
)

const (
	// Algorithm is the only one. A request cannot choose another.
	Algorithm = "hmac-sha256"
	// Tag distinguishes Berth's signatures from those that proxies add.
	Tag = "berth"
	// MaxSkew is how far the creation of a signature may be from the server's clock.
	MaxSkew = 5 * time.Minute
	// Accept is the value of the header Accept-Signature, which asks for a signature.
	Accept = `berth=("@method" "@authority" "@path" "@query" "content-digest");created;expires;nonce;keyid;alg="` + Algorithm + `";tag="` + Tag + `"`
)

// The headers of a signed request.
const (
	HeaderInput     = "Signature-Input"
	HeaderSignature = "Signature"
	HeaderDigest    = "Content-Digest"
)

const (
	minNonce = 16
	maxNonce = 64
	maxKey   = 64
	maxInput = 2048 // bytes of each header
	label    = "berth"
)

// required are the components that every signature covers.
var required = []string{"@method", "@authority", "@path", "@query", "content-digest"}

// acting are headers that change the acting user. A signature covers them where they exist.
var acting = []string{"x-berth-act-as"}

// Parts are the parts of a signed request that are needed to verify it.
type Parts struct {
	AccessKey string
	Nonce     string
	Created   time.Time
	Expires   time.Time // zero: MaxSkew after Created

	digest    []byte
	signature []byte
	base      string
}

// Signed reports whether a request has a signature with Berth's tag, or one that cannot be parsed.
func Signed(h http.Header) bool {
	if len(h.Values(HeaderInput)) == 0 {
		return false
	}
	name, _, err := input(h)
	return err != nil || name != ""
}

// input finds the label, components and parameters of the signature with Berth's tag; the label is
// "" if there is none.
func input(h http.Header) (name string, list httpsfv.InnerList, err error) {
	all, err := dictionary(h, HeaderInput)
	if err != nil {
		return "", list, err
	}
	for _, n := range all.Names() {
		member, _ := all.Get(n)
		l, ok := member.(httpsfv.InnerList)
		if !ok {
			return "", list, malformed("%s: %s is not a list of components", HeaderInput, n)
		}
		if tag, _ := l.Params.Get("tag"); tag != Tag {
			continue
		}
		if name != "" {
			return "", list, malformed("%s: two signatures have the tag %s", HeaderInput, Tag)
		}
		name, list = n, l
	}
	return name, list, nil
}

func dictionary(h http.Header, name string) (*httpsfv.Dictionary, error) {
	values := h.Values(name)
	size := 0
	for _, v := range values {
		size += len(v)
	}
	if len(values) == 0 || size > maxInput {
		return nil, malformed("%s has %d bytes, 1 to %d are allowed", name, size, maxInput)
	}
	d, err := httpsfv.UnmarshalDictionary(values)
	if err != nil {
		return nil, malformed("%s: %v", name, err)
	}
	return d, nil
}

// Parse reads the parts of a request. They must not be used before Verify.
func Parse(r *http.Request) (*Parts, error) {
	name, list, err := input(r.Header)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, malformed("no signature has the tag %s", Tag)
	}
	p := &Parts{}
	if err := p.params(list.Params); err != nil {
		return nil, err
	}
	if p.signature, err = bytesOf(r.Header, HeaderSignature, name); err != nil {
		return nil, err
	}
	if p.digest, err = bytesOf(r.Header, HeaderDigest, "sha-256"); err != nil {
		return nil, err
	}
	if err := covers(r, list); err != nil {
		return nil, err
	}
	p.base, err = base(r, list)
	return p, err
}

// bytesOf reads 32 bytes of a member of a header's dictionary.
func bytesOf(h http.Header, header, name string) ([]byte, error) {
	d, err := dictionary(h, header)
	if err != nil {
		return nil, err
	}
	member, _ := d.Get(name)
	item, _ := member.(httpsfv.Item)
	b, ok := item.Value.([]byte)
	if !ok || len(b) != sha256.Size {
		return nil, malformed("%s: %s is not a sequence of %d bytes", header, name, sha256.Size)
	}
	return b, nil
}

// params reads the parameters of a signature.
func (p *Parts) params(all *httpsfv.Params) error {
	text := func(name string, least, most int) (string, error) {
		v, _ := all.Get(name)
		s, _ := v.(string)
		if len(s) < least || len(s) > most || strings.ContainsFunc(s, func(r rune) bool { return !unreserved(r) }) {
			return "", malformed("%s is not %d to %d letters, digits and -._~", name, least, most)
		}
		return s, nil
	}
	var err error
	if p.AccessKey, err = text("keyid", 1, maxKey); err != nil {
		return err
	}
	if p.Nonce, err = text("nonce", minNonce, maxNonce); err != nil {
		return err
	}
	if alg, ok := all.Get("alg"); ok && alg != Algorithm {
		return malformed("alg is not %s", Algorithm)
	}
	created, ok := all.Get("created")
	seconds, isInt := created.(int64)
	if !ok || !isInt {
		return malformed("created is not a number of seconds")
	}
	p.Created = time.Unix(seconds, 0)
	if expires, ok := all.Get("expires"); ok {
		seconds, isInt := expires.(int64)
		if !isInt {
			return malformed("expires is not a number of seconds")
		}
		p.Expires = time.Unix(seconds, 0)
	}
	return nil
}

// covers checks that the signature covers all parts of a request that determine its effect.
func covers(r *http.Request, list httpsfv.InnerList) error {
	var names []string
	for _, item := range list.Items {
		name, ok := item.Value.(string)
		if !ok || len(item.Params.Names()) > 0 || slices.Contains(names, name) {
			return malformed("a component is not a name, has parameters or is listed twice")
		}
		names = append(names, name)
	}
	for _, name := range required {
		if !slices.Contains(names, name) {
			return malformed("the signature does not cover %s", name)
		}
	}
	for _, name := range acting {
		if len(r.Header.Values(name)) > 0 && !slices.Contains(names, name) {
			return malformed("the signature does not cover %s", name)
		}
	}
	return nil
}

// Verify reports whether the holder of secret signed the request.
func (p *Parts) Verify(secret string) bool {
	return hmac.Equal(p.signature, mac(secret, p.base))
}

// Fresh reports whether the signature was created close enough to the time of the server and has
// not expired.
func (p *Parts) Fresh(now time.Time) bool {
	return now.Sub(p.Created).Abs() <= MaxSkew && (p.Expires.IsZero() || !now.After(p.Expires))
}

// Matches reports whether body is the signed body.
func (p *Parts) Matches(body []byte) bool {
	sum := sha256.Sum256(body)
	return bytes.Equal(sum[:], p.digest)
}

// Sign adds digest and signature to a request with the given body, which must be the complete body.
// Method, host, path and query must not change afterwards.
func Sign(r *http.Request, accessKey, secret string, body []byte, now time.Time) error {
	return sign(r, accessKey, secret, body, rand.Text(), now)
}

func sign(r *http.Request, accessKey, secret string, body []byte, nonce string, now time.Time) error {
	sum := sha256.Sum256(body)
	digest := httpsfv.NewDictionary()
	digest.Add("sha-256", httpsfv.NewItem(sum[:]))
	text, err := httpsfv.Marshal(digest)
	if err != nil {
		return err
	}
	r.Header.Set(HeaderDigest, text)

	list := httpsfv.InnerList{Params: httpsfv.NewParams()}
	for _, name := range required {
		list.Items = append(list.Items, httpsfv.NewItem(name))
	}
	for _, name := range acting {
		if len(r.Header.Values(name)) > 0 {
			list.Items = append(list.Items, httpsfv.NewItem(name))
		}
	}
	list.Params.Add("created", now.Unix())
	list.Params.Add("expires", now.Add(MaxSkew).Unix())
	list.Params.Add("nonce", nonce)
	list.Params.Add("keyid", accessKey)
	list.Params.Add("alg", Algorithm)
	list.Params.Add("tag", Tag)
	signed, err := base(r, list)
	if err != nil {
		return err
	}
	if err := set(r.Header, HeaderInput, list); err != nil {
		return err
	}
	return set(r.Header, HeaderSignature, httpsfv.NewItem(mac(secret, signed)))
}

func set(h http.Header, name string, member httpsfv.Member) error {
	d := httpsfv.NewDictionary()
	d.Add(label, member)
	text, err := httpsfv.Marshal(d)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	h.Set(name, text)
	return nil
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

func malformed(format string, args ...any) error {
	return fmt.Errorf("signed request: "+format+": %w", append(args, errdefs.ErrInvalidArgument)...)
}
