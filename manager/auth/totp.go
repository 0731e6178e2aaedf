package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // required by authenticator apps
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/recoverycode"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
)

// StartTotpPayload is the data for an authenticator app.
type StartTotpPayload struct {
	Secret string // base32, for typing
	URL    string // otpauth, for a QR code
}

// ConfirmTotpInput is a code of the new secret.
type ConfirmTotpInput struct{ Code string }

// DisableTotpInput has both factors.
type DisableTotpInput struct {
	Password string
	Code     string
}

// RegenerateRecoveryCodesInput is a code of the second factor.
type RegenerateRecoveryCodesInput struct{ Code string }

// RecoveryCodesPayload are new codes, which are shown only once.
type RecoveryCodesPayload struct{ Codes []string }

// StartTotp creates a secret for an authenticator app. It takes effect after a code was
// confirmed.
func (s *Service) StartTotp(ctx context.Context) (*StartTotpPayload, error) {
	v, err := self(ctx)
	if err != nil {
		return nil, err
	}
	secret := make([]byte, secretSize)
	rand.Read(secret) // never fails
	n, err := s.client.User.Update().Where(user.ID(v.User), user.TotpEnabledAtIsNil()).
		SetTotpSealed(s.keys.Seal(seal.SecondFactor, secret)).SetTotpStep(0).Save(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("keep secret: %w", err)
	}
	if n == 0 {
		return nil, problem.Precondition("you have already enrolled a second factor")
	}
	return &StartTotpPayload{Secret: base32Plain.EncodeToString(secret), URL: codeURL(v.Email, secret)}, nil
}

