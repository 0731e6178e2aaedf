package attach

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/viewer"
)

// One user cannot use a manager's whole capacity for terminals and forwarded connections.
func TestTerminalsOfAPersonAreBounded(t *testing.T) {
	h := &Handler{}
	ann := &viewer.Viewer{User: uuid.New()}
	ctx := viewer.With(t.Context(), ann)
	var last func()
	for i := range maxOpen {
		giveBack, err := h.place(ctx)
		if err != nil {
			t.Fatalf("number %d: %v", i+1, err)
		}
		last = giveBack
	}
	mux := http.NewServeMux()
	h.Register(mux)
	for _, path := range []string{"/sessions/x/terminal", "/sessions/x/ports/80"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil).WithContext(ctx))
		var said struct{ Detail, Limit string }
		if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || w.Code != http.StatusTooManyRequests || said.Limit != "200" {
			t.Errorf("%s: %d %s, %v", path, w.Code, w.Body, err)
		}
	}
	if _, err := h.place(viewer.With(t.Context(), &viewer.Viewer{User: uuid.New(), Actor: ann.User})); err == nil {
		t.Error("there is room for a user who acts as another one")
	}
	if _, err := h.place(viewer.With(t.Context(), &viewer.Viewer{User: uuid.New()})); err != nil {
		t.Errorf("another person: %v", err)
	}
	last()
	if _, err := h.place(ctx); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}
