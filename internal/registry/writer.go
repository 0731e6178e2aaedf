package registry

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/registry/pushtoken"
)

// AllowPush makes the registry accept writes with tokens that the key signed. Without it, network
// clients can only read. Call it before Serve.
func (r *Registry) AllowPush(key pushtoken.Key) { r.pushKey = key }

// push handles a request with a push token. It reports false for requests without one.
func (r *Registry) push(w http.ResponseWriter, req *http.Request) bool {
	name, token, ok := req.BasicAuth()
	if !ok || name != pushtoken.User || r.pushKey == nil {
		return false
	}
	g, err := r.pushKey.Open(token, time.Now())
	if err != nil {
		refuse(w, err.Error())
		return true
	}
	if why := forbidden(g, req); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return true
	}
	r.app.ServeHTTP(w, req)
	return true
}

func refuse(w http.ResponseWriter, why string) {
	w.Header().Set("WWW-Authenticate", `Basic realm="berth"`)
	http.Error(w, why, http.StatusUnauthorized)
}

// writing are the methods of an upload.
var writing = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch}

// forbidden returns why a token does not permit a request, and "" if it does.
func forbidden(g pushtoken.Grant, req *http.Request) string {
	rest, ok := strings.CutPrefix(req.URL.Path, "/v2/"+g.Repository+"/")
	upload := strings.HasPrefix(rest, "blobs/uploads/")
	part := upload || strings.HasPrefix(rest, "blobs/") || strings.HasPrefix(rest, "manifests/")
	switch {
	case !ok || !part || strings.Contains(rest, "/../"):
		return "the push token is for the repository " + g.Repository + " only"
	case req.Method == http.MethodDelete && (upload || g.Delete):
	case !slices.Contains(writing, req.Method):
		return "the push token does not permit " + req.Method
	}
	for _, from := range req.URL.Query()["from"] {
		if from != g.From {
			return "the push token does not permit layers of the repository " + from
		}
	}
	return ""
}