// ConfirmTotp enables the second factor.
func (s *Service) ConfirmTotp(ctx context.Context, in ConfirmTotpInput) (*RecoveryCodesPayload, error) {
	out := &RecoveryCodesPayload{}
	err := s.withCode(ctx, in.Code, func(ctx context.Context, tx *ent.Tx, u *ent.User) error {
		if u.TotpEnabledAt != nil || u.TotpSealed == nil {
			return problem.Precondition("there is no second factor to confirm")
		}
		if err := tx.User.UpdateOneID(u.ID).SetTotpEnabledAt(clock.Now()).Exec(ctx); err != nil {
			return err
		}
		var err error
		out.Codes, err = renewCodes(ctx, tx, u.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// RegenerateRecoveryCodes replaces all recovery codes.
func (s *Service) RegenerateRecoveryCodes(ctx context.Context, in RegenerateRecoveryCodesInput) (*RecoveryCodesPayload, error) {
	out := &RecoveryCodesPayload{}
	err := s.withCode(ctx, in.Code, func(ctx context.Context, tx *ent.Tx, u *ent.User) (err error) {
		if u.TotpEnabledAt == nil {
			return errNoTotp()
		}
		out.Codes, err = renewCodes(ctx, tx, u.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DisableTotp disables the second factor.
func (s *Service) DisableTotp(ctx context.Context, in DisableTotpInput) error {
	return s.withCode(ctx, in.Code, func(ctx context.Context, tx *ent.Tx, u *ent.User) error {
		if u.TotpEnabledAt == nil {
			return errNoTotp()
		}
		ok, _, err := s.passwords.Check(ctx, u.PasswordHash, in.Password)
		if err != nil {
			return fmt.Errorf("check password: %w", err)
		}
		if !ok {
			return problem.Invalid("password", "is not your password")
		}
		return clearTotp(ctx, tx, u.ID)
	})
}

func errNoTotp() error { return problem.Precondition("you have no second factor") }

// withCode verifies a code of the viewer and runs f with the viewer's row locked. An error of
// f counts as a failed attempt, too.
func (s *Service) withCode(ctx context.Context, code string, f func(context.Context, *ent.Tx, *ent.User) error) error {
	v, err := self(ctx)
	if err != nil {
		return err
	}
	if _, wait := s.throttle.take(ctx, ownBuckets("code", v)); wait > 0 {
		return problem.Exhausted("too many attempts, try again later").RetryAfter(wait)
	}
	ctx = viewer.SystemContext(ctx)
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no effect after a commit
	u, err := tx.User.Query().Where(user.ID(v.User)).ForUpdate().Only(ctx)
	if err != nil {
		return fmt.Errorf("read user: %w", err)
	}
	if u.TotpSealed == nil {
		return errNoTotp()
	}
	ok, err := s.useCode(ctx, tx, u, code)
	if err != nil {
		return err
	}
	if !ok {
		return problem.Invalid("code", "is wrong, expired or already used")
	}
	if err := f(ctx, tx, u); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.forgetCodes(ctx, ownBuckets("code", v))
	return nil
}

// useCode reports whether a code is valid, and marks it as used. The user's row must be
// locked.
func (s *Service) useCode(ctx context.Context, tx *ent.Tx, u *ent.User, code string) (bool, error) {
	code = plainCode(code)
	secret, err := s.keys.Open(seal.SecondFactor, u.TotpSealed)
	if err != nil {
		return false, fmt.Errorf("second factor of user %s: %w", u.ID, err)
	}
	if step := stepOf(secret, code, time.Now(), u.TotpStep); step > 0 {
		return true, tx.User.UpdateOneID(u.ID).SetTotpStep(step).Exec(ctx)
	}
	if u.TotpEnabledAt == nil || strings.Trim(code, "0123456789") == "" {
		return false, nil
	}
	n, err := tx.RecoveryCode.Update().
		Where(recoverycode.UserID(u.ID), recoverycode.Hash(hash(code)), recoverycode.UsedAtIsNil()).
		SetUsedAt(clock.Now()).Save(ctx)
	return n > 0, err
}

func renewCodes(ctx context.Context, tx *ent.Tx, id uuid.UUID) ([]string, error) {
	if _, err := tx.RecoveryCode.Delete().Where(recoverycode.UserID(id)).Exec(ctx); err != nil {
		return nil, err
	}
	var codes []string
	var rows []*ent.RecoveryCodeCreate
	for range recoveryCodes {
		code := newRecoveryCode()
		codes = append(codes, code)
		rows = append(rows, tx.RecoveryCode.Create().SetUserID(id).SetHash(hash(plainCode(code))))
	}
	return codes, tx.RecoveryCode.CreateBulk(rows...).Exec(ctx)
}

func clearTotp(ctx context.Context, tx *ent.Tx, id uuid.UUID) error {
	if _, err := tx.RecoveryCode.Delete().Where(recoverycode.UserID(id)).Exec(ctx); err != nil {
		return err
	}
	return tx.User.UpdateOneID(id).ClearTotpSealed().ClearTotpEnabledAt().SetTotpStep(0).Exec(ctx)
}

// codeBuckets returns the buckets for attempts at a second factor during a login: six digits
// can be guessed, and a client at this step knows the password. Attempts of unknown devices at
// unknown addresses share a bucket, separate from those of known ones. A recovery code is too
// long to guess, so it has no bucket here; the buckets of the login limit the load.
func codeBuckets(user uuid.UUID, code string, from netip.Addr, f familiar) []bucket {
	key := "code:" + user.String()
	switch {
	case isRecoveryCode(code):
		return nil
	case f.device != uuid.Nil:
		key = "code:" + f.device.String()
	case f.address:
		key += ":" + network(from)
	}
	return []bucket{{key, mostPair}}
}

// ownBuckets returns the buckets for attempts of a logged-in user. Each login has its own, so
// that an attacker with a stolen login cannot prevent the owner from ending it.
func ownBuckets(what string, v *viewer.Viewer) []bucket {
	return []bucket{{what + ":" + v.User.String() + ":" + v.Credential.String(), mostPair}}
}

// tooManyCodes counts an attempt before the code is checked.
func (s *Service) tooManyCodes(ctx context.Context, b *beginning) time.Duration {
	if b.user.TotpEnabledAt == nil || b.code == "" || len(b.codes) == 0 {
		return 0
	}
	_, wait := s.throttle.take(ctx, b.codes)
	return wait
}

func (s *Service) forgetCodes(ctx context.Context, buckets []bucket) {
	if len(buckets) > 0 {
		s.throttle.forget(ctx, attempt{}, buckets)
	}
}

// The parameters of RFC 6238 that every authenticator app supports.
const (
	codePeriod  = 30 * time.Second
	codeSkew    = 1  // steps before and after now
	secretSize  = 20 // bytes, for SHA-1 as RFC 4226 recommends
	codeModulus = 1_000_000
)

var base32Plain = base32.StdEncoding.WithPadding(base32.NoPadding)

// codeAt returns the code of a step.
func codeAt(secret []byte, step int64) string {
	mac := hmac.New(sha1.New, secret)
	_ = binary.Write(mac, binary.BigEndian, step) // a hash never returns an error
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0x0f
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[at:at+4])&0x7fffffff%codeModulus)
}

// stepOf returns the step of a code, near t and after the last used one; 0 if there is none.
func stepOf(secret []byte, code string, t time.Time, last int64) int64 {
	current, found := t.Unix()/int64(codePeriod.Seconds()), int64(0)
	for step := current - codeSkew; step <= current+codeSkew; step++ {
		if hmac.Equal([]byte(codeAt(secret, step)), []byte(code)) && step > last {
			found = step
		}
	}
	return found
}

// codeURL returns the content of the QR code for authenticator apps.
func codeURL(email string, secret []byte) string {
	q := url.Values{"secret": {base32Plain.EncodeToString(secret)}, "issuer": {"Berth"}}
	return (&url.URL{Scheme: "otpauth", Host: "totp", Path: "/Berth:" + email, RawQuery: q.Encode()}).String()
}

// recoveryCodes is the number of codes that a user gets.
const recoveryCodes = 10

// recoveryBytes are 80 random bits, too many to guess, so a fast hash suffices.
const recoveryBytes = 10

func newRecoveryCode() string {
	b := make([]byte, recoveryBytes)
	rand.Read(b) // never fails
	text := strings.ToLower(base32Plain.EncodeToString(b))
	return strings.Join([]string{text[:4], text[4:8], text[8:12], text[12:]}, "-")
}

// isRecoveryCode reports whether a code has the form of a recovery code.
func isRecoveryCode(code string) bool {
	raw, err := base32Plain.DecodeString(strings.ToUpper(plainCode(code)))
	return err == nil && len(raw) == recoveryBytes
}

// plainCode removes separators that users type in a code.
func plainCode(code string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(code))
}
