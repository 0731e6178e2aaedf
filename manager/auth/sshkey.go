package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/crypto/ssh"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/sshkey"
	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/permit"
)

// CreateSSHKeyInput is an SSH key: its public half as in a line of authorized_keys, or nil for a
// key that the server generates.
type CreateSSHKeyInput struct {
	Name      string
	PublicKey *string
}

// DeleteSSHKeyInput names the SSH key to delete.
type DeleteSSHKeyInput struct{ ID uuid.UUID }

// SSHKeyPayload is an SSH key; the private key is set only after its creation.
type SSHKeyPayload struct {
	SSHKey     *ent.SSHKey
	PrivateKey *string
}

// DeleteSSHKeyPayload is the id of the deleted SSH key.
type DeleteSSHKeyPayload struct{ ID uuid.UUID }

const (
	maxSSHKeys   = 50      // per user
	maxPublicKey = 8 << 10 // bytes; RSA of 16384 bits has 2.8 KB
	minRSA       = 2048
	maxRSA       = 16384
)

// CreateSSHKey stores a public key of the user. Without one, it generates a key and returns the
// private half, which is not stored.
func (s *Service) CreateSSHKey(ctx context.Context, in CreateSSHKeyInput) (*SSHKeyPayload, error) {
	if in.PublicKey != nil {
		return s.storePublicKey(ctx, in.Name, *in.PublicKey)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make ssh key: %w", err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("make ssh key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, in.Name)
	if err != nil {
		return nil, fmt.Errorf("encode ssh key: %w", err)
	}
	kept, err := s.keepSSHKey(ctx, in.Name, key)
	if err != nil {
		return nil, err
	}
	text := string(pem.EncodeToMemory(block))
	return &SSHKeyPayload{SSHKey: kept, PrivateKey: &text}, nil
}

// storePublicKey stores a key of which the user keeps the private half.
func (s *Service) storePublicKey(ctx context.Context, name, text string) (*SSHKeyPayload, error) {
	key, err := parsePublicKey(text)
	if err != nil {
		return nil, err
	}
	kept, err := s.keepSSHKey(ctx, name, key)
	if err != nil {
		return nil, err
	}
	return &SSHKeyPayload{SSHKey: kept}, nil
}

// DeleteSSHKey deletes an SSH key.
func (s *Service) DeleteSSHKey(ctx context.Context, in DeleteSSHKeyInput) (*DeleteSSHKeyPayload, error) {
	if _, err := person(ctx); err != nil {
		return nil, err
	}
	k, err := s.client.SSHKey.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "SSH key", "id")
	}
	on, err := s.credentialOf(ctx, k.ID, k.UserID)
	if err != nil {
		return nil, err
	}
	if _, err := permit.Check(ctx, access.Delete, access.Credential, on); err != nil {
		return nil, err
	}
	if err := s.client.SSHKey.DeleteOneID(k.ID).Exec(ctx); err != nil && !ent.IsNotFound(err) {
		return nil, fmt.Errorf("delete ssh key: %w", err)
	}
	s.Disconnect(ctx, k.ID)
	return &DeleteSSHKeyPayload{ID: k.ID}, nil
}

func (s *Service) keepSSHKey(ctx context.Context, name string, key ssh.PublicKey) (*ent.SSHKey, error) {
	v, err := s.maker(ctx)
	if err != nil {
		return nil, err
	}
	// The key gives access to sessions and folders of every project, so the credential that
	// adds it must have this access.
	for _, scope := range []access.TokenScope{access.TokenSessions, access.TokenFolders} {
		if !v.Allows(scope) || v.Within != uuid.Nil {
			return nil, problem.Forbidden("the access token lacks the scope %s on all projects", scope)
		}
	}
	if err := naming.Name("name", name); err != nil {
		return nil, err
	}
	tx, err := s.changeOf(ctx, v.User)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // no effect after a commit
	o, err := originOf(ctx, tx, v)
	if err != nil {
		return nil, err
	}
	fingerprint := ssh.FingerprintSHA256(key)
	_, err = tx.SSHKey.Delete().Where(sshkey.UserID(v.User), sshkey.Fingerprint(fingerprint), sshkey.ExpiresAtLTE(clock.Now())).Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("delete the expired ssh key: %w", err)
	}
	mine := tx.SSHKey.Query().Where(sshkey.UserID(v.User))
	n, err := mine.Clone().Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("count ssh keys: %w", err)
	}
	if n >= maxSSHKeys {
		return nil, problem.Exhausted("you have %d SSH keys, delete one first", n).WithLimit(fmt.Sprint(maxSSHKeys))
	}
	twice, err := mine.Where(sshkey.Fingerprint(fingerprint)).Exist(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for the same ssh key: %w", err)
	}
	if twice {
		return nil, problem.Exists("publicKey", "you have this SSH key already")
	}
	k, err := tx.SSHKey.Create().SetName(name).SetFingerprint(fingerprint).SetUserID(v.User).
		SetNillableMakerID(o.id).SetNillableExpiresAt(o.expires).
		SetPublicKey(strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))).
		Save(ctx)
	if err != nil {
		return nil, fmt.Errorf("keep ssh key: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	return k.Unwrap(), nil
}

// parsePublicKey reads one line of authorized_keys. It drops options and the comment, so that
// they cannot reach a session.
func parsePublicKey(text string) (ssh.PublicKey, error) {
	const field = "publicKey"
	text = strings.TrimSpace(text)
	if len(text) > maxPublicKey {
		return nil, problem.Invalid(field, "is too long").WithLimit(fmt.Sprint(maxPublicKey))
	}
	if strings.Contains(text, "PRIVATE KEY") {
		return nil, problem.Invalid(field, "is a private key: keep it secret, and consider it exposed; add the public key of a new one")
	}
	if strings.ContainsAny(text, "\r\n\x00") {
		return nil, problem.Invalid(field, "must be one line")
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, problem.Invalid(field, "is not a public key as in authorized_keys")
	}
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return key, nil
	case ssh.KeyAlgoRSA:
		if n := bits(key); n < minRSA || n > maxRSA {
			return nil, problem.Invalid(field, "has %d bits, RSA needs %d to %d", n, minRSA, maxRSA).WithLimit(fmt.Sprint(minRSA))
		}
		return key, nil
	}
	return nil, problem.Invalid(field, "has the type %s; use ed25519, ecdsa or rsa", key.Type())
}

func bits(key ssh.PublicKey) int {
	if c, ok := key.(ssh.CryptoPublicKey); ok {
		if k, ok := c.CryptoPublicKey().(*rsa.PublicKey); ok {
			return k.N.BitLen()
		}
	}
	return 0
}
