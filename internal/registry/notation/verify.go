// Package notation verifies signatures of images by Notation (notaryproject.dev) with certificates that an
// administrator trusts. The manager imports it, beside package cosign, to register images.
package notation

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berthhq/berth/internal/registry/remote"
)

const (
	artifactType = "application/vnd.cncf.notary.signature"
	store        = "ca:registry"

	maxCertificates = 20
	maxSignatures   = 50
	maxEnvelope     = 256 << 10
)

// envelopes are the formats of signatures.
var envelopes = map[string]bool{"application/jose+json": true, "application/cose": true}

// Certificate is a certificate that is trusted: an authority, or the certificate of a signer itself.
type Certificate struct {
	*x509.Certificate
	Fingerprint string // sha256: and the hash of the certificate in DER
}

// ParseCertificates reads certificates in PEM.
func ParseCertificates(text string) (out []Certificate, err error) {
	rest := []byte(strings.TrimSpace(text))
	for len(rest) > 0 {
		block, after := pem.Decode(rest)
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("the certificates are not in PEM: %w", errdefs.ErrInvalidArgument)
		}
		rest = []byte(strings.TrimSpace(string(after)))
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read a certificate: %w: %w", err, errdefs.ErrInvalidArgument)
		}
		out = append(out, Certificate{c, fingerprint(c)})
		if len(out) > maxCertificates {
			return nil, fmt.Errorf("there are more than %d certificates: %w", maxCertificates, errdefs.ErrInvalidArgument)
		}
	}
	return out, nil
}

func fingerprint(c *x509.Certificate) string {
	hash := sha256.Sum256(c.Raw)
	return "sha256:" + hex.EncodeToString(hash[:])
}

// trust is a trust store in memory.
type trust []Certificate

// GetCertificates implements truststore.X509TrustStore.
func (t trust) GetCertificates(_ context.Context, kind truststore.Type, _ string) (out []*x509.Certificate, err error) {
	if kind != truststore.TypeCA {
		return nil, nil
	}
	for _, c := range t {
		out = append(out, c.Certificate)
	}
	return out, nil
}

// policy requires the integrity of a signature, a trusted certificate, and that neither has expired. Whether a
// certificate was revoked is not asked: the addresses of those servers come from the signature.
func policy() *trustpolicy.Document {
	return &trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{{
		Name: "registry", RegistryScopes: []string{"*"}, TrustStores: []string{store}, TrustedIdentities: []string{"*"},
		SignatureVerification: trustpolicy.SignatureVerification{
			VerificationLevel: trustpolicy.LevelStrict.Name,
			Override:          map[trustpolicy.ValidationType]trustpolicy.ValidationAction{trustpolicy.TypeRevocation: trustpolicy.ActionSkip},
		},
	}}}
}

// Verify returns the fingerprint of the trusted certificate of a signature of a digest, or "" if there is none.
// Signatures that are broken or of others do not hide one that is valid.
func Verify(ctx context.Context, c *remote.Client, repository, sum string, trusted []Certificate) (string, error) {
	list, err := c.Referrers(ctx, repository, sum)
	if err != nil {
		return "", err
	}
	v, err := verifier.New(policy(), trust(trusted), nil)
	if err != nil {
		return "", fmt.Errorf("verify signatures of Notation: %w", err)
	}
	var target *ocispec.Descriptor
	left := maxSignatures
	for _, d := range list {
		if d.ArtifactType != artifactType || left == 0 {
			continue
		}
		left--
		if target == nil {
			kind, size, err := c.Describe(ctx, repository, sum)
			if err != nil {
				return "", err
			}
			target = &ocispec.Descriptor{MediaType: kind, Digest: digest.Digest(sum), Size: size}
		}
		by, err := signer(ctx, c, v, repository, *target, d, trusted)
		if by != "" {
			return by, nil
		}
		if err != nil && !errdefs.IsInvalidArgument(err) && !errdefs.IsNotFound(err) {
			return "", err
		}
	}
	return "", nil
}

// signer returns the fingerprint of the trusted certificate of one signature, or "".
func signer(ctx context.Context, c *remote.Client, v notation.Verifier, repository string, target ocispec.Descriptor, d remote.Descriptor, trusted []Certificate) (string, error) {
	m, err := c.Artifact(ctx, repository, d.Digest)
	if err != nil {
		return "", err
	}
	if len(m.Layers) != 1 || !envelopes[m.Layers[0].MediaType] {
		return "", nil
	}
	blob, err := c.Blob(ctx, repository, m.Layers[0], maxEnvelope)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := v.Verify(ctx, target, blob, notation.VerifierVerifyOptions{
		ArtifactReference: "registry.invalid/" + repository + "@" + target.Digest.String(), SignatureMediaType: m.Layers[0].MediaType,
	})
	if err != nil || out.Error != nil || out.EnvelopeContent == nil {
		return "", nil // of somebody else, broken or expired
	}
	for _, in := range out.EnvelopeContent.SignerInfo.CertificateChain {
		for _, t := range trusted {
			if t.Equal(in) {
				return t.Fingerprint, nil
			}
		}
	}
	return "", nil
}
