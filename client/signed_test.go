package client

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/berthhq/berth/internal/signature"
)

func TestSignedClient(t *testing.T) {
	seen := map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p, err := signature.Parse(r)
		if err != nil || !p.Verify("secret") || p.AccessKey != "BKA" || !p.Matches(body) || len(body) == 0 {
			t.Errorf("%v in %v", err, r.Header)
		} else if seen[p.Nonce] {
			t.Error("a nonce was used again")
		} else {
			seen[p.Nonce] = true
		}
		fmt.Fprint(w, `{"data":{}}`)
	}))
	defer srv.Close()
	c, err := NewSigned(srv.URL, "BKA", "secret", "test")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Raw(t.Context(), Request{Query: "{ server { version } }"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d requests arrived", len(seen))
	}
}

func TestSecretsStayWithTheirHost(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if signature.Signed(r.Header) {
			t.Error("a request to another host, or with a ticket, was signed")
		}
	}))
	defer srv.Close()
	elsewhere, err := NewSigned("http://berth.example.org", "BKA", "secret", "test")
	if err != nil {
		t.Fatal(err)
	}
	here, err := NewSigned(srv.URL, "BKA", "secret", "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Client{elsewhere, here} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c == here {
			r.Header.Set("Authorization", "Bearer ticket")
		}
		resp, err := c.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}
