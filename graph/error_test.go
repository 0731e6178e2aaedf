package graph_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/manager/managertest"
)

// inside matches internals of the platform in a message.
var inside = regexp.MustCompile(`(?i)\bselect\b.*\bfrom\b|\binsert into\b|\bupdate .* set\b|\bwhere .*=|sqlstate|\bpgx\b|pgconn|\bpq:|constraint|duplicate key|relation "|syntax error at|` +
	`goroutine|runtime error|panic|nil pointer|\.go:\d|\bent[.:]|0x[0-9a-f]{6,}|reflect\.|interface conversion|map\[|\*?json\.|strconv\.|%!|` +
	`/(tmp|var|home|root|work|run|usr|opt|etc|proc)/|dial tcp|connection refused|no such file|permission denied \(os|redis|etcd`)

// hostile returns an unusual value of a type, a different one for each round, and reports whether
// there is a further round.
func hostile(s *ast.Schema, t *ast.Type, round, depth int) (any, bool) {
	if t.Elem != nil {
		if round == 1 {
			return []any{}, true
		}
		v, ok := hostile(s, t.Elem, round, depth)
		return []any{v}, ok
	}
	pick := func(list ...any) (any, bool) { return list[round%len(list)], round < len(list) }
	switch def := s.Types[t.NamedType]; {
	case def.Kind == ast.Enum:
		return pick(def.EnumValues[round%len(def.EnumValues)].Name, def.EnumValues[0].Name)
	case def.Kind == ast.InputObject:
		if depth > 3 {
			return nil, false
		}
		out, more := map[string]any{}, false
		for _, f := range def.Fields {
			if f.Name == "and" || f.Name == "or" || f.Name == "not" {
				continue
			}
			v, ok := hostile(s, f.Type, round, depth+1)
			more = more || ok
			// In the rounds with all values at once, only required fields are set.
			if round%2 == 0 || f.Type.NonNull {
				out[f.Name] = v
			}
		}
		return out, more
	}
	switch t.NamedType {
	case "String":
		return pick("'; DROP TABLE users --", "", "\x00", strings.Repeat("x", 10_000), "../../x", "\u202e<script>", "a\nb\r\n=cmd()", "%s%n${x}", "\xff\xfe", "a@b.c", "💥")
	case "ID":
		return pick(uuid.NewString(), uuid.Nil.String(), "x", "ffffffff-ffff-ffff-ffff-ffffffffffff", uuid.NewString())
	case "Int":
		return pick(-1, 0, 1<<31-1, -1<<31, 1<<40)
	case "Int64":
		return pick(int64(-1), 0, int64(1)<<62, -1<<62, int64(1)<<53+1)
	case "Float":
		return pick(-1.5, 1e300, 0)
	case "Boolean":
		return pick(true, false)
	case "Time":
		return pick("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-02-30T00:00:00Z", "now")
	case "Cursor":
		return pick("AAAA", "x", "")
	case "Slots":
		return pick(map[string]any{"cpu": "-1"}, map[string]any{"\x00": "1"}, map[string]any{"cpu": "1e9999"}, map[string]any{"nothing": "9223372036854775807"}, map[string]any{"cpu": "9223372036854775"})
	case "StringMap":
		return pick(map[string]any{"A=B": "\x00"}, map[string]any{"": ""}, map[string]any{"A": strings.Repeat("x", 100_000)})
	}
	return pick("x", 1, nil)
}

