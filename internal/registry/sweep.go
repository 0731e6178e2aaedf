package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/store"
)

// sweepPath is a path that no repository can have.
const sweepPath = "/v2/_berth/sweep"

// maxOptions limits the options of a sweep in bytes: they name the images that managers need.
const maxOptions = 64 << 20

// sweep runs a sweep for a manager and answers with its report.
func (r *Registry) sweep(w http.ResponseWriter, req *http.Request, g pushtoken.Grant) {
	if !g.Maintain || req.Method != http.MethodPost {
		deny(w, http.StatusForbidden, "DENIED", "the push token does not permit sweeps")
		return
	}
	var o store.Options
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxOptions)).Decode(&o); err != nil {
		deny(w, http.StatusBadRequest, "UNKNOWN", fmt.Sprintf("read the options of a sweep: %v", err))
		return
	}
	done, err := r.store.Sweep(req.Context(), o)
	switch {
	case errors.Is(err, store.ErrSweeping):
		deny(w, http.StatusConflict, "UNKNOWN", err.Error())
	case err != nil:
		r.fail(w, req, place{}, err)
	default:
		_ = answer(w, "application/json", done)
	}
}
