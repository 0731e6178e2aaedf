package signature

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

func documentation(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/signing.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The example of the documentation is one of the vectors.
func TestDocumentedExample(t *testing.T) {
	text := documentation(t)
	for _, v := range vectors(t) {
		if v.Name != "graphql" {
			continue
		}
		for _, want := range []string{v.Body, v.AccessKey, v.Secret, "```text\n" + v.Base + "\n```",
			fmt.Sprintf("```http\nContent-Digest: %s\nSignature-Input: %s\nSignature: %s\n```", v.Digest, v.Input, v.Signature)} {
			if !strings.Contains(text, want) {
				t.Errorf("docs/signing.md lacks\n%s", want)
			}
		}
	}
	if !strings.Contains(text, "2,048 bytes") || maxInput != 2048 {
		t.Error("docs/signing.md has another limit of headers")
	}
}

// The programs in the documentation create signatures that a server accepts.
func TestDocumentedPrograms(t *testing.T) {
	for language, program := range map[string][]string{"sh": {"bash", "curl", "openssl"}, "python": {"python3"}} {
		t.Run(language, func(t *testing.T) {
			for _, needs := range program {
				if _, err := exec.LookPath(needs); err != nil {
					t.Skip(err)
				}
			}
			block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(documentation(t))
			if block == nil {
				t.Fatal("docs/signing.md has no such program")
			}
			asked := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked++
				body, _ := io.ReadAll(r.Body)
				p, err := Parse(r)
				if err != nil || !Signed(r.Header) || p.AccessKey != "BK1" || !p.Verify(secret) || !p.Matches(body) || !p.Fresh(time.Now()) {
					t.Errorf("%v: %+v in %v", err, p, r.Header)
				}
				fmt.Fprint(w, "welcome")
			}))
			defer srv.Close()
			cmd := exec.CommandContext(t.Context(), program[0], "-c", block[1])
			cmd.Env = append(os.Environ(), "BERTH_URL="+srv.URL, "BERTH_ACCESS_KEY=BK1", "BERTH_SECRET_KEY="+secret)
			out, err := cmd.CombinedOutput()
			if err != nil || asked != 1 || strings.TrimSpace(string(out)) != "welcome" {
				t.Errorf("%v after %d requests: %s", err, asked, out)
			}
		})
	}
}
