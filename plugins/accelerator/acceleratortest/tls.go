package acceleratortest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"time"

	"github.com/berthhq/berth/plugins/accelerator"
	"github.com/berthhq/berth/plugins/suite"
)

// mutualTLS offers a client certificate. A plugin that responds with its own in the sixth field of
// the handshake must use TLS with it. A plugin may ignore the offer, because go-plugin's TLS works
// in Go only; its operator then disables TLS.
func mutualTLS(ctx context.Context, b *bench) error {
	cert, err := certificate()
	if err != nil {
		return err
	}
	line, _, err := b.program().Handshake(ctx, "PLUGIN_CLIENT_CERT="+cert)
	if err != nil {
		return err
	}
	if p := strings.Split(line, "|"); len(p) < 6 || p[5] == "" {
		return suite.Skip("it serves without TLS; the agent's configuration has to say so")
	}
	o := b.options()
	o.Plain = false
	c, err := accelerator.Launch(ctx, o, asking)
	if err != nil {
		return err
	}
	return c.Close()
}

func certificate() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), err
}
