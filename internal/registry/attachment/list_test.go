package attachment_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	ggcr "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/berthhq/berth/internal/registry"
	"github.com/berthhq/berth/internal/registry/attachment"
	"github.com/berthhq/berth/internal/registry/cosign/cosigntest"
	"github.com/berthhq/berth/internal/registry/pushtoken"
	"github.com/berthhq/berth/internal/registry/registrytest"
	"github.com/berthhq/berth/internal/registry/remote"
)

const (
	spdx = `{"spdxVersion":"SPDX-2.3","packages":[{"name":"busybox","versionInfo":"1.36","licenseDeclared":"GPL-2.0-only"},
		{"name":"musl","versionInfo":"1.2","licenseDeclared":"NOASSERTION","licenseConcluded":"MIT"}]}`
	cyclone = `{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"torch","version":"2.9","licenses":[{"license":{"id":"BSD-3-Clause"}}]}]}`
	text    = "SPDXVersion: SPDX-2.2\nPackageName: zlib\nPackageVersion: 1.3\nPackageLicenseDeclared: Zlib\n\nPackageName: bzip2\n"
	trivy   = `{"SchemaVersion":2,"Results":[{"Vulnerabilities":[{"Severity":"HIGH"},{"Severity":"HIGH"},{"Severity":"LOW"}]},{"Vulnerabilities":null}]}`
	clean   = `{"SchemaVersion":2,"ArtifactName":"x"}`
	grype   = `{"matches":[{"vulnerability":{"severity":"Critical"}},{"vulnerability":{"severity":"Negligible"}},{"vulnerability":{"severity":"?"}}]}`
	harbor  = `{"generated_at":"2026-01-01","vulnerabilities":[{"severity":"Medium"}]}`
	sarif   = `{"runs":[{"tool":{"driver":{"name":"x","rules":[{"id":"A","properties":{"security-severity":"9.8"}},{"id":"B","properties":{"tags":["x","HIGH"]}}]}},
		"results":[{"ruleId":"A"},{"ruleId":"B"},{"ruleId":"C","level":"warning"}]}]}`
)

// Each document is read in its format, as it is and inside the attestation of a key.
func TestFormats(t *testing.T) {
	key := cosigntest.NewECDSA(t)
	for name, c := range map[string]struct {
		kind, content string
		want          attachment.Attachment
	}{
		"SPDX":          {"application/spdx+json", spdx, sbom("SPDX 2.3", "busybox 1.36 GPL-2.0-only", "musl 1.2 MIT")},
		"SPDX as text":  {"text/spdx", text, sbom("SPDX 2.2", "zlib 1.3 Zlib", "bzip2  ")},
		"CycloneDX":     {"application/vnd.cyclonedx+json", cyclone, sbom("CycloneDX 1.6", "torch 2.9 BSD-3-Clause")},
		"Trivy":         {"application/vnd.aquasec.trivy.report+json", trivy, found("Trivy", map[string]int{"HIGH": 2, "LOW": 1})},
		"Trivy, clean":  {"application/json", clean, found("Trivy", nil)},
		"Grype":         {"application/json", grype, found("Grype", map[string]int{"CRITICAL": 1, "LOW": 1, "UNKNOWN": 1})},
		"Harbor":        {"application/vnd.security.vulnerability.report; version=1.1", harbor, found("Harbor", map[string]int{"MEDIUM": 1})},
		"SARIF":         {"application/sarif+json", sarif, found("SARIF", map[string]int{"CRITICAL": 1, "HIGH": 1, "MEDIUM": 1})},
		"broken SBOM":   {"application/spdx+json", "{", attachment.Attachment{Kind: attachment.SBOM, Problem: "JSON"}},
		"another":       {"text/plain", "hello", attachment.Attachment{Kind: attachment.Other}},
		"signed SPDX":   {"application/vnd.dev.sigstore.bundle.v0.3+json", string(key.Bundle(t, zero, "https://spdx.dev/Document", json.RawMessage(spdx))), sbom("SPDX 2.3", "busybox 1.36 GPL-2.0-only", "musl 1.2 MIT")},
		"signed report": {"application/vnd.dev.sigstore.bundle.v0.3+json", string(key.Bundle(t, zero, "cosign.sigstore.dev/attestation/vuln/v1", map[string]any{"scanners": []any{map[string]any{"result": json.RawMessage(trivy)}}})), found("Trivy", map[string]int{"HIGH": 2, "LOW": 1})},
		"a signature":   {"application/vnd.dev.sigstore.bundle.v0.3+json", string(key.Bundle(t, zero, "https://sigstore.dev/cosign/sign/v1", map[string]any{})), attachment.Attachment{Kind: attachment.Signature, Format: "sigstore bundle"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := list(t, c.kind, []byte(c.content))
			if len(got) != 1 {
				t.Fatalf("attachments: %+v", got)
			}
			if !strings.Contains(got[0].Problem, c.want.Problem) || (got[0].Problem == "") != (c.want.Problem == "") {
				t.Errorf("problem is %q", got[0].Problem)
			}
			got[0].Type, got[0].Digest, got[0].Size, got[0].Problem, c.want.Problem = "", "", 0, "", ""
			if d := cmp.Diff(c.want, got[0]); d != "" {
				t.Error(d)
			}
		})
	}
}

