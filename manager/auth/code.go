package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // required by authenticator apps
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"
)

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
