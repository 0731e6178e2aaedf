// Package saved is how requests for sessions are kept in tables: as JSON without the values of environment variables and
// without scripts, and these encrypted together.
package saved

import (
	"encoding/json"
	"fmt"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/manager/session"
)

// Request is a request in the form of a row.
type Request struct {
	JSON   json.RawMessage
	Sealed []byte // nil: the request has no secrets
}

// secrets are the encrypted values.
type secrets struct {
	Environment     map[string]string            `json:"environment,omitempty"`
	BootstrapScript *string                      `json:"bootstrapScript,omitempty"`
	Apps            map[string]map[string]string `json:"apps,omitempty"`
}

func (x secrets) empty() bool {
	return len(x.Environment) == 0 && x.BootstrapScript == nil && len(x.Apps) == 0
}

// Pack checks a request and returns it in the form of a row. Without keys, nothing is encrypted.
func Pack(keys *seal.Ring, purpose seal.Purpose, in session.CreateSessionInput) (*Request, error) {
	if err := session.CheckSaved(in); err != nil {
		return nil, problem.Within(err, "request")
	}
	out := &Request{}
	if keys != nil {
		var x secrets
		if in, x = separate(in); !x.empty() {
			text, err := json.Marshal(x)
			if err != nil {
				return nil, fmt.Errorf("encode environment: %w", err)
			}
			out.Sealed = keys.Seal(purpose, text)
		}
	}
	var err error
	if out.JSON, err = json.Marshal(in); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return out, nil
}

// Unpack returns the request of a row.
func Unpack(keys *seal.Ring, purpose seal.Purpose, r Request) (in session.CreateSessionInput, err error) {
	if err := json.Unmarshal(r.JSON, &in); err != nil {
		return in, fmt.Errorf("read request: %w", err)
	}
	if len(r.Sealed) == 0 {
		return in, nil
	}
	text, err := keys.Open(purpose, r.Sealed)
	if err != nil {
		return in, fmt.Errorf("decrypt environment: %w", err)
	}
	var x secrets
	if err := json.Unmarshal(text, &x); err != nil {
		return in, fmt.Errorf("read environment: %w", err)
	}
	in.Environment, in.BootstrapScript = x.Environment, x.BootstrapScript
	for i, a := range in.Apps {
		in.Apps[i].Environment = x.Apps[a.Name]
	}
	return in, nil
}

// Hide returns a request without the values of environments and without the script.
func Hide(in session.CreateSessionInput) session.CreateSessionInput {
	in, _ = separate(in)
	return in
}

// separate separates the values of the environments and the script from a request.
func separate(in session.CreateSessionInput) (session.CreateSessionInput, secrets) {
	x := secrets{Environment: in.Environment, BootstrapScript: in.BootstrapScript, Apps: map[string]map[string]string{}}
	in.Environment, in.BootstrapScript = names(in.Environment), nil
	var apps []session.AppInput
	for _, a := range in.Apps {
		if len(a.Environment) > 0 {
			x.Apps[a.Name] = a.Environment
		}
		a.Environment = names(a.Environment)
		apps = append(apps, a)
	}
	in.Apps = apps
	return in, x
}

// names returns an environment with empty values.
func names(env map[string]string) map[string]string {
	out := make(map[string]string, len(env))
	for name := range env {
		out[name] = ""
	}
	return out
}
