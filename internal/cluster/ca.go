package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"math/big"
	"path/filepath"
	"regexp"
	"time"

	"github.com/containerd/errdefs"
)

// Roles of nodes.
const (
	RoleAgent   = "agent"
	RoleStorage = "storage"
)

const (
	roleManager = "manager"
	// serverName is in every manager's certificate: a node trusts the CA and the role,
	// independent of the address.
	serverName = "manager.berth.internal"

	authorityLife = 10 * 365 * 24 * time.Hour
	// NodeLife is the validity of a node's certificate, which is renewed when a third is left.
	NodeLife = 365 * 24 * time.Hour
	// clockSkew is how far a node's clock can be behind the manager's.
	clockSkew = time.Hour
)

// CA is the cluster's certificate authority, which all managers share.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// LoadOrCreateCA reads the CA from dir, or creates it. Managers that start at the same time
// with the same directory end up with the same CA.
func LoadOrCreateCA(dir string) (*CA, error) {
	path := filepath.Join(dir, "ca.pem")
	ca, err := loadCA(path)
	if !errdefs.IsNotFound(err) {
		return ca, err
	}
	if ca, err = newCA(); err != nil {
		return nil, fmt.Errorf("create certificate authority: %w", err)
	}
	err = createFile(path, encodePEM(ca.key, ca.cert))
	if errdefs.IsAlreadyExists(err) {
		return loadCA(path)
	}
	if err != nil {
		return nil, fmt.Errorf("store certificate authority: %w", err)
	}
	return ca, nil
}

func loadCA(path string) (*CA, error) {
	key, certs, err := readPEM(path)
	if err != nil {
		return nil, fmt.Errorf("load certificate authority: %w", err)
	}
	if len(certs) != 1 || !certs[0].IsCA || !key.PublicKey.Equal(certs[0].PublicKey) {
		return nil, fmt.Errorf("%s has no certificate authority: %w", path, errdefs.ErrDataLoss)
	}
	return &CA{cert: certs[0], key: key}, nil
}

func newCA() (*CA, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber:          newSerial(),
		Subject:               pkix.Name{CommonName: "Berth cluster"},
		NotBefore:             time.Now().Add(-clockSkew),
		NotAfter:              time.Now().Add(authorityLife),
		IsCA:                  true,
		MaxPathLenZero:        true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	cert, err := sign(t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &CA{cert: cert, key: key}, nil
}

// Fingerprint is the SHA-256 of the CA's certificate in hex. A join command contains it, so
// that a node can verify the cluster.
func (ca *CA) Fingerprint() string { return fingerprint(ca.cert) }

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// Issue signs a node's certificate request (PKCS#10, DER). It takes only the key from the
// request; the caller provides role and name, and enrolment identifies the join.
func (ca *CA) Issue(csr []byte, role, name, enrolment string, validity time.Duration) ([]byte, error) {
	if err := checkIdentity(role, name); err != nil {
		return nil, err
	}
	key, err := requestedKey(csr)
	if err != nil {
		return nil, err
	}
	cert, err := ca.issue(key, pkix.Name{CommonName: name, OrganizationalUnit: []string{role}, SerialNumber: enrolment},
		validity, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, fmt.Errorf("issue certificate for %s %s: %w", role, name, err)
	}
	return cert.Raw, nil
}

// server creates the certificate of one manager's listener. instance distinguishes the
// managers.
func (ca *CA) server(instance string) (*tls.Certificate, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	cert, err := ca.issue(key.Public(), pkix.Name{
		CommonName: serverName, OrganizationalUnit: []string{roleManager}, SerialNumber: instance,
	}, NodeLife, x509.ExtKeyUsageServerAuth, serverName)
	if err != nil {
		return nil, fmt.Errorf("issue the manager's certificate: %w", err)
	}
	// The CA's certificate is included for nodes that know only its fingerprint.
	return &tls.Certificate{
		Certificate: [][]byte{cert.Raw, ca.cert.Raw}, PrivateKey: key, Leaf: cert,
	}, nil
}

func (ca *CA) issue(key any, subject pkix.Name, validity time.Duration, use x509.ExtKeyUsage, names ...string) (*x509.Certificate, error) {
	end := time.Now().Add(validity)
	if end.After(ca.cert.NotAfter) {
		end = ca.cert.NotAfter
	}
	t := &x509.Certificate{
		SerialNumber: newSerial(),
		Subject:      subject,
		DNSNames:     names,
		NotBefore:    time.Now().Add(-clockSkew),
		NotAfter:     end,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{use},
	}
	return sign(t, ca.cert, key, ca.key)
}

func (ca *CA) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(ca.cert)
	return p
}

func sign(t, parent *x509.Certificate, key any, with *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key, with)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// newSerial returns 127 random bits: positive and unique.
func newSerial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b)
}

// newRequest creates a certificate request for key; the manager chooses the subject.
func newRequest(key *ecdsa.PrivateKey) ([]byte, error) {
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
}

// requestedKey checks that the sender of a request has its private key.
func requestedKey(csr []byte) (*ecdsa.PublicKey, error) {
	req, err := x509.ParseCertificateRequest(csr)
	if err == nil {
		err = req.CheckSignature()
	}
	if err != nil {
		return nil, fmt.Errorf("certificate request: %w: %w", errdefs.ErrInvalidArgument, err)
	}
	key, ok := req.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("certificate request: key is not ECDSA P-256: %w", errdefs.ErrInvalidArgument)
	}
	return key, nil
}

// A name is also used as a file name, a label and a word in logs.
var validName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$`)

func checkIdentity(role, name string) error {
	if role != RoleAgent && role != RoleStorage {
		return fmt.Errorf("%q is not a role of a node: %w", role, errdefs.ErrInvalidArgument)
	}
	if !validName.MatchString(name) {
		return fmt.Errorf("%q cannot be the name of a node: use at most 64 letters, digits and . _ -: %w", name, errdefs.ErrInvalidArgument)
	}
	return nil
}

// identityOf returns the role and the name in a certificate.
func identityOf(c *x509.Certificate) (role, name string, err error) {
	if len(c.Subject.OrganizationalUnit) == 1 {
		role = c.Subject.OrganizationalUnit[0]
	}
	return role, c.Subject.CommonName, checkIdentity(role, c.Subject.CommonName)
}

// EnrolmentOf identifies the join with a token, in every certificate that was issued for it.
func EnrolmentOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// enrolmentOf returns the join of a certificate, or "" for certificates of versions that did
// not record it.
func enrolmentOf(c *x509.Certificate) string { return c.Subject.SerialNumber }
