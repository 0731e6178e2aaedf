// Package notationtest signs images in registries, for tests, as Notation does.
package notationtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	ggcr "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/signer"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The formats of signatures.
const (
	JWS  = "application/jose+json"
	COSE = "application/cose"
)

// Authority is a certificate that issues others.
type Authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// NewAuthority returns an authority.
func NewAuthority(t testing.TB, cn string) Authority {
	t.Helper()
	a := Authority{key: newKey(t)}
	a.cert = issue(t, cn, &a, a.key, true, time.Now().Add(24*time.Hour))
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func issue(t testing.TB, cn string, by *Authority, key *ecdsa.PrivateKey, ca bool, until time.Time) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: until.Add(-48 * time.Hour), NotAfter: until, BasicConstraintsValid: true,
		Subject: pkix.Name{Country: []string{"DE"}, Province: []string{"BE"}, Organization: []string{"Berth"}, CommonName: cn},
	}
	if ca {
		template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	} else {
		template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
	}
	parent := by.cert
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// PEM returns the certificate.
func (a Authority) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// Envelope returns an envelope that signs content, as notation sign makes it.
func (a Authority) Envelope(t testing.TB, of v1.Descriptor, media string) []byte {
	t.Helper()
	key := newKey(t)
	chain := []*x509.Certificate{issue(t, "signer", &a, key, false, time.Now().Add(12*time.Hour)), a.cert}
	s, err := signer.NewGenericSigner(key, chain)
	if err != nil {
		t.Fatal(err)
	}
	blob, _, err := s.Sign(t.Context(), ocispec.Descriptor{MediaType: string(of.MediaType), Digest: digest.Digest(of.Digest.String()), Size: of.Size},
		notation.SignerSignOptions{SignatureMediaType: media})
	if err != nil {
		t.Fatal(err)
	}
	return blob
}

// raw is a manifest.
type raw []byte

// RawManifest implements remote.Taggable.
func (r raw) RawManifest() ([]byte, error) { return r, nil }

// MediaType is the one of the manifest.
func (r raw) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// Attach stores an envelope as a referrer of an image.
func Attach(t testing.TB, repository name.Repository, image v1.Descriptor, media string, blob []byte, opts ...ggcr.Option) {
	t.Helper()
	layer, empty := static.NewLayer(blob, types.MediaType(media)), static.NewLayer([]byte("{}"), "application/vnd.oci.empty.v1+json")
	for _, l := range []v1.Layer{layer, empty} {
		if err := ggcr.WriteLayer(repository, l, opts...); err != nil {
			t.Fatal(err)
		}
	}
	sum, _ := layer.Digest()
	none, _ := empty.Digest()
	m, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": types.OCIManifestSchema1, "artifactType": "application/vnd.cncf.notary.signature",
		"config":  map[string]any{"mediaType": "application/vnd.oci.empty.v1+json", "digest": none.String(), "size": 2},
		"layers":  []any{map[string]any{"mediaType": media, "digest": sum.String(), "size": len(blob)}},
		"subject": map[string]any{"mediaType": image.MediaType, "digest": image.Digest.String(), "size": image.Size},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ggcr.Put(repository.Digest(digest.FromBytes(m).String()), raw(m), opts...); err != nil {
		t.Fatal(err)
	}
}
