package app

import (
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/appstate"
	"github.com/berthhq/berth/internal/id"
)

// Target names an app of a kernel of a session.
type Target struct {
	Session uuid.UUID `json:"s"`
	Kernel  int       `json:"k,omitempty"` // index; 0 is the main kernel
	App     string    `json:"a"`           // name, or decimal port
}

// Label returns the target as one label of a host name: APP--SESSION, or APP--sub1--SESSION. The
// longest has 59 of the 63 characters that DNS allows.
func (t Target) Label() string {
	session := labels.EncodeToString(t.Session[:])
	if t.Kernel > 0 {
		return fmt.Sprintf("%s--sub%d--%s", t.App, t.Kernel, session)
	}
	return t.App + "--" + session
}

var labels = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// ParseLabel is the inverse of Label. It reports false for a label that Label does not return.
func ParseLabel(label string) (t Target, ok bool) {
	parts := strings.Split(label, "--")
	if len(parts) < 2 || len(parts) > 3 {
		return t, false
	}
	t.App = parts[0]
	if raw, err := labels.DecodeString(parts[len(parts)-1]); err == nil && len(raw) == len(t.Session) {
		copy(t.Session[:], raw)
	}
	if len(parts) == 3 {
		n, err := strconv.Atoi(strings.TrimPrefix(parts[1], "sub"))
		if err != nil || n < 1 {
			return t, false
		}
		t.Kernel = n
	}
	_, err := appstate.CheckTarget(t.App)
	return t, err == nil && id.KindOf(t.Session) == id.Session && t.Label() == label
}
