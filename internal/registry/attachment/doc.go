// Package attachment reads what a registry has attached to an image: signatures, lists of packages (SBOM)
// in the formats SPDX and CycloneDX, and reports of vulnerabilities by Trivy, Grype and in SARIF, also
// inside attestations. It shows them and makes none.
package attachment
