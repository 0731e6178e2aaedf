// Package cosigntest signs images in registries, for tests, as cosign does.
package cosigntest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Key is a key of a test.
type Key struct {
	signer crypto.Signer
	PEM    string // the public key
}

// NewECDSA returns a key on the curve P-256, which is what cosign generates.
func NewECDSA(t testing.TB) Key {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return newKey(t, k)
}

// NewEd25519 returns an ed25519 key.
func NewEd25519(t testing.TB) Key {
	t.Helper()
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return newKey(t, k)
}

func newKey(t testing.TB, k crypto.Signer) Key {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	return Key{k, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
}

func (k Key) sign(t testing.TB, text []byte) []byte {
	t.Helper()
	hash, opts := text, crypto.Hash(0)
	if _, is := k.signer.(*ecdsa.PrivateKey); is {
		sum := sha256.Sum256(text)
		hash, opts = sum[:], crypto.SHA256
	}
	signature, err := k.signer.Sign(rand.Reader, hash, opts)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

// SimplePayload is what cosign signs of a digest.
func SimplePayload(reference, digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, reference, digest)
}

// Layer returns a payload with its signature, as a layer of the image below the tag of the digest.
func (k Key) Layer(t testing.TB, payload []byte) mutate.Addendum {
	t.Helper()
	return mutate.Addendum{
		Layer:       static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(k.sign(t, payload))},
	}
}

// Attach puts layers below the tag that cosign gives signatures of a digest.
func Attach(t testing.TB, repository name.Repository, digest, end string, layers []mutate.Addendum, opts ...remote.Option) {
	t.Helper()
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	if err != nil {
		t.Fatal(err)
	}
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	if err := remote.Write(repository.Tag(strings.Replace(digest, ":", "-", 1)+end), img, opts...); err != nil {
		t.Fatal(err)
	}
}

// Sign signs a digest as cosign 1 and 2 do.
func (k Key) Sign(t testing.TB, repository name.Repository, digest string, opts ...remote.Option) {
	t.Helper()
	Attach(t, repository, digest, ".sig", []mutate.Addendum{k.Layer(t, SimplePayload(repository.Name(), digest))}, opts...)
}

// Bundle returns a sigstore bundle with a signed statement about a digest, as cosign 3 writes it.
func (k Key) Bundle(t testing.TB, digest, predicateType string, predicate any) []byte {
	t.Helper()
	statement, err := json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": predicateType, "predicate": predicate,
		"subject": []any{map[string]any{"digest": map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const kind = "application/vnd.in-toto+json"
	text := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement)
	bundle, err := json.Marshal(map[string]any{
		"mediaType":            "application/vnd.dev.sigstore.bundle.v0.3+json",
		"verificationMaterial": map[string]any{"publicKey": map[string]string{"hint": "test"}, "tlogEntries": []any{}},
		"dsseEnvelope":         map[string]any{"payload": statement, "payloadType": kind, "signatures": []any{map[string]any{"sig": k.sign(t, text)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// Refer pushes content that refers to a subject.
func Refer(t testing.TB, repository name.Repository, subject v1.Descriptor, content []byte, kind string, opts ...remote.Option) {
	t.Helper()
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{Layer: static.NewLayer(content, types.MediaType(kind))})
	if err != nil {
		t.Fatal(err)
	}
	attached, ok := mutate.Subject(mutate.ConfigMediaType(img, types.MediaType(kind)), subject).(v1.Image)
	if !ok {
		t.Fatal("the attachment is not an image")
	}
	digest, err := attached.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(repository.Digest(digest.String()), attached, opts...); err != nil {
		t.Fatal(err)
	}
}
