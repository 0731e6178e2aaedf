package manager_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/berthhq/berth/manager"
	"github.com/berthhq/berth/manager/managertest"
)

func TestMetricsAreForTheOperator(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("of the operator\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Configure = func(c *manager.Config) { c.MetricsTokenFile = token }
	h := w.Quiet(t).Served
	for name, c := range map[string]struct {
		from, header, value string
		want                int
	}{
		"from elsewhere":                      {"203.0.113.7:1", "", "", http.StatusUnauthorized},
		"from the private network":            {"10.0.0.7:1", "", "", http.StatusUnauthorized},
		"with a wrong token":                  {"203.0.113.7:1", "Authorization", "Bearer wrong", http.StatusUnauthorized},
		"with the token":                      {"203.0.113.7:1", "Authorization", "Bearer of the operator", http.StatusOK},
		"from here":                           {"127.0.0.1:1", "", "", http.StatusUnauthorized},
		"from here, by IPv6":                  {"[::1]:1", "", "", http.StatusUnauthorized},
		"from here, with the token":           {"127.0.0.1:1", "Authorization", "Bearer of the operator", http.StatusOK},
		"forwarded by a proxy here":           {"127.0.0.1:1", "X-Forwarded-For", "203.0.113.7", http.StatusUnauthorized},
		"forwarded by a proxy here, RFC 7239": {"127.0.0.1:1", "Forwarded", "for=203.0.113.7", http.StatusUnauthorized},
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.RemoteAddr = c.from
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		if answer.Code != c.want {
			t.Errorf("%s: %d, want %d", name, answer.Code, c.want)
		}
	}
}