// TestErrorsTellNothingOfTheInside sends thousands of generated requests that fail, for every field
// with arguments. No error contains SQL, file paths or stack traces, and none is an internal error.
func TestErrorsTellNothingOfTheInside(t *testing.T) {
	t.Parallel()
	w := managertest.New(t)
	m := w.Quiet(t)
	rows := seed(t, w)
	rows.more(1)
	clients := map[string]*managertest.Client{"superadmin": m.As(t, w.Superadmin), "member": m.As(t, w.A.Member)}
	s, failed := schema(), 0
	ask := func(who, operation string, f *ast.FieldDefinition, round int) (more bool) {
		args, params, vars := "", "", managertest.Vars{}
		for _, a := range f.Arguments {
			v, ok := hostile(s, a.Type, round, 0)
			more = more || ok
			vars[a.Name] = v
			params += fmt.Sprintf("$%s: %s ", a.Name, a.Type)
			args += fmt.Sprintf("%s: $%s ", a.Name, a.Name)
		}
		if len(f.Arguments) == 0 {
			return false
		}
		query := fmt.Sprintf("%s(%s) { %s(%s) { __typename } }", operation, params, f.Name, args)
		body, _ := json.Marshal(map[string]any{"query": query, "variables": vars})
		status, text := clients[who].Post(t, "/graphql", "application/json", body)
		var got struct {
			Code, Detail string
			Errors       managertest.Errors
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Errorf("%s %s: %d is not JSON: %.200s", who, f.Name, status, text)
			return more
		}
		if status == http.StatusUnauthorized { // the mutation ended the login of its caller
			u := map[string]any{"superadmin": w.Superadmin, "member": w.A.Member}[who]
			t.Fatalf("%s is logged out by %s %s: %v", who, f.Name, body, u)
		}
		for _, e := range got.Errors {
			failed++
			if e.Extensions.Code == problem.CodeInternal || e.Extensions.Code == "" {
				t.Errorf("%s %s, round %d: %q %s\n%.600s", who, f.Name, round, e.Extensions.Code, e.Message, body)
			}
			// A message can quote the request.
			if found := inside.FindString(e.Message); found != "" && !strings.Contains(string(body), found) {
				t.Errorf("%s %s, round %d contains %q: %s", who, f.Name, round, found, e.Message)
			}
			if e.Extensions.RequestID == "" {
				t.Errorf("%s %s: an error without the request's id", who, f.Name)
			}
		}
		return more
	}
	for _, who := range []string{"superadmin", "member"} {
		for _, one := range []struct {
			operation string
			of        *ast.Definition
		}{{"query", s.Query}, {"mutation", s.Mutation}} {
			for _, f := range one.of.Fields {
				if f.Name[0] == '_' {
					continue
				}
				for round := 0; round < 12 && ask(who, one.operation, f, round); round++ {
				}
			}
		}
	}
	// The same for the other routes.
	for _, path := range []string{"/auth/login", "/auth/signup", "/auth/logout", "/auth/session", "/auth/oidc/x/start", "/auth/oidc/%2e%2e/callback",
		"/sessions/x/terminal", "/sessions/" + uuid.NewString() + "/ports/99999", "/sessions/" + uuid.NewString() + "/log", "/sessions/%00/log",
		"/export/audit.csv?from=x", "/export/audit.csv?entity='", "/export/audit.csv?result=%00", "/export/audit.csv?domain=%00"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			for _, body := range []string{"", "{", `{"email": 1}`, `[]`, `{"email":"\u0000","password":"\u0000"}`, `{"email":"a@example.org","password":"'","domain":"\u0000"}`} {
				r, err := http.NewRequestWithContext(t.Context(), method, m.URL+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header = clients["superadmin"].Header.Clone()
				if strings.HasSuffix(path, "/logout") {
					r.Header = http.Header{}
				}
				r.Header.Set("Content-Type", "application/json")
				resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
				if err != nil {
					t.Fatal(err)
				}
				text := make([]byte, 4096)
				n, _ := resp.Body.Read(text)
				resp.Body.Close()
				if resp.StatusCode >= 400 {
					failed++
				}
				if found := inside.FindString(string(text[:n])); resp.StatusCode >= 500 || resp.StatusCode >= 400 && found != "" {
					t.Errorf("%s %s %q: %d contains %q: %.300s", method, path, body, resp.StatusCode, found, text[:n])
				}
			}
		}
	}
	t.Logf("%d failures looked at", failed)
	if failed < 1000 {
		t.Errorf("only %d failures", failed)
	}
}
