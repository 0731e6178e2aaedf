package image_test

import (
	"strings"
	"testing"

	"github.com/berthhq/berth/ent"
	entimage "github.com/berthhq/berth/ent/image"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/registry/cosign/cosigntest"
	"github.com/berthhq/berth/internal/registry/notation/notationtest"
	"github.com/berthhq/berth/manager/image"
)

func (o *ownBed) require(t *testing.T, keys string) {
	t.Helper()
	_, err := o.UpdateRegistry(o.root, image.UpdateRegistryInput{ID: o.reg.ID, RegistrySettings: image.RegistrySettings{SignatureKeys: &keys}})
	if err != nil {
		t.Fatal(err)
	}
}

// A registry with keys registers only what they have signed, and sessions start only from that.
func TestSignaturesAreRequired(t *testing.T) {
	o := newOwnBed(t)
	mine, other := cosigntest.NewECDSA(t), cosigntest.NewECDSA(t)
	signed, wrong := o.put(t, "team/signed", "1"), o.put(t, "team/wrong", "1")
	o.put(t, "team/unsigned", "1")
	o.scan(t, o.reg) // without keys, all are registered
	ctx := o.As(t, o.A.Member)
	if _, err := o.Resolve(ctx, "team/unsigned:1"); err != nil {
		t.Fatalf("without keys: %v", err)
	}

	mine.Sign(t, o.repository(t, "team/signed"), signed.Digest.String(), o.push)
	other.Sign(t, o.repository(t, "team/wrong"), wrong.Digest.String(), o.push)
	o.require(t, mine.PEM)
	// Before the scan, the platform knows no signature.
	for _, name := range []string{"team/signed:1", "team/wrong:1", "team/unsigned:1"} {
		_, err := o.Resolve(ctx, name)
		want(t, err, problem.CodeFailedPrecondition, "image")
		if p, _ := problem.From(err); !strings.Contains(p.Message, name) || !strings.Contains(p.Message, "no signature by a key of registry own") {
			t.Errorf("%s: %s", name, p.Message)
		}
	}
	o.scan(t, o.reg)
	got := o.results(o.reg)
	if got["team/signed:1"] != "unchanged" || got["team/wrong:1"] != "failed" || got["team/unsigned:1"] != "failed" {
		t.Errorf("the scan says %v", got)
	}
	if _, err := o.Resolve(ctx, "team/signed:1"); err != nil {
		t.Errorf("the signed image: %v", err)
	}
	for _, name := range []string{"team/wrong:1", "team/unsigned:1"} {
		_, err := o.Resolve(ctx, name)
		want(t, err, problem.CodeFailedPrecondition, "image")
		_, err = o.RegisterImage(o.root, image.RegisterImageInput{Reference: o.host + "/" + name})
		want(t, err, problem.CodeFailedPrecondition, "reference")
	}

	// The tag moves to content that no one has signed: the image keeps its signed content.
	o.put(t, "team/signed", "1")
	o.scan(t, o.reg)
	if i := o.image(t, "team/signed:1"); i.Digest != signed.Digest.String() || i.SignedBy == "" {
		t.Errorf("the image took unsigned content: %v", i)
	}
	// A signature that is added later is seen, although the digest is the same.
	mine.Sign(t, o.repository(t, "team/wrong"), wrong.Digest.String(), o.push)
	o.scan(t, o.reg)
	if _, err := o.Resolve(ctx, "team/wrong:1"); err != nil {
		t.Errorf("the image that was signed later: %v", err)
	}
	// A key that is removed no longer counts, at once.
	o.require(t, other.PEM)
	_, err := o.Resolve(ctx, "team/wrong:1")
	want(t, err, problem.CodeFailedPrecondition, "image")
	// An image that a user made of a session has no signature, and needs none.
	own := o.image(t, "team/unsigned:1")
	o.Client.Image.UpdateOne(own).SetOwnerID(o.A.Member.ID).SetVisibility(entimage.VisibilityPrivate).ExecX(o.root)
	if _, err := o.Resolve(ctx, o.host+"/team/unsigned:1"); err != nil {
		t.Errorf("an image of the user: %v", err)
	}
}

