package attachment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// document is every format at once: fields that a format does not have stay empty.
type document struct {
	// SPDX
	SPDXVersion string `json:"spdxVersion"`
	Packages    []struct {
		Name     string `json:"name"`
		Version  string `json:"versionInfo"`
		License  string `json:"licenseDeclared"`
		Declared string `json:"licenseConcluded"`
	} `json:"packages"`
	// CycloneDX
	BOMFormat   string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Components  []struct {
		Name     string `json:"name"`
		Version  string `json:"version"`
		Licenses []struct {
			License struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			} `json:"license"`
			Expression string `json:"expression"`
		} `json:"licenses"`
	} `json:"components"`
	// Trivy
	Results []struct {
		Vulnerabilities []struct {
			Severity string `json:"Severity"`
		} `json:"Vulnerabilities"`
	} `json:"Results"`
	SchemaVersion int `json:"SchemaVersion"`
	// Harbor's report
	Vulnerabilities []struct {
		Severity string `json:"severity"`
	} `json:"vulnerabilities"`
	// Grype
	Matches []struct {
		Vulnerability struct {
			Severity string `json:"severity"`
		} `json:"vulnerability"`
	} `json:"matches"`
	// SARIF
	Runs []sarif `json:"runs"`
	// DSSE envelopes, in-toto statements and sigstore bundles
	DSSE          *document       `json:"dsseEnvelope"`
	PayloadType   string          `json:"payloadType"`
	Payload       []byte          `json:"payload"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
	Scanners      []struct {
		Result json.RawMessage `json:"result"`
	} `json:"scanners"`
}

type sarif struct {
	Tool struct {
		Driver struct {
			Name  string `json:"name"`
			Rules []struct {
				ID         string `json:"id"`
				Properties struct {
					Severity string   `json:"security-severity"`
					Tags     []string `json:"tags"`
				} `json:"properties"`
			} `json:"rules"`
		} `json:"driver"`
	} `json:"tool"`
	Results []struct {
		RuleID string `json:"ruleId"`
		Level  string `json:"level"`
	} `json:"results"`
}

// maxNesting limits documents in documents.
const maxNesting = 4

var (
	errUnknown = errors.New("the format of the document is unknown")
	errNested  = fmt.Errorf("documents are nested more than %d times", maxNesting)
)

// read reads a document of any format.
func (a *Attachment) read(content []byte) error { return a.readAt(content, 0) }

func (a *Attachment) readAt(content []byte, depth int) error {
	if depth > maxNesting {
		return errNested
	}
	if strings.HasPrefix(string(content[:min(len(content), 100)]), "SPDXVersion:") {
		return a.tagValue(content)
	}
	var d document
	if err := json.Unmarshal(content, &d); err != nil {
		return fmt.Errorf("the document is not JSON of a known format: %w", err)
	}
	if d.DSSE != nil {
		d = *d.DSSE
	}
	switch {
	case len(d.Payload) > 0:
		return a.readAt(d.Payload, depth+1)
	case d.PredicateType == signPredicate:
		a.Kind, a.Format = Signature, "sigstore bundle"
		return nil
	case len(d.Predicate) > 0:
		return a.readAt(d.Predicate, depth+1)
	case len(d.Scanners) > 0:
		return a.readAt(d.Scanners[0].Result, depth+1)
	}
	return a.take(&d)
}

// signPredicate is the type of a statement that is a signature and nothing else.
const signPredicate = "https://sigstore.dev/cosign/sign/v1"

// take fills the attachment from a document.
func (a *Attachment) take(d *document) error {
	switch {
	case d.SPDXVersion != "":
		a.sbom("SPDX " + strings.TrimPrefix(d.SPDXVersion, "SPDX-"))
		for _, p := range d.Packages {
			license := p.License
			if license == "" || license == "NOASSERTION" {
				license = p.Declared
			}
			a.add(Package{p.Name, p.Version, license})
		}
	case d.BOMFormat == "CycloneDX":
		a.sbom("CycloneDX " + d.SpecVersion)
		for _, c := range d.Components {
			var licenses []string
			for _, l := range c.Licenses {
				licenses = append(licenses, l.Expression+l.License.ID+l.License.Name)
			}
			a.add(Package{c.Name, c.Version, strings.Join(licenses, ", ")})
		}
	case d.Results != nil || d.SchemaVersion == 2:
		a.report("Trivy")
		for _, r := range d.Results {
			for _, v := range r.Vulnerabilities {
				a.count(v.Severity)
			}
		}
	case d.Matches != nil:
		a.report("Grype")
		for _, m := range d.Matches {
			a.count(m.Vulnerability.Severity)
		}
	case d.Vulnerabilities != nil:
		a.report("Harbor")
		for _, v := range d.Vulnerabilities {
			a.count(v.Severity)
		}
	case d.Runs != nil:
		a.report("SARIF")
		for _, r := range d.Runs {
			a.sarif(r)
		}
	default:
		return errUnknown
	}
	return nil
}

func (a *Attachment) sbom(format string)   { a.Kind, a.Format = SBOM, clean(format, 40) }
func (a *Attachment) report(format string) { a.Kind, a.Format = Vulnerabilities, format }

func (a *Attachment) add(p Package) {
	if len(a.Packages) < maxPackages {
		a.Packages = append(a.Packages, Package{clean(p.Name, 200), clean(p.Version, 100), clean(p.License, 200)})
	}
}

// severities are those that are shown. Other words count as UNKNOWN.
var severities = map[string]string{
	"CRITICAL": "CRITICAL", "HIGH": "HIGH", "MEDIUM": "MEDIUM", "LOW": "LOW", "NEGLIGIBLE": "LOW", "ERROR": "HIGH", "WARNING": "MEDIUM", "NOTE": "LOW",
}

func (a *Attachment) count(severity string) {
	if a.Severity == nil {
		a.Severity = map[string]int{}
	}
	name := severities[strings.ToUpper(severity)]
	if name == "" {
		name = "UNKNOWN"
	}
	a.Severity[name]++
}

// sarif counts the results of a run. Scanners give the severity as a tag or as a number of CVSS.
func (a *Attachment) sarif(r sarif) {
	rules := map[string]string{}
	for _, rule := range r.Tool.Driver.Rules {
		for _, t := range rule.Properties.Tags {
			if severities[t] != "" {
				rules[rule.ID] = t
			}
		}
		var score float64
		if _, err := fmt.Sscan(rule.Properties.Severity, &score); err == nil && rules[rule.ID] == "" {
			rules[rule.ID] = byScore(score)
		}
	}
	for _, result := range r.Results {
		if s := rules[result.RuleID]; s != "" {
			a.count(s)
			continue
		}
		a.count(result.Level)
	}
}

func byScore(s float64) string {
	switch {
	case s >= 9:
		return "CRITICAL"
	case s >= 7:
		return "HIGH"
	case s >= 4:
		return "MEDIUM"
	}
	return "LOW"
}

// tagValue reads SPDX in its text format.
func (a *Attachment) tagValue(content []byte) error {
	var p *Package
	flush := func() {
		if p != nil {
			a.add(*p)
		}
	}
	for line := range bytes.Lines(content) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), ": ")
		switch {
		case name == "SPDXVersion":
			a.sbom("SPDX " + strings.TrimPrefix(value, "SPDX-"))
		case name == "PackageName":
			flush()
			p = &Package{Name: value}
		case name == "PackageVersion" && p != nil:
			p.Version = value
		case name == "PackageLicenseDeclared" && p != nil:
			p.License = value
		}
	}
	flush()
	return nil
}

// clean makes text that a registry sent fit to be shown.
func clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r == 0x7f {
			return -1
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) > most {
		return string([]rune(s)[:most]) + "…"
	}
	return s
}
