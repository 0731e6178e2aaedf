package signature

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const vectorFile = "testdata/vectors.json"

var write = flag.Bool("write", false, "write the results into the vectors")

// vector is one published example: a request, and what signing it gives.
type vector struct {
	Name          string `json:"name"`
	AccessKey     string `json:"accessKey"`
	Secret        string `json:"secret"`
	Method        string `json:"method"`
	URL           string `json:"url"`
	Body          string `json:"body"`
	Date          string `json:"date"`
	Nonce         string `json:"nonce"`
	BodyHash      string `json:"bodyHash"`
	Canonical     string `json:"canonical"`
	Authorization string `json:"authorization"`
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
	return r
}

func TestVectors(t *testing.T) {
	list := vectors(t)
	for i, v := range list {
		t.Run(v.Name, func(t *testing.T) {
			r := v.request(t)
			got := v
			got.BodyHash = HashBody([]byte(v.Body))
			if err := sign(r, v.AccessKey, v.Secret, got.BodyHash, v.Nonce, v.Date); err != nil {
				t.Fatal(err)
			}
			got.Canonical, _ = Canonical(r, v.Date, v.Nonce, got.BodyHash)
			got.Authorization = r.Header.Get("Authorization")
			if *write {
				list[i] = got
				return
			}
			if diff := cmp.Diff(v, got); diff != "" {
				t.Error(diff)
			}
			p, err := Parse(r)
			if err != nil {
				t.Fatal(err)
			}
			if p.AccessKey != v.AccessKey || !p.Verify(v.Secret) || p.Verify(v.Secret+"x") {
				t.Errorf("the signature of %s does not hold, or for another secret too", p.AccessKey)
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

func signed(t *testing.T) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "https://berth.example.org/graphql?a=1", strings.NewReader("{}"))
	if err := Sign(r, "BKAAAAAAAAAAAAAAAAAA", "secret", []byte("{}"), time.Now()); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEverythingSignedCounts(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"method": func(r *http.Request) { r.Method = http.MethodGet },
		"host":   func(r *http.Request) { r.Host = "other.example.org" },
		"path":   func(r *http.Request) { r.URL.Path = "/graphql/" },
		"query":  func(r *http.Request) { r.URL.RawQuery = "a=2" },
		"more":   func(r *http.Request) { r.URL.RawQuery = "a=1&a=1" },
		"date": func(r *http.Request) {
			r.Header.Set(HeaderDate, time.Now().Add(time.Minute).UTC().Format(DateLayout))
		},
		"nonce": func(r *http.Request) { r.Header.Set(HeaderNonce, strings.Repeat("n", 20)) },
		"body":  func(r *http.Request) { r.Header.Set(HeaderBody, HashBody(nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := signed(t)
			if p, err := Parse(r); err != nil || !p.Verify("secret") {
				t.Fatalf("refused before the change: %v", err)
			}
			change(r)
			p, err := Parse(r)
			if err != nil {
				t.Fatal(err)
			}
			if p.Verify("secret") {
				t.Error("still holds")
			}
		})
	}
}

func TestSameRequestWrittenOtherwise(t *testing.T) {
	for _, c := range [][2]string{
		{"https://h.example/p?b=2&a=%7e", "https://H.example:443/p?a=~&b=2"},
		{"http://h.example/p?q=a+b", "http://h.example:80/p?q=a%20b"},
		{"http://h.example", "http://h.example/"},
		{"http://h.example/p?a", "http://h.example/p?a="},
	} {
		var texts []string
		for _, address := range c {
			r, err := http.NewRequest(http.MethodGet, address, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := Canonical(r, "d", "n", "h")
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
		if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
			t.Errorf("%s: %s", c, diff)
		}
	}
}

func TestMalformed(t *testing.T) {
	zeros := hex.EncodeToString(make([]byte, 32))
	for name, change := range map[string]func(http.Header){
		"no date":          func(h http.Header) { h.Del(HeaderDate) },
		"two dates":        func(h http.Header) { h.Add(HeaderDate, h.Get(HeaderDate)) },
		"another format":   func(h http.Header) { h.Set(HeaderDate, "2026-01-02T03:04:05Z") },
		"fraction":         func(h http.Header) { h.Set(HeaderDate, "20260102T030405.5Z") },
		"short nonce":      func(h http.Header) { h.Set(HeaderNonce, "short") },
		"long nonce":       func(h http.Header) { h.Set(HeaderNonce, strings.Repeat("n", 65)) },
		"nonce of spaces":  func(h http.Header) { h.Set(HeaderNonce, strings.Repeat("n ", 10)) },
		"hash in capitals": func(h http.Header) { h.Set(HeaderBody, strings.Repeat("A", 64)) },
		"unsigned body":    func(h http.Header) { h.Set(HeaderBody, "UNSIGNED-PAYLOAD") },
		"other algorithm":  func(h http.Header) { h.Set("Authorization", "BERTH-HMAC-MD5 Credential=a, Signature="+zeros) },
		"no algorithm":     func(h http.Header) { h.Set("Authorization", "Credential=a, Signature="+zeros) },
		"no key":           func(h http.Header) { h.Set("Authorization", Scheme+" Credential=, Signature="+zeros) },
		"half a signature": func(h http.Header) { h.Set("Authorization", Scheme+" Credential=a, Signature="+zeros[:32]) },
		"only the scheme":  func(h http.Header) { h.Set("Authorization", Scheme) },
	} {
		t.Run(name, func(t *testing.T) {
			r := signed(t)
			change(r.Header)
			if p, err := Parse(r); err == nil {
				t.Errorf("read %+v", p)
			}
		})
	}
	r := signed(t)
	r.URL.RawQuery = "a=%zz"
	if _, err := Parse(r); err == nil {
		t.Error("read a broken query")
	}
}

func TestFresh(t *testing.T) {
	at := time.Now()
	for d, want := range map[time.Duration]bool{
		0: true, MaxSkew: true, -MaxSkew: true, MaxSkew + time.Second: false, -MaxSkew - time.Second: false,
	} {
		if got := (&Parts{Date: at.Add(d)}).Fresh(at); got != want {
			t.Errorf("%s away: %v", d, got)
		}
	}
}
