package notation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	ggcr "github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/notation"
	"github.com/berthhq/berth/internal/registry/notation/notationtest"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/registrytest"
	"github.com/berthhq/berth/internal/registry/remote"
)

// site is a registry with an image.
type site struct {
	*remote.Client
	host   string
	push   ggcr.Option
	target name.Repository
	image  v1.Descriptor
}

func newSite(t *testing.T) *site {
	t.Helper()
	key := pushtoken.Key("a key of push tokens that is long enough")
	_, host := registrytest.Serve(t, t.TempDir(), func(r *registry.Registry) { r.AllowPush(key) })
	token, err := key.Sign(pushtoken.Grant{Namespace: "team", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{host: host, push: ggcr.WithAuth(&authn.Basic{Username: pushtoken.User, Password: token})}
	if s.target, err = name.NewRepository(host+"/team/tool", name.Insecure); err != nil {
		t.Fatal(err)
	}
	s.image = s.put(t)
	if s.Client, err = remote.Open(remote.Registry{Host: host, PlainHTTP: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *site) put(t *testing.T) v1.Descriptor {
	t.Helper()
	img, err := random.Image(64, 1)
	if err == nil {
		err = ggcr.Write(s.target.Tag("1"), img, s.push)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := ggcr.Head(s.target.Tag("1"))
	if err != nil {
		t.Fatal(err)
	}
	return *d
}

// attach attaches an envelope to the image.
func (s *site) attach(t *testing.T, media string, blob []byte) {
	t.Helper()
	notationtest.Attach(t, s.target, s.image, media, blob, s.push)
}

// An image counts as signed if a trusted authority, or the trusted certificate itself, has signed its digest, whatever
// else is attached.
func TestSignatures(t *testing.T) {
	t.Parallel()
	const jws, cose = notationtest.JWS, notationtest.COSE
	ours, other := notationtest.NewAuthority(t, "ours"), notationtest.NewAuthority(t, "other")
	trusted, err := notation.ParseCertificates(ours.PEM())
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		attach func(t *testing.T, s *site)
		signed bool
	}{
		"nothing":        {func(*testing.T, *site) {}, false},
		"JWS":            {func(t *testing.T, s *site) { s.attach(t, jws, ours.Envelope(t, s.image, jws)) }, true},
		"COSE":           {func(t *testing.T, s *site) { s.attach(t, cose, ours.Envelope(t, s.image, cose)) }, true},
		"another signer": {func(t *testing.T, s *site) { s.attach(t, jws, other.Envelope(t, s.image, jws)) }, false},
		"of another image": {func(t *testing.T, s *site) {
			was := s.image
			blob := ours.Envelope(t, s.put(t), jws)
			s.image = was
			s.attach(t, jws, blob)
		}, false},
		"a changed byte": {func(t *testing.T, s *site) {
			blob := ours.Envelope(t, s.image, jws)
			blob[len(blob)/3] ^= 1
			s.attach(t, jws, blob)
		}, false},
		"no envelope":     {func(t *testing.T, s *site) { s.attach(t, jws, []byte("{}")) }, false},
		"another type":    {func(t *testing.T, s *site) { s.attach(t, "text/plain", ours.Envelope(t, s.image, jws)) }, false},
		"a long envelope": {func(t *testing.T, s *site) { s.attach(t, jws, []byte(strings.Repeat("x", 300<<10))) }, false},
		"others beside it": {func(t *testing.T, s *site) {
			s.attach(t, jws, other.Envelope(t, s.image, jws))
			s.attach(t, jws, []byte("[]"))
			s.attach(t, cose, ours.Envelope(t, s.image, cose))
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c.attach(t, s)
			by, err := notation.Verify(t.Context(), s.Client, "team/tool", s.image.Digest.String(), trusted)
			if err != nil || (by != "") != c.signed || c.signed && by != trusted[0].Fingerprint {
				t.Errorf("signed by %q, %v", by, err)
			}
		})
	}
}

func TestCertificatesThatAreRefused(t *testing.T) {
	t.Parallel()
	a := notationtest.NewAuthority(t, "a")
	for what, text := range map[string]string{
		"text": "hello", "a key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "broken": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"too many": strings.Repeat(a.PEM(), 21),
	} {
		if _, err := notation.ParseCertificates(text); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}
