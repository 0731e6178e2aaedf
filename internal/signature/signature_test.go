package signature

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/google/go-cmp/cmp"
	"github.com/yaronf/httpsign"
)

const vectorFile = "testdata/vectors.json"

var write = flag.Bool("write", false, "write the results into the vectors")

// vector is a published example: a request and its signature.
type vector struct {
	Name      string `json:"name"`
	AccessKey string `json:"accessKey"`
	Secret    string `json:"secret"`
	Method    string `json:"method"`
	URL       string `json:"url"`
	ActAs     string `json:"actAs,omitempty"`
	Body      string `json:"body"`
	Created   int64  `json:"created"`
	Nonce     string `json:"nonce"`
	Digest    string `json:"contentDigest"`
	Base      string `json:"signatureBase"`
	Input     string `json:"signatureInput"`
	Signature string `json:"signature"`
}

func vectors(t *testing.T) []vector {
	t.Helper()
	text, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func (v *vector) request(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequest(v.Method, v.URL, strings.NewReader(v.Body))
	if err != nil {
		t.Fatal(err)
	}
	if v.ActAs != "" {
		r.Header.Set("X-Berth-Act-As", v.ActAs)
	}
	return r
}

func TestVectors(t *testing.T) {
	list := vectors(t)
	for i, v := range list {
		t.Run(v.Name, func(t *testing.T) {
			r := v.request(t)
			if err := sign(r, v.AccessKey, v.Secret, []byte(v.Body), v.Nonce, time.Unix(v.Created, 0)); err != nil {
				t.Fatal(err)
			}
			p, err := Parse(r)
			if err != nil {
				t.Fatal(err)
			}
			got := v
			got.Digest, got.Input, got.Signature, got.Base = r.Header.Get(HeaderDigest), r.Header.Get(HeaderInput), r.Header.Get(HeaderSignature), p.base
			if *write {
				list[i] = got
				return
			}
			if diff := cmp.Diff(v, got); diff != "" {
				t.Error(diff)
			}
			if p.AccessKey != v.AccessKey || p.Created.Unix() != v.Created || !p.Matches([]byte(v.Body)) || !p.Verify(v.Secret) || p.Verify(v.Secret+"x") {
				t.Errorf("the signature of %s is not valid, or for another secret too", p.AccessKey)
			}
		})
	}
	if *write {
		text, _ := json.MarshalIndent(list, "", "  ")
		if err := os.WriteFile(vectorFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const secret = "bks_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

func signed(t *testing.T) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "https://berth.example.org/graphql?a=1", strings.NewReader("{}"))
	r.Header.Set("X-Berth-Act-As", "a@b")
	if err := Sign(r, "BKAAAAAAAAAAAAAAAAAA", secret, []byte("{}"), time.Now()); err != nil {
		t.Fatal(err)
	}
	return r
}

// edit changes text in a header.
func edit(name, old, text string) func(*http.Request) {
	return func(r *http.Request) {
		before := r.Header.Get(name)
		if r.Header.Set(name, strings.Replace(before, old, text, 1)); r.Header.Get(name) == before {
			panic(old + " is not in " + before)
		}
	}
}

func TestEverythingSignedCounts(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"method":  func(r *http.Request) { r.Method = http.MethodGet },
		"host":    func(r *http.Request) { r.Host = "other.example.org" },
		"path":    func(r *http.Request) { r.URL.Path = "/graphql/" },
		"query":   func(r *http.Request) { r.URL.RawQuery = "a=2" },
		"more":    func(r *http.Request) { r.URL.RawQuery = "a=1&a=1" },
		"actor":   func(r *http.Request) { r.Header.Set("X-Berth-Act-As", "c@d") },
		"actors":  func(r *http.Request) { r.Header.Add("X-Berth-Act-As", "c@d") },
		"created": edit(HeaderInput, ";created=", ";created=1"),
		"expires": edit(HeaderInput, ";expires=", ";expires=1"),
		"nonce":   edit(HeaderInput, `;nonce="`, `;nonce="x`),
		"key":     edit(HeaderInput, `;keyid="`, `;keyid="x`),
		"no alg":  edit(HeaderInput, `;alg="hmac-sha256"`, ""),
		"order":   edit(HeaderInput, `"@method" "@authority"`, `"@authority" "@method"`),
		"digest":  edit(HeaderDigest, "sha-256=:RB", "sha-256=:RC"),
		"sum":     edit(HeaderSignature, "=:", "=:A"),
	} {
		t.Run(name, func(t *testing.T) {
			r := signed(t)
			if p, err := Parse(r); err != nil || !p.Verify(secret) || !p.Matches([]byte("{}")) || p.Matches([]byte("{} ")) {
				t.Fatalf("refused before the change: %v", err)
			}
			change(r)
			if p, err := Parse(r); err == nil && p.Verify(secret) {
				t.Error("is still valid")
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"no input":     func(r *http.Request) { r.Header.Del(HeaderInput) },
		"no signature": func(r *http.Request) { r.Header.Del(HeaderSignature) },
		"no digest":    func(r *http.Request) { r.Header.Del(HeaderDigest) },
		"other label":  edit(HeaderSignature, "berth=", "sig1="),
		"two of ours": func(r *http.Request) {
			r.Header.Add(HeaderInput, strings.Replace(r.Header.Get(HeaderInput), "berth=", "b=", 1))
		},
		"no created":        edit(HeaderInput, ";created=", ";made="),
		"created as text":   edit(HeaderInput, ";created=", `;created="1";was=`),
		"expires as text":   edit(HeaderInput, ";expires=", `;expires="1";was=`),
		"short nonce":       edit(HeaderInput, `;nonce="`, `;nonce="short";was="`),
		"long nonce":        edit(HeaderInput, `;nonce="`, `;nonce="`+strings.Repeat("n", 65)),
		"nonce with spaces": edit(HeaderInput, `;nonce="`, `;nonce="a b`),
		"no key":            edit(HeaderInput, `;keyid="`, `;keyid="";was="`),
		"other algorithm":   edit(HeaderInput, "hmac-sha256", "hmac-sha1"),
		"other digest":      edit(HeaderDigest, "sha-256", "sha-512"),
		"half a signature":  func(r *http.Request) { r.Header.Set(HeaderSignature, "berth=:AAAA:") },
		"signature as text": func(r *http.Request) { r.Header.Set(HeaderSignature, `berth="AAAA"`) },
		"no method":         edit(HeaderInput, `"@method" `, ""),
		"no authority":      edit(HeaderInput, `"@authority" `, ""),
		"no path":           edit(HeaderInput, `"@path" `, ""),
		"no query":          edit(HeaderInput, `"@query" `, ""),
		"no content":        edit(HeaderInput, ` "content-digest"`, ""),
		"no actor":          edit(HeaderInput, ` "x-berth-act-as"`, ""),
		"twice":             edit(HeaderInput, `("@method"`, `("@method" "@method"`),
		"parameters":        edit(HeaderInput, `"@method"`, `"@method";req`),
		"trailer":           edit(HeaderInput, `("@method"`, `("x";tr "@method"`),
		"unknown":           edit(HeaderInput, `("@method"`, `("@status" "@method"`),
		"absent header":     edit(HeaderInput, `("@method"`, `("x-other" "@method"`),
		"capitals":          edit(HeaderInput, `("@method"`, `("Content-Digest" "@method"`),
		"no list":           func(r *http.Request) { r.Header.Set(HeaderInput, `berth=1;tag="berth"`) },
		"too long":          func(r *http.Request) { r.Header.Add(HeaderInput, "x="+strings.Repeat("1", maxInput)) },
		"no dictionary":     func(r *http.Request) { r.Header.Set(HeaderInput, "berth=(") },
	} {
		t.Run(name, func(t *testing.T) {
			r := signed(t)
			change(r)
			if p, err := Parse(r); err == nil {
				t.Errorf("read %+v", p)
			}
		})
	}
}

// Signatures of proxies and other programs neither count as Berth's signatures nor affect them.
func TestOtherSignatures(t *testing.T) {
	h := http.Header{}
	if Signed(h) {
		t.Error("without a signature")
	}
	h.Set(HeaderInput, `proxy=("@method");keyid="k"`)
	if Signed(h) {
		t.Error("only another's")
	}
	r := signed(t)
	r.Header.Add(HeaderInput, h.Get(HeaderInput))
	r.Header.Add(HeaderSignature, "proxy=:AAAA:")
	if p, err := Parse(r); err != nil || !p.Verify(secret) || !Signed(r.Header) {
		t.Errorf("beside another: %v", err)
	}
	h.Set(HeaderInput, "(")
	if !Signed(h) {
		t.Error("an unreadable signature passes as none")
	}
}

func TestSameRequestWrittenOtherwise(t *testing.T) {
	for _, c := range [][2]string{
		{"https://h.example/p", "https://H.example:443/p"},
		{"http://h.example/p", "http://h.example:80/p"},
		{"http://h.example", "http://h.example/"},
		{"http://[::1]/", "http://[::1]:80/"},
	} {
		var texts []string
		for _, address := range c {
			v := vector{Method: http.MethodGet, URL: address}
			r := v.request(t)
			if err := sign(r, "BK", secret, nil, strings.Repeat("n", 16), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, r.Header.Get(HeaderSignature))
		}
		if texts[0] != texts[1] {
			t.Errorf("%s and %s have different signatures", c[0], c[1])
		}
	}
}

func TestFresh(t *testing.T) {
	at := time.Now()
	for d, want := range map[time.Duration]bool{
		0: true, MaxSkew: true, -MaxSkew: true, MaxSkew + time.Second: false, -MaxSkew - time.Second: false,
	} {
		if got := (&Parts{Created: at.Add(d)}).Fresh(at); got != want {
			t.Errorf("%s away: %v", d, got)
		}
	}
	if (&Parts{Created: at, Expires: at.Add(-time.Second)}).Fresh(at) {
		t.Error("an expired signature is fresh")
	}
}

// The example of RFC 9421, B.2.5.
func TestExampleOfTheStandard(t *testing.T) {
	key, err := base64.StdEncoding.DecodeString("uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "https://example.com/foo?param=Value&Pet=dog", nil)
	r.Header.Set("Date", "Tue, 20 Apr 2021 02:07:55 GMT")
	r.Header.Set("Content-Type", "application/json")
	d, err := httpsfv.UnmarshalDictionary([]string{`sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"`})
	if err != nil {
		t.Fatal(err)
	}
	member, _ := d.Get("sig-b25")
	text, err := base(r, member.(httpsfv.InnerList))
	if err != nil {
		t.Fatal(err)
	}
	if got := base64.StdEncoding.EncodeToString(mac(string(key), text)); got != "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=" {
		t.Errorf("%s of\n%s", got, text)
	}
}

// Another implementation of RFC 9421 accepts these signatures, and this one accepts its signatures.
func TestAnotherImplementation(t *testing.T) {
	fields := httpsign.Headers(required...)
	r := signed(t)
	verifier, err := httpsign.NewHMACSHA256Verifier(key(), httpsign.NewVerifyConfig().SetAllowedAlgs([]string{Algorithm}).SetAllowedTags([]string{Tag}), fields)
	if err != nil {
		t.Fatal(err)
	}
	if err := httpsign.VerifyRequest(label, *verifier, r); err != nil {
		t.Errorf("it refuses ours: %v", err)
	}
	r.Header.Set(HeaderDigest, "sha-256=:AAAA:")
	if err := httpsign.VerifyRequest(label, *verifier, r); err == nil {
		t.Error("it accepts a changed request")
	}

	r = httptest.NewRequest(http.MethodPost, "https://berth.example.org/graphql?q=%20a+b&x", strings.NewReader("{}"))
	digest, err := httpsign.GenerateContentDigestHeader(&r.Body, []string{httpsign.DigestSha256})
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(HeaderDigest, digest)
	signer, err := httpsign.NewHMACSHA256Signer(key(), httpsign.NewSignConfig().SetKeyID("BK1").SetNonce(strings.Repeat("n", 20)).
		SetExpires(time.Now().Add(time.Minute).Unix()).SetTag(Tag), fields)
	if err != nil {
		t.Fatal(err)
	}
	input, sum, err := httpsign.SignRequest("sig1", *signer, r)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(HeaderInput, input)
	r.Header.Set(HeaderSignature, sum)
	p, err := Parse(r)
	if err != nil || !p.Verify(secret) || p.AccessKey != "BK1" || !p.Matches([]byte("{}")) || !p.Fresh(time.Now()) {
		t.Errorf("we refuse its: %v, %+v", err, p)
	}
}

// key is the secret with zeros up to 64 bytes, the least that httpsign takes: HMAC adds
// them itself.
func key() []byte { return append([]byte(secret), make([]byte, 64-len(secret))...) }
