package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/containerd/errdefs"
)

// buildPart is the size of the parts of the files of a build, which a manager takes.
const buildPart = 8 << 20

// SendBuildFiles sends an archive for BuildImage in parts, and returns their digests for the field Files. Parts that
// are stored already are not sent, so a repetition continues where the last one has ended. Progress, if it is not
// nil, is called with the number of bytes that are stored. Warn, if it is not nil, is called with an error before it
// tries again.
func (c *Client) SendBuildFiles(ctx context.Context, archive io.Reader, progress func(int64), warn func(error)) (digests []string, err error) {
	part := make([]byte, buildPart)
	for sent := int64(0); ; {
		n, err := io.ReadFull(archive, part)
		if errors.Is(err, io.EOF) {
			return digests, nil
		}
		last := errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return nil, err
		}
		var digest string
		err = persist(ctx, warn, func() (bool, error) {
			digest, err = c.sendBuildPart(ctx, part[:n])
			return err == nil, err
		})
		if err != nil {
			return nil, fmt.Errorf("send part %d of the files: %w", len(digests)+1, err)
		}
		digests, sent = append(digests, digest), sent+int64(n)
		if progress != nil {
			progress(sent)
		}
		if last {
			return digests, nil
		}
	}
}

// sendBuildPart stores a part unless it is stored, and returns its digest.
func (c *Client) sendBuildPart(ctx context.Context, part []byte) (string, error) {
	sum := sha256.Sum256(part)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	req, err := c.request(ctx, http.MethodHead, "/images/files/"+digest, nil)
	if err != nil {
		return "", err
	}
	resp, err := c.send(req)
	if err != nil {
		return "", err
	}
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return digest, nil
	}
	if req, err = c.request(ctx, http.MethodPost, "/images/files", bytes.NewReader(part)); err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	if resp, err = c.send(req); err != nil {
		return "", err
	}
	if err := refused(resp, http.StatusCreated); err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var got struct{ Digest string }
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<10)).Decode(&got); err != nil {
		return "", fmt.Errorf("read the answer: %w: %w", errdefs.ErrUnavailable, err)
	}
	if got.Digest != digest {
		return "", fmt.Errorf("the manager has stored %s, not %s: %w", got.Digest, digest, errdefs.ErrUnavailable)
	}
	return digest, nil
}
