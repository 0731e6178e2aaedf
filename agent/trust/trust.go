// Package trust gives containers the certificate authorities that a site has in addition to the public
// ones, such as that of a proxy that inspects TLS.
package trust

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Path is the bundle in a container. It is below /dev, which is a file system of the container's own, so
// that no mount point remains in an image that is built or saved.
const Path = "/dev/berth-ca.crt"

// variables are read by programs on OpenSSL and Go, by Python's requests, pip, curl, Node.js, Git and Cargo.
var variables = []string{
	"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
}

// Check returns an error unless a file is a PEM bundle of certificates.
func Check(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("CA bundle: %w", err)
	}
	count := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("CA bundle %s contains a block of type %q, and containers can read the file: %w", file, block.Type, errdefs.ErrInvalidArgument)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("CA bundle %s: certificate %d: %w: %w", file, count+1, err, errdefs.ErrInvalidArgument)
		}
		count++
	}
	if count == 0 {
		return fmt.Errorf("CA bundle %s contains no PEM certificate: %w", file, errdefs.ErrInvalidArgument)
	}
	return nil
}

// Add adds a bundle of the host to a container; without a file, it changes nothing. Variables that the
// container has already keep their values.
func Add(spec *specs.Spec, file string) {
	if file == "" {
		return
	}
	spec.Mounts = append(spec.Mounts, Mount(file))
	for _, name := range variables {
		if !slices.ContainsFunc(spec.Process.Env, func(v string) bool { return strings.HasPrefix(v, name+"=") }) {
			spec.Process.Env = append(spec.Process.Env, name+"="+Path)
		}
	}
}

// Mount returns the mount of a bundle of the host.
func Mount(file string) specs.Mount {
	return specs.Mount{Type: "bind", Source: file, Destination: Path, Options: []string{"rbind", "rprivate", "ro", "nosuid", "nodev", "noexec"}}
}

// Variables returns the names of the variables that have Path as their value.
func Variables() []string { return slices.Clone(variables) }
