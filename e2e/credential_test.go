package e2e

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/client"
)

// authenticator returns the code that an authenticator app shows now, or some steps of 30 seconds
// from now (RFC 6238).
func authenticator(t *testing.T, secret string, steps int64) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha1.New, key)
	_ = binary.Write(mac, binary.BigEndian, time.Now().Unix()/30+steps)
	sum := mac.Sum(nil)
	return fmt.Sprintf("%06d", (binary.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff)%1_000_000)
}

// signIn submits the login form as the page does. The cookies are secrets.
func signIn(t *testing.T, form object) (status int, field string, cookies []*http.Cookie) {
	t.Helper()
	body, err := json.Marshal(form)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(platform.URL+"/auth/login", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var problem struct{ Field string }
	_ = json.NewDecoder(resp.Body).Decode(&problem)
	for _, c := range resp.Cookies() {
		platform.Secret(fmt.Sprintf("a cookie of %s", form["email"]), c.Value)
	}
	return resp.StatusCode, problem.Field, resp.Cookies()
}

// A user turns on every kind of credential, and can log in with each of them and with nothing else.
// When the platform stops, its stores are searched for the secrets.
func TestEveryCredential(t *testing.T) {
	u := platform.User(t)

	t.Run("second factor", func(t *testing.T) {
		u := u.In(t)
		u.Client = u.Browser() // a token cannot change the second factor
		var started struct {
			Start struct{ Secret string } `json:"startTotp"`
		}
		u.Query(`mutation { startTotp { secret } }`, nil, &started)
		secret := started.Start.Secret
		platform.Secret("a second factor", secret)
		var confirmed struct {
			Confirm struct{ Codes []string } `json:"confirmTotp"`
		}
		u.Query(`mutation($input: ConfirmTotpInput!) { confirmTotp(input: $input) { codes } }`,
			object{"input": object{"code": authenticator(t, secret, -1)}}, &confirmed)
		for _, code := range confirmed.Confirm.Codes {
			platform.Secret("a recovery code", code)
		}
		for _, try := range []struct {
			name, code, field string
			status            int
		}{
			{"the password alone", "", "code", 401},
			{"a wrong code", "00000a", "code", 401},
			{"the code that the app shows", authenticator(t, secret, 0), "", 200},
			{"the same code again", authenticator(t, secret, 0), "code", 401},
			{"a recovery code", confirmed.Confirm.Codes[0], "", 200},
			{"the same recovery code again", confirmed.Confirm.Codes[0], "code", 401},
		} {
			status, field, _ := signIn(t, object{"email": u.Email, "password": u.Password, "code": try.code})
			if status != try.status || field != try.field {
				t.Errorf("%s: %d, field %q; want %d, field %q", try.name, status, field, try.status, try.field)
			}
		}
	})

	t.Run("keypair", func(t *testing.T) {
		type made struct {
			Payload struct {
				Secret  string
				Keypair struct{ ID, AccessKey string }
			}
		}
		var first, second made
		u.In(t).Query(`mutation($input: CreateKeypairInput!) { payload: createKeypair(input: $input) { secret keypair { id accessKey } } }`,
			object{"input": object{"name": "laptop"}}, &first)
		platform.Secret("a keypair", first.Payload.Secret)
		signed := func(m made) error {
			c, err := client.NewSigned(platform.URL, first.Payload.Keypair.AccessKey, m.Payload.Secret, "berth-e2e")
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Sessions(t.Context(), client.SessionFilter{})
			return err
		}
		if err := signed(first); err != nil {
			t.Errorf("a signed request: %v", err)
		}
		u.In(t).Query(`mutation($input: RotateKeypairInput!) { payload: rotateKeypair(input: $input) { secret keypair { id accessKey } } }`,
			object{"input": object{"id": first.Payload.Keypair.ID}}, &second)
		platform.Secret("a keypair after its rotation", second.Payload.Secret)
		if err := signed(first); !errdefs.IsUnauthorized(err) {
			t.Errorf("signed with the secret of before: %v", err)
		}
		if err := signed(second); err != nil {
			t.Errorf("signed with the new secret: %v", err)
		}
	})

	t.Run("SSH key", func(t *testing.T) {
		var made struct {
			Payload struct{ PrivateKey string } `json:"createSshKey"`
		}
		u.In(t).Query(`mutation($input: CreateSSHKeyInput!) { createSshKey(input: $input) { privateKey } }`, object{"input": object{"name": "laptop"}}, &made)
		if !strings.Contains(made.Payload.PrivateKey, "OPENSSH PRIVATE KEY") {
			t.Errorf("no private key: %q", made.Payload.PrivateKey)
		}
		platform.Secret("an SSH key", made.Payload.PrivateKey)
	})

	t.Run("credentials from an administrator", func(t *testing.T) {
		admin := platform.Admin(t)
		var made struct {
			Payload struct{ Domain struct{ ID string } } `json:"createDomain"`
		}
		admin.Query(`mutation { createDomain(input: {name: "guests"}) { domain { id } } }`, nil, &made)
		domain := made.Payload.Domain.ID
		admin.Query(`mutation($id: ID!) { updateDomain(input: {id: $id, signUp: INVITATION}) { domain { id } } }`, object{"id": domain}, &struct{}{})
		var out struct {
			Reset    struct{ Password string }
			Invited  struct{ Secret string }
			Join     struct{ Token string }
			Registry struct{ Registry struct{ ID string } }
			Provider struct{ IdentityProvider struct{ ID string } }
		}
		admin.Query(`mutation($reset: ResetUserPasswordInput!, $invite: CreateInvitationInput!, $registry: CreateRegistryInput!, $provider: CreateIdentityProviderInput!) {
  reset: resetUserPassword(input: $reset) { password }
  invited: createInvitation(input: $invite) { secret }
  join: createJoinToken(input: {role: AGENT}) { token }
  registry: createRegistry(input: $registry) { registry { id } }
  provider: createIdentityProvider(input: $provider) { identityProvider { id } }
}`, object{
			"reset":    object{"user": platform.User(t).ID},
			"invite":   object{"email": "guest@example.org", "domain": domain},
			"registry": object{"name": "elsewhere", "host": "registry.example.org", "username": "reader", "password": "the-registry-pass-8462"},
			"provider": object{"name": "school", "issuer": "https://id.example.org", "clientID": "berth", "clientSecret": "the-client-secret-5173", "domain": domain},
		}, &out)
		for what, secret := range map[string]string{
			"a password of an administrator": out.Reset.Password, "an invitation": out.Invited.Secret, "a join token": out.Join.Token,
			"a registry's password": "the-registry-pass-8462", "a client secret": "the-client-secret-5173",
		} {
			if secret == "" {
				t.Errorf("%s was not shown", what)
			}
			platform.Secret(what, secret)
		}
		admin.Query(`mutation($id: ID!) { deleteIdentityProvider(input: {id: $id}) { identityProvider { id } } }`,
			object{"id": out.Provider.IdentityProvider.ID}, &struct{}{})
	})
}
