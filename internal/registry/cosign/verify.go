package cosign

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/internal/registry/remote"
)

// The media types of signatures.
const (
	simpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	bundle        = "application/vnd.dev.sigstore.bundle."
	inToto        = "application/vnd.in-toto+json"
	annotation    = "dev.cosignproject.cosign/signature"
	signatureType = "cosign container image signature"
	// signPredicate says that a statement is a signature and nothing else.
	signPredicate = "https://sigstore.dev/cosign/sign/v1"
)

// Limits of what is read of one image.
const (
	maxPayload    = 256 << 10
	maxSignatures = 50
)

// ErrUnsigned reports that an image has no signature by one of the keys. It is a FailedPrecondition.
var ErrUnsigned = fmt.Errorf("it has no signature by a key of its registry: %w", errdefs.ErrFailedPrecondition)

// Verify returns the fingerprint of the key that signed a digest of a repository, and ErrUnsigned if none
// did. Content that is attached by others and broken does not hide a signature that is valid.
func Verify(ctx context.Context, c *remote.Client, repository, digest string, keys []Key) (string, error) {
	list, err := c.Referrers(ctx, repository, digest)
	if err != nil {
		return "", err
	}
	// The registry orders the list: signatures first, so that the limit meets other content.
	slices.SortStableFunc(list, func(a, b remote.Descriptor) int { return rank(a) - rank(b) })
	v := &verification{client: c, repository: repository, digest: digest, keys: keys, left: maxSignatures}
	for _, d := range list {
		if rank(d) == other || v.left == 0 {
			break
		}
		by, err := v.attachment(ctx, d)
		if by != "" {
			return by, nil
		}
		if err != nil && !errdefs.IsInvalidArgument(err) && !errdefs.IsNotFound(err) {
			return "", err
		}
	}
	return "", ErrUnsigned
}

// The order of attachments.
const (
	tagged = iota
	bundled
	unnamed
	other
)

func rank(d remote.Descriptor) int {
	switch {
	case d.ArtifactType == ".sig":
		return tagged
	case strings.HasPrefix(d.ArtifactType, bundle), d.ArtifactType == simpleSigning, strings.HasPrefix(d.ArtifactType, "application/vnd.dev.cosign.artifact.sig"):
		return bundled
	case d.ArtifactType == "", strings.HasSuffix(d.ArtifactType, ".config.v1+json"):
		return unnamed
	}
	return other
}

type verification struct {
	client             *remote.Client
	repository, digest string
	keys               []Key
	left               int // signatures that can still be read
}

// attachment returns the signer of an attachment, or "".
func (v *verification) attachment(ctx context.Context, d remote.Descriptor) (string, error) {
	m, err := v.client.Artifact(ctx, v.repository, d.Digest)
	if err != nil {
		return "", err
	}
	for _, l := range m.Layers {
		var check func(remote.Descriptor, []byte) string
		switch {
		case l.MediaType == simpleSigning:
			check = v.simple
		case strings.HasPrefix(l.MediaType, bundle):
			check = v.bundle
		default:
			continue
		}
		if v.left == 0 {
			return "", nil
		}
		v.left--
		content, err := v.client.Blob(ctx, v.repository, l, maxPayload)
		if errdefs.IsInvalidArgument(err) || errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if by := check(l, content); by != "" {
			return by, nil
		}
	}
	return "", nil
}

// payload is the text that a simple signature is of. The name that it says is not compared: the image can
// have been copied to this registry with its signatures.
type payload struct {
	Critical struct {
		Type  string `json:"type"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
	} `json:"critical"`
}

func (v *verification) simple(l remote.Descriptor, content []byte) string {
	signature, err := base64.StdEncoding.DecodeString(l.Annotations[annotation])
	if err != nil || len(signature) == 0 {
		return ""
	}
	by := signer(v.keys, content, signature)
	if by == "" {
		return ""
	}
	var p payload
	if json.Unmarshal(content, &p) != nil || p.Critical.Type != signatureType || p.Critical.Image.Digest != v.digest {
		return ""
	}
	return by
}

// envelope is a DSSE envelope in a sigstore bundle.
type envelope struct {
	DSSE struct {
		Payload     []byte `json:"payload"`
		PayloadType string `json:"payloadType"`
		Signatures  []struct {
			Sig []byte `json:"sig"`
		} `json:"signatures"`
	} `json:"dsseEnvelope"`
}

// statement is an in-toto statement.
type statement struct {
	PredicateType string `json:"predicateType"`
	Subject       []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
}

func (v *verification) bundle(_ remote.Descriptor, content []byte) string {
	var e envelope
	if json.Unmarshal(content, &e) != nil || e.DSSE.PayloadType != inToto || len(e.DSSE.Signatures) > maxSignatures {
		return ""
	}
	text := preAuthentication(e.DSSE.PayloadType, e.DSSE.Payload)
	for _, s := range e.DSSE.Signatures {
		by := signer(v.keys, text, s.Sig)
		if by == "" {
			continue
		}
		var st statement
		// A signed SBOM or scan report is no approval of the image.
		if json.Unmarshal(e.DSSE.Payload, &st) != nil || st.PredicateType != signPredicate {
			continue
		}
		for _, subject := range st.Subject {
			if "sha256:"+subject.Digest["sha256"] == v.digest {
				return by
			}
		}
	}
	return ""
}

// preAuthentication is the text that a DSSE signature is of.
func preAuthentication(kind string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload)
}

// IsUnsigned reports whether an error is ErrUnsigned.
func IsUnsigned(err error) bool { return errors.Is(err, ErrUnsigned) }
