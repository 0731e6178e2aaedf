package auth

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
)

const (
	deviceLife  = 180 * 24 * time.Hour // since the last use of the page
	deviceUsers = 4                    // users per browser
	// addressLife is how long the address of a login is remembered.
	addressLife = 90 * 24 * time.Hour
)

// familiar reports whether the user has logged in from this device or address before.
type familiar struct {
	device  uuid.UUID // device of the cookie, with which the user has logged in before; zero: none
	address bool      // the user has logged in from this address before
}

// device is a browser, or a berth command, with which a user has logged in.
type device struct {
	User, ID uuid.UUID
	At       int64 // Unix milliseconds
}

// devices reads the cookie of known devices: nil if there is none, or if this cluster did not
// create it.
func (s *Service) devices(r *http.Request) (list []device) {
	text := s.cookieOf(r, devicePlain, deviceTLS)
	if text == "" || s.keys == nil {
		return nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	plain, err := s.keys.Open(seal.KnownDevice, sealed)
	if err != nil || json.Unmarshal(plain, &list) != nil {
		return nil
	}
	oldest := clock.Now().Add(-deviceLife).UnixMilli()
	return slices.DeleteFunc(list, func(d device) bool { return d.At < oldest })
}

// remember sets a cookie that identifies the browser at later logins. A known device keeps its
// id; a new device gets the id of the login, so that repeated requests of one login create
// only one device.
func (s *Service) remember(w http.ResponseWriter, r *http.Request, v *viewer.Viewer) {
	if s.keys == nil {
		return
	}
	now := device{User: v.User, ID: v.Credential, At: clock.Now().UnixMilli()}
	list := []device{now}
	for _, d := range s.devices(r) {
		switch {
		case d.User == v.User:
			list[0].ID = d.ID
		case len(list) < deviceUsers:
			list = append(list, d)
		}
	}
	plain, err := json.Marshal(list)
	if err != nil {
		return // uuids and numbers always encode
	}
	value := base64.RawURLEncoding.EncodeToString(s.keys.Seal(seal.KnownDevice, plain))
	s.setCookieOf(w, r, devicePlain, deviceTLS, value, int(deviceLife.Seconds()))
}

// knownAddress selects a user by e-mail, the time of their last password change, and whether
// they have logged in from the network before.
const knownAddress = `
SELECT u.id, coalesce(u.password_changed_at, u.created_at), EXISTS (
  SELECT FROM login_attempts a WHERE a.user_id = u.id AND a.result = 'success' AND a.at > $2
  AND CASE WHEN a.client_address <> '' THEN a.client_address::inet <<= $3::inet END)
FROM users u WHERE u.email = $1`

// familiar returns whether the user of an e-mail address has used the device and the address of a
// request before. A device from before the last password change is unknown.
func (s *Service) familiar(r *http.Request, email string) (f familiar, err error) {
	if !utf8.ValidString(email) || strings.ContainsRune(email, 0) {
		return f, nil // the database rejects such text
	}
	var from *string
	if a := s.ClientAddress(r); a.IsValid() {
		n := network(a)
		from = &n
	}
	rows, err := s.client.QueryContext(r.Context(), knownAddress, email, clock.Now().Add(-addressLife), from)
	if err != nil {
		return f, fmt.Errorf("look up known address: %w", err)
	}
	defer rows.Close()
	if !rows.Next() {
		return f, rows.Err()
	}
	var user uuid.UUID
	var changed time.Time
	if err := rows.Scan(&user, &changed, &f.address); err != nil {
		return f, fmt.Errorf("read known address: %w", err)
	}
	for _, d := range s.devices(r) {
		if d.User == user && d.At >= changed.UnixMilli() {
			f.device = d.ID
		}
	}
	return f, rows.Err()
}
