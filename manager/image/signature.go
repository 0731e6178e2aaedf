package image

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"slices"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/scanresult"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/cosign"
	"github.com/berthhq/berth/internal/registry/notation"
	"github.com/berthhq/berth/internal/registry/remote"
	"github.com/berthhq/berth/internal/viewer"
)

// maxSignatureKeys limits the public keys of a registry in bytes.
const maxSignatureKeys = 32 << 10

func checkSignatureKeys(text string) error {
	if len(text) > maxSignatureKeys {
		return problem.TooLarge("signatureKeys", maxSignatureKeys)
	}
	if _, err := trustOf(text); err != nil {
		return problem.Invalid("signatureKeys", "must be public keys in PEM, ECDSA P-256 or ed25519, as cosign public-key prints them, or certificates for Notation: %s", reason(err)).Because(err)
	}
	return nil
}

// trust is what the signatures of a registry's images are verified with.
type trust struct {
	keys         []cosign.Key           // of cosign
	certificates []notation.Certificate // of Notation
}

// trustOf reads public keys and certificates in PEM.
func trustOf(text string) (t trust, err error) {
	var keys, certificates []byte
	rest := []byte(text)
	for {
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		if rest = after; block.Type == "CERTIFICATE" {
			certificates = append(certificates, pem.EncodeToMemory(block)...)
		} else {
			keys = append(keys, pem.EncodeToMemory(block)...)
		}
	}
	keys = append(keys, bytes.TrimSpace(rest)...)
	if t.keys, err = cosign.ParseKeys(string(keys)); err != nil {
		return t, err
	}
	t.certificates, err = notation.ParseCertificates(string(certificates))
	return t, err
}

// has reports whether a fingerprint is that of a key or a certificate.
func (t trust) has(fingerprint string) bool {
	return slices.ContainsFunc(t.keys, func(k cosign.Key) bool { return k.Fingerprint == fingerprint }) ||
		slices.ContainsFunc(t.certificates, func(c notation.Certificate) bool { return c.Fingerprint == fingerprint })
}

// signer returns the fingerprint of the key or certificate that signed a digest, and cosign.ErrUnsigned if none did.
func (t trust) signer(ctx context.Context, from *remote.Client, repository, digest string) (string, error) {
	if len(t.keys) > 0 {
		by, err := cosign.Verify(ctx, from, repository, digest, t.keys)
		if !cosign.IsUnsigned(err) {
			return by, err
		}
	}
	if len(t.certificates) > 0 {
		by, err := notation.Verify(ctx, from, repository, digest, t.certificates)
		if by != "" || err != nil {
			return by, err
		}
	}
	return "", cosign.ErrUnsigned
}

// verify finds the keys that signed an image, and returns cosign.ErrUnsigned if its registry requires a
// signature that it lacks. A signature of the tag's index covers all of its images.
func (s *Service) verify(ctx context.Context, r *ent.Registry, from *remote.Client, name string, content *remote.Content) error {
	if r.SignatureKeys == "" {
		return nil
	}
	keys, err := trustOf(r.SignatureKeys)
	if err != nil {
		return fmt.Errorf("read the keys of registry %s: %w", r.Name, err)
	}
	repository := repositoryOf(name)
	by, err := keys.signer(ctx, from, repository, content.Digest)
	if err != nil && !cosign.IsUnsigned(err) {
		return err
	}
	for i := range content.Images {
		one := &content.Images[i]
		if one.SignedBy = by; by != "" {
			continue
		}
		if one.Digest == content.Digest {
			return cosign.ErrUnsigned
		}
		if one.SignedBy, err = keys.signer(ctx, from, repository, one.Digest); err != nil {
			return err
		}
	}
	return nil
}

// unsigned is the reason why an image is not registered.
const unsigned = "It has no signature by a key of its registry."

// checkSigned returns an error for an image whose registry requires a signature, unless one of the
// registry's keys has signed the content of the image. Images that users made belong to the cluster, and
// their registry's keys do not count for them.
func (s *Service) checkSigned(ctx context.Context, i *ent.Image) error {
	if i.OwnerID != nil || i.SessionID != nil || i.RegistryID == nil {
		return nil
	}
	r, err := s.client.Registry.Get(viewer.SystemContext(ctx), *i.RegistryID)
	if err != nil {
		return fmt.Errorf("read registry: %w", err)
	}
	if r.SignatureKeys == "" {
		return nil
	}
	keys, err := trustOf(r.SignatureKeys)
	if err != nil {
		return fmt.Errorf("read the keys of registry %s: %w", r.Name, err)
	}
	if keys.has(i.SignedBy) {
		return nil
	}
	s.meter.unsigned.Inc()
	return problem.Precondition("image %s with the digest %s has no signature by a key of registry %s; an administrator can sign it and scan the registry", i.Name, i.Digest, r.Name).WithField(imageField)
}

// reread makes the next scan of a registry read every tag: what was accepted by other keys is no longer.
func (s *Service) reread(ctx context.Context, r *ent.Registry) error {
	err := s.client.ScanResult.Update().Where(scanresult.RegistryID(r.ID)).SetDigest("").Exec(viewer.SystemContext(ctx))
	if err != nil {
		return fmt.Errorf("forget the results of scans: %w", err)
	}
	return nil
}

// isUnsigned reports whether a tag was refused for its signature. A signature can be added later without
// a change of the digest, so such a tag is read again.
func isUnsigned(err error) bool { return cosign.IsUnsigned(err) && errdefs.IsFailedPrecondition(err) }
