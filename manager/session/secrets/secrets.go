// Package secrets encrypts the parts of a session's request that only users who can enter the session
// can read.
package secrets

import (
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/seal"
)

// Values are the encrypted values in the row of a session.
type Values struct {
	Environment     map[string]string `json:"environment,omitempty"`
	BootstrapScript string            `json:"bootstrapScript,omitempty"`
	// Apps are the environments of the apps, by name.
	Apps map[string]map[string]string `json:"apps,omitempty"`
	// Peers is the secret from which the SSH keys between the kernels of a session are derived.
	Peers []byte `json:"peers,omitempty"`
}

func (x Values) empty() bool {
	return len(x.Environment) == 0 && x.BootstrapScript == "" && len(x.Apps) == 0 && len(x.Peers) == 0
}

// New returns the values of a new session.
func New(environment map[string]string, bootstrapScript string, apps []appstate.App, kernels int) Values {
	return Values{environment, bootstrapScript, environments(apps), newPeerSecret(kernels)}
}

// Seal returns the encrypted form, nil without secrets, and the variables with empty values.
func (x Values) Seal(keys *seal.Ring) (sealed []byte, names map[string]string, err error) {
	names = make(map[string]string, len(x.Environment))
	for name := range x.Environment {
		names[name] = ""
	}
	if x.empty() {
		return nil, names, nil
	}
	text, err := json.Marshal(x)
	if err != nil {
		return nil, nil, fmt.Errorf("encode environment: %w", err)
	}
	return keys.Seal(seal.SessionSecrets, text), names, nil
}

// Open returns the decrypted values of a row, or the plaintext in a row of an older version.
func Open(keys *seal.Ring, row *ent.Session) (x Values, err error) {
	if len(row.SecretsSealed) == 0 {
		return plain(row), nil
	}
	text, err := keys.Open(seal.SessionSecrets, row.SecretsSealed)
	if err != nil {
		return x, fmt.Errorf("environment of session %s: %w", row.ID, err)
	}
	if err := json.Unmarshal(text, &x); err != nil {
		return x, fmt.Errorf("environment of session %s: %w", row.ID, err)
	}
	return x, nil
}

// plain returns the values in a row of an older version.
func plain(row *ent.Session) Values {
	return Values{Environment: row.Environment, BootstrapScript: row.BootstrapScript, Apps: environments(row.Apps)}
}

// peerSecretSize is the number of bytes from which the SSH keys between the kernels of a
// session are derived.
const peerSecretSize = 32

// newPeerSecret returns the secret of a new session; nil for a session with one kernel.
func newPeerSecret(kernels int) []byte {
	if kernels < 2 {
		return nil
	}
	secret := make([]byte, peerSecretSize)
	_, _ = rand.Read(secret) // never fails
	return secret
}
