package manager_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/manager/managertest"
)

// words is base64url, as in tokens.
func words(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// provider is an OpenID provider with a key of each kind; the test writes its next token.
type provider struct {
	*httptest.Server
	rsa   *rsa.PrivateKey
	ec    *ecdsa.PrivateKey
	nonce string
	token func() string
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{}
	var err error
	if p.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if p.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	answer := func(v func() any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v())
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", answer(func() any {
		return map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "ES256", "HS256", "none"}}
	}))
	mux.HandleFunc("/keys", answer(func() any {
		return map[string]any{"keys": []any{p.rsaKey("rsa", &p.rsa.PublicKey), p.ecKey("ec", &p.ec.PublicKey)}}
	}))
	mux.HandleFunc("/token", answer(func() any {
		return map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.token()}
	}))
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) rsaKey(kid string, k *rsa.PublicKey) map[string]any {
	return map[string]any{"kty": "RSA", "use": "sig", "kid": kid, "n": words(k.N.Bytes()), "e": words(big.NewInt(int64(k.E)).Bytes())}
}

func (p *provider) ecKey(kid string, k *ecdsa.PublicKey) map[string]any {
	point, err := k.Bytes() // 4, x, y
	if err != nil {
		panic(err)
	}
	return map[string]any{"kty": "EC", "crv": "P-256", "use": "sig", "kid": kid, "x": words(point[1:33]), "y": words(point[33:])}
}

func rs256(k *rsa.PrivateKey) func([]byte) []byte {
	return func(text []byte) []byte {
		sum := sha256.Sum256(text)
		sig, _ := rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA256, sum[:])
		return sig
	}
}

func es256(k *ecdsa.PrivateKey) func([]byte) []byte {
	return func(text []byte) []byte {
		sum := sha256.Sum256(text)
		r, s, _ := ecdsa.Sign(rand.Reader, k, sum[:])
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
}

func hs256(key []byte) func([]byte) []byte {
	return func(text []byte) []byte {
		h := hmac.New(sha256.New, key)
		h.Write(text)
		return h.Sum(nil)
	}
}

// write creates a token with the usual claims and changes.
func (p *provider) write(header, claims map[string]any, sign func([]byte) []byte) string {
	all := map[string]any{"iss": p.URL, "aud": "berth", "sub": "s", "nonce": p.nonce, "email": "new@corp.com", "email_verified": true,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
	for k, v := range claims {
		all[k] = v
	}
	head, _ := json.Marshal(header)
	body, _ := json.Marshal(all)
	text := words(head) + "." + words(body)
	return text + "." + words(sign([]byte(text)))
}

// An ID token is valid if the issuer's own key signed it, with an asymmetric algorithm, for this
// client and the present time. All other tokens are refused.
func TestTokensOfIssuers(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	p := newProvider(t)
	m.As(t, w.Superadmin).Must(t, `mutation($i: String!, $d: ID!) { createIdentityProvider(input: {name: "corp", issuer: $i, clientID: "berth", clientSecret: "s",
		autoProvision: true, emailDomains: ["corp.com"], domain: $d}) { identityProvider { id } } }`, managertest.Vars{"i": p.URL, "d": w.A.ID}, nil)
	theirsRSA, _ := rsa.GenerateKey(rand.Reader, 2048)
	theirsEC, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, _ := x509.MarshalPKIXPublicKey(&p.rsa.PublicKey)
	armoured := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	published, _ := json.Marshal(p.rsaKey("rsa", &p.rsa.PublicKey))
	type vars = map[string]any
	rs, es := vars{"alg": "RS256", "kid": "rsa"}, vars{"alg": "ES256", "kid": "ec"}
	ours := rs256(p.rsa)
	nothing := func([]byte) []byte { return nil }
	people := func() int { return w.Client.User.Query().Where(user.Email("new@corp.com")).CountX(w.System(t)) }
	for _, c := range []struct {
		name           string
		header, claims vars
		sign           func([]byte) []byte
		in             bool
	}{
		{"alg none", vars{"alg": "none"}, nil, nothing, false},
		{"alg None", vars{"alg": "None", "kid": "rsa"}, nil, nothing, false},
		{"alg none, signed", vars{"alg": "none", "kid": "rsa"}, nil, ours, false},
		{"no alg", vars{"kid": "rsa"}, nil, ours, false},
		{"RS256 without a signature", rs, nil, nothing, false},
		{"HS256 with the key as PEM", vars{"alg": "HS256", "kid": "rsa"}, nil, hs256(armoured), false},
		{"HS256 with the key as DER", vars{"alg": "HS256", "kid": "rsa"}, nil, hs256(der), false},
		{"HS256 with the key as published", vars{"alg": "HS256", "kid": "rsa"}, nil, hs256(published), false},
		{"HS256 with the client's secret", vars{"alg": "HS256"}, nil, hs256([]byte("s")), false},
		{"HS256 with nothing", vars{"alg": "HS256"}, nil, hs256(nil), false},
		{"ES256 with a signature of zeros", es, nil, func([]byte) []byte { return make([]byte, 64) }, false},
		{"ES256 by the key of another", es, nil, es256(theirsEC), false},
		{"RS256 by the key of another", rs, nil, rs256(theirsRSA), false},
		{"RS256 by a key in the token", vars{"alg": "RS256", "jwk": p.rsaKey("own", &theirsRSA.PublicKey)}, nil, rs256(theirsRSA), false},
		{"RS256 by a key from another URL", vars{"alg": "RS256", "kid": "own", "jku": "http://127.0.0.1:1/keys"}, nil, rs256(theirsRSA), false},
		{"ES256 under the name of the RSA key", vars{"alg": "ES256", "kid": "rsa"}, nil, es256(p.ec), false},
		{"a kid with a path", vars{"alg": "RS256", "kid": "../../dev/null"}, nil, hs256(nil), false},
		{"an unknown critical header", vars{"alg": "RS256", "kid": "rsa", "crit": []string{"x"}, "x": 1}, nil, ours, false},
		{"another audience", rs, vars{"aud": "other"}, ours, false},
		{"no audience", rs, vars{"aud": nil}, ours, false},
		{"expired", rs, vars{"exp": time.Now().Add(-time.Minute).Unix()}, ours, false},
		{"without an end", rs, vars{"exp": nil}, ours, false},
		{"not yet", rs, vars{"nbf": time.Now().Add(time.Hour).Unix()}, ours, false},
		{"another issuer", rs, vars{"iss": p.URL + "/"}, ours, false},
		{"another nonce", rs, vars{"nonce": "x"}, ours, false},
		{"nobody", rs, vars{"sub": ""}, ours, false},
		{"RS256", rs, nil, ours, true},
		{"ES256", es, nil, es256(p.ec), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			jar, _ := cookiejar.New(nil)
			browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			get := func(address string) *http.Response {
				resp, err := browser.Get(address)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				return resp
			}
			to, err := get(m.URL + "/auth/oidc/corp/start").Location()
			if err != nil {
				t.Fatal(err)
			}
			p.nonce = to.Query().Get("nonce")
			p.token = func() string { return p.write(c.header, c.claims, c.sign) }
			resp := get(to.Query().Get("redirect_uri") + "?code=c&state=" + url.QueryEscape(to.Query().Get("state")))
			in := get(m.URL+"/auth/session").StatusCode == http.StatusOK
			if in != c.in || !in && people() > 0 {
				t.Errorf("logged in: %v, want %v; %s %s", in, c.in, resp.Status, resp.Header.Get("Location"))
			}
		})
	}
	if people() != 1 {
		t.Errorf("%d people", people())
	}
}
