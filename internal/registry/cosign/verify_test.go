package cosign_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	ggcr "github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/cosign"
	"github.com/berthhq/berth/internal/registry/cosign/cosigntest"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/registrytest"
	"github.com/berthhq/berth/internal/registry/remote"
)

// place is a repository with an image.
type place struct {
	repository name.Repository
	subject    v1.Descriptor
	push       ggcr.Option
	client     *remote.Client
}

func newPlace(t *testing.T) place {
	t.Helper()
	key := pushtoken.Key("a key of push tokens that is long enough")
	_, host := registrytest.Serve(t, t.TempDir(), func(r *registry.Registry) { r.AllowPush(key) })
	token, err := key.Sign(pushtoken.Grant{Namespace: "team", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	p := place{push: ggcr.WithAuth(&authn.Basic{Username: pushtoken.User, Password: token})}
	if p.repository, err = name.NewRepository(host+"/team/tool", name.Insecure); err != nil {
		t.Fatal(err)
	}
	img, err := random.Image(300, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := ggcr.Write(p.repository.Tag("1"), img, p.push); err != nil {
		t.Fatal(err)
	}
	d, err := ggcr.Head(p.repository.Tag("1"))
	if err != nil {
		t.Fatal(err)
	}
	p.subject = *d
	if p.client, err = remote.Open(remote.Registry{Host: host, PlainHTTP: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.client.Close)
	return p
}

func (p place) digest() string { return p.subject.Digest.String() }

func keysOf(t *testing.T, keys ...cosigntest.Key) []cosign.Key {
	t.Helper()
	var text strings.Builder
	for _, k := range keys {
		text.WriteString(k.PEM)
	}
	out, err := cosign.ParseKeys(text.String())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	sign       = "https://sigstore.dev/cosign/sign/v1"
	spdx       = "https://spdx.dev/Document"
)

func TestSignatures(t *testing.T) {
	mine, second, other := cosigntest.NewECDSA(t), cosigntest.NewEd25519(t), cosigntest.NewECDSA(t)
	const someone = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for name, c := range map[string]struct {
		attach func(t *testing.T, p place)
		by     int // index of the key; -1: unsigned
	}{
		"nothing": {func(*testing.T, place) {}, -1},
		"a tag of cosign": {func(t *testing.T, p place) {
			mine.Sign(t, p.repository, p.digest(), p.push)
		}, 0},
		"ed25519": {func(t *testing.T, p place) {
			second.Sign(t, p.repository, p.digest(), p.push)
		}, 1},
		"another key": {func(t *testing.T, p place) {
			other.Sign(t, p.repository, p.digest(), p.push)
		}, -1},
		"another key and ours": {func(t *testing.T, p place) {
			text := cosigntest.SimplePayload("x", p.digest())
			cosigntest.Attach(t, p.repository, p.digest(), ".sig", []mutate.Addendum{other.Layer(t, text), mine.Layer(t, text)}, p.push)
		}, 0},
		"signature of another image": {func(t *testing.T, p place) {
			cosigntest.Attach(t, p.repository, p.digest(), ".sig", []mutate.Addendum{mine.Layer(t, cosigntest.SimplePayload("x", someone))}, p.push)
		}, -1},
		"another payload below the signature": {func(t *testing.T, p place) {
			l, text := mine.Layer(t, cosigntest.SimplePayload("x", someone)), cosigntest.SimplePayload("x", p.digest())
			forged := other.Layer(t, text)
			forged.Annotations = l.Annotations
			cosigntest.Attach(t, p.repository, p.digest(), ".sig", []mutate.Addendum{forged}, p.push)
		}, -1},
		"a payload of another type": {func(t *testing.T, p place) {
			text := []byte(strings.Replace(string(cosigntest.SimplePayload("x", p.digest())), "cosign container", "some", 1))
			cosigntest.Attach(t, p.repository, p.digest(), ".sig", []mutate.Addendum{mine.Layer(t, text)}, p.push)
		}, -1},
		"a bundle": {func(t *testing.T, p place) {
			cosigntest.Refer(t, p.repository, p.subject, mine.Bundle(t, p.digest(), sign, map[string]any{}), bundleType, p.push)
		}, 0},
		"a bundle of another key": {func(t *testing.T, p place) {
			cosigntest.Refer(t, p.repository, p.subject, other.Bundle(t, p.digest(), sign, map[string]any{}), bundleType, p.push)
		}, -1},
		"a bundle about another image": {func(t *testing.T, p place) {
			cosigntest.Refer(t, p.repository, p.subject, mine.Bundle(t, someone, sign, map[string]any{}), bundleType, p.push)
		}, -1},
		"a signed SBOM is no signature": {func(t *testing.T, p place) {
			cosigntest.Refer(t, p.repository, p.subject, mine.Bundle(t, p.digest(), spdx, map[string]any{}), bundleType, p.push)
		}, -1},
		"broken content before ours": {func(t *testing.T, p place) {
			cosigntest.Refer(t, p.repository, p.subject, []byte("no JSON"), bundleType, p.push)
			mine.Sign(t, p.repository, p.digest(), p.push)
		}, 0},
		"a payload that is too large": {func(t *testing.T, p place) {
			text := append(cosigntest.SimplePayload("x", p.digest()), make([]byte, 300<<10)...)
			cosigntest.Attach(t, p.repository, p.digest(), ".sig", []mutate.Addendum{mine.Layer(t, text)}, p.push)
		}, -1},
		"many attachments that are no signatures": {func(t *testing.T, p place) {
			for i := range 60 {
				cosigntest.Refer(t, p.repository, p.subject, []byte{byte(i)}, "text/plain", p.push)
			}
			cosigntest.Refer(t, p.repository, p.subject, mine.Bundle(t, p.digest(), sign, map[string]any{}), bundleType, p.push)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			c.attach(t, p)
			keys := keysOf(t, mine, second)
			by, err := cosign.Verify(t.Context(), p.client, "team/tool", p.digest(), keys)
			want := ""
			if c.by >= 0 {
				want = keys[c.by].Fingerprint
			}
			if by != want || cosign.IsUnsigned(err) != (c.by < 0) || c.by >= 0 && err != nil {
				t.Errorf("signed by %q (%v), want %q", by, err, want)
			}
		})
	}
}

// The layout that the specification of cosign shows, with its annotations and its spelling.
func TestTheFormatOfCosign(t *testing.T) {
	p, key := newPlace(t), cosigntest.NewECDSA(t)
	l := key.Layer(t, []byte(`{
    "critical": {
           "identity": {
               "docker-reference": "testing/manifest"
           },
           "image": {
               "Docker-manifest-digest": "`+p.digest()+`"
           },
           "type": "cosign container image signature"
    },
    "optional": {
           "creator": "atomic",
           "timestamp": 1458239713
    }
}`))
	l.Annotations["dev.sigstore.cosign/bundle"] = `{"SignedEntryTimestamp":"MEUCIQ==","Payload":{}}`
	cosigntest.Attach(t, p.repository, p.digest(), ".sig", []mutate.Addendum{l}, p.push)
	keys := keysOf(t, key)
	if by, err := cosign.Verify(t.Context(), p.client, "team/tool", p.digest(), keys); err != nil || by != keys[0].Fingerprint {
		t.Errorf("signed by %q, %v", by, err)
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	good := cosigntest.NewECDSA(t).PEM
	for name, text := range map[string]string{
		"no PEM":          "ssh-ed25519 AAAA",
		"text after keys": good + "x",
		"a private key":   "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"a certificate":   "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"broken":          "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
		"P-384":           p384(t),
		"too many":        strings.Repeat(good, 21),
	} {
		if keys, err := cosign.ParseKeys(text); !errdefs.IsInvalidArgument(err) {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
		}
	}
}

func p384(t *testing.T) string {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}