// A registry with a certificate for Notation and a key of cosign accepts images that either has signed.
func TestSignaturesOfNotation(t *testing.T) {
	o := newOwnBed(t)
	vendor, stranger, key := notationtest.NewAuthority(t, "vendor"), notationtest.NewAuthority(t, "stranger"), cosigntest.NewECDSA(t)
	for path, by := range map[string]*notationtest.Authority{"team/vendor": &vendor, "team/stranger": &stranger, "team/unsigned": nil} {
		d := o.put(t, path, "1")
		if by != nil {
			notationtest.Attach(t, o.repository(t, path), d, notationtest.JWS, by.Envelope(t, d, notationtest.JWS), o.push)
		}
	}
	own := o.put(t, "team/own", "1")
	key.Sign(t, o.repository(t, "team/own"), own.Digest.String(), o.push)
	o.require(t, key.PEM+vendor.PEM())
	o.scan(t, o.reg)
	got := o.results(o.reg)
	if got["team/vendor:1"] != "new" || got["team/own:1"] != "new" || got["team/stranger:1"] != "failed" || got["team/unsigned:1"] != "failed" {
		t.Errorf("the scan says %v", got)
	}
	ctx := o.As(t, o.A.Member)
	if _, err := o.Resolve(ctx, "team/vendor:1"); err != nil {
		t.Errorf("the image that Notation has signed: %v", err)
	}
	// A certificate that is removed no longer counts, at once.
	o.require(t, key.PEM)
	_, err := o.Resolve(ctx, "team/vendor:1")
	want(t, err, problem.CodeFailedPrecondition, "image")
	if _, err := o.Resolve(ctx, "team/own:1"); err != nil {
		t.Errorf("the image that cosign has signed: %v", err)
	}
}

func (o *ownBed) image(t *testing.T, name string) *ent.Image {
	t.Helper()
	i, err := o.Client.Image.Query().Where(entimage.Name(name)).Only(o.root)
	if err != nil {
		t.Fatalf("%s: %v; the scan says %v", name, err, o.results(o.reg))
	}
	return i
}

func TestSignatureKeysThatAreRefused(t *testing.T) {
	o := newOwnBed(t)
	for name, text := range map[string]string{
		"text": "hello", "private": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "long": strings.Repeat(cosigntest.NewECDSA(t).PEM, 300),
	} {
		_, err := o.UpdateRegistry(o.root, image.UpdateRegistryInput{ID: o.reg.ID, RegistrySettings: image.RegistrySettings{SignatureKeys: &text}})
		if err == nil {
			t.Errorf("%s keys are accepted", name)
		}
		want(t, err, problem.CodeInvalidArgument, "signatureKeys")
	}
}

// People see what is attached to an image, and one view costs the registry one answer.
func TestAttachments(t *testing.T) {
	o := newOwnBed(t)
	d := o.put(t, "team/tool", "1")
	repository := o.repository(t, "team/tool")
	cosigntest.Refer(t, repository, d, []byte(`{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"torch","version":"2.9"},{"name":"numpy","version":"2.3"}]}`), "application/vnd.cyclonedx+json", o.push)
	cosigntest.Refer(t, repository, d, []byte(`{"SchemaVersion":2,"Results":[{"Vulnerabilities":[{"Severity":"LOW"},{"Severity":"CRITICAL"}]}]}`), "application/vnd.aquasec.trivy.report+json", o.push)
	o.scan(t, o.reg)
	got, err := o.Attachments(o.As(t, o.A.Member), o.image(t, "team/tool:1").ID)
	if err != nil || len(got) != 2 {
		t.Fatalf("attachments: %v, %v", got, err)
	}
	search := "TORCH"
	packages, err := got[0].Packages(&search, nil)
	if err != nil || got[0].PackageCount() != 2 || len(packages) != 1 || packages[0].Version != "2.9" {
		t.Errorf("packages: %v, %v", packages, err)
	}
	most := 501
	if _, err := got[0].Packages(nil, &most); err == nil {
		t.Error("501 packages can be asked for")
	}
	if s := got[1].Severities(); len(s) != 2 || s[0].Severity != "CRITICAL" || s[1].Count != 1 {
		t.Errorf("severities: %v", s)
	}
	again, err := o.Attachments(o.As(t, o.A.Member), o.image(t, "team/tool:1").ID)
	if err != nil || len(again) != 2 || again[0].Attachment.Packages[0] != got[0].Attachment.Packages[0] {
		t.Errorf("the second view: %v, %v", again, err)
	}
}