const zero = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

func sbom(format string, packages ...string) attachment.Attachment {
	a := attachment.Attachment{Kind: attachment.SBOM, Format: format}
	for _, p := range packages {
		f := strings.Split(p, " ")
		a.Packages = append(a.Packages, attachment.Package{Name: f[0], Version: f[1], License: f[2]})
	}
	return a
}

func found(format string, n map[string]int) attachment.Attachment {
	return attachment.Attachment{Kind: attachment.Vulnerabilities, Format: format, Severity: n}
}

// list attaches a document to an image of an embedded registry and reads it.
func list(t *testing.T, kind string, content []byte) []attachment.Attachment {
	t.Helper()
	key := pushtoken.Key("a key of push tokens that is long enough")
	_, host := registrytest.Serve(t, t.TempDir(), func(r *registry.Registry) { r.AllowPush(key) })
	token, err := key.Sign(pushtoken.Grant{Repository: "tool", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	push := ggcr.WithAuth(&authn.Basic{Username: pushtoken.User, Password: token})
	repository, err := name.NewRepository(host+"/tool", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	img, err := random.Image(300, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := ggcr.Write(repository.Tag("1"), img, push); err != nil {
		t.Fatal(err)
	}
	subject, err := ggcr.Head(repository.Tag("1"))
	if err != nil {
		t.Fatal(err)
	}
	cosigntest.Refer(t, repository, *subject, content, kind, push)
	c := open(t, host)
	got, err := attachment.List(t.Context(), c, "tool", subject.Digest.String())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func open(t *testing.T, host string) *remote.Client {
	t.Helper()
	c, err := remote.Open(remote.Registry{Host: host, PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A registry without the referrers API has a tag with the list, and cosign's tags.
func TestRegistriesWithoutReferrers(t *testing.T) {
	img, err := mutate.Append(mutate.MediaType(mutate.ConfigMediaType(emptyOCI(t), types.OCIConfigJSON), types.OCIManifestSchema1),
		mutate.Addendum{Layer: static.NewLayer([]byte(spdx), "text/spdx+json")})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := img.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	tag := strings.Replace(zero, ":", "-", 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimPrefix(r.URL.Path, "/v2/tool/"); {
		case path == "manifests/"+tag:
			fmt.Fprintf(w, `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":%q,"size":%d}]}`, digest, len(manifest))
		case path == "manifests/"+digest.String(), path == "manifests/"+tag+".sbom":
			_, _ = w.Write(manifest)
		case strings.HasPrefix(path, "blobs/"):
			_, _ = w.Write([]byte(spdx))
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	got, err := attachment.List(t.Context(), open(t, strings.TrimPrefix(s.URL, "http://")), "tool", zero)
	if err != nil || len(got) != 2 || got[0].Kind != attachment.SBOM || len(got[1].Packages) != 2 {
		t.Errorf("attachments: %+v, %v", got, err)
	}
}

// What others attach cannot exhaust the manager, and a text of theirs is only text.
func TestHostileAttachments(t *testing.T) {
	deep := []byte(spdx)
	for range 6 {
		b, err := json.Marshal(map[string]any{"payloadType": "x", "payload": deep})
		if err != nil {
			t.Fatal(err)
		}
		deep = b
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"nested":    {deep, "nested more than"},
		"too large": {make([]byte, 17<<20), "more than 16777216"},
		"nothing":   {[]byte(`{}`), "unknown"},
		"an array":  {[]byte(`[1]`), "not JSON of a known format"},
	} {
		t.Run(name, func(t *testing.T) {
			got := list(t, "application/spdx+json", c.content)
			if len(got) != 1 || !strings.Contains(got[0].Problem, c.want) {
				t.Errorf("attachments: %+v", got)
			}
		})
	}
	got := list(t, "application/spdx+json", []byte(`{"spdxVersion":"SPDX-2.3","packages":[{"name":"a\u0000\u001b[31m`+strings.Repeat("x", 500)+`"}]}`))
	if n := got[0].Packages[0].Name; strings.ContainsAny(n, "\x00\x1b") || len(n) > 250 {
		t.Errorf("the name is shown as %q", n)
	}
	many := `{"bomFormat":"CycloneDX","components":[` + strings.Repeat(`{"name":"x"},`, 30_000) + `{"name":"x"}]}`
	if got := list(t, "application/vnd.cyclonedx+json", []byte(many)); len(got[0].Packages) != 20_000 {
		t.Errorf("%d packages are kept", len(got[0].Packages))
	}
}

func emptyOCI(t *testing.T) v1.Image {
	t.Helper()
	return mutate.MediaType(empty.Image, types.OCIManifestSchema1)
}
