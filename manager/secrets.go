package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/clusteridentity"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/leader"
)

const (
	// identityName is the one row of cluster_identities.
	identityName = "cluster"
	// canary is the plaintext of the encrypted value in the row.
	canary = "the key ring of this cluster"
)

// openSecrets reads the cluster's CA and key ring. The first manager of a cluster creates them
// and stores their identity in the database; every other manager must have the same.
func (m *Manager) openSecrets(ctx context.Context) (err error) {
	ctx = viewer.SystemContext(ctx)
	row, err := m.client.ClusterIdentity.Query().Where(clusteridentity.Name(identityName)).Only(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return fmt.Errorf("read the cluster's identity: %w", err)
	}
	if row != nil {
		if missing := missingSecrets(m.cfg.Secrets); missing != "" {
			return m.foreign(ctx, missing+" is missing", row)
		}
	}
	if m.keys, err = seal.Load(m.cfg.Secrets); err != nil {
		return err
	}
	if m.ca, err = cluster.LoadOrCreateCA(m.cfg.Secrets); err != nil {
		return err
	}
	if row == nil {
		if row, err = m.identify(ctx); err != nil {
			return err
		}
	}
	if got := m.ca.Fingerprint(); got != row.CaFingerprint {
		return m.foreign(ctx, "ca.pem is another authority, with the fingerprint "+got, row)
	}
	if text, err := m.keys.Open(seal.Canary, row.CanarySealed); err != nil || string(text) != canary {
		return m.foreign(ctx, "seal.keys cannot decrypt the secrets of the cluster", row)
	}
	return nil
}

// identify stores the secrets as those of the cluster, unless another manager was faster.
func (m *Manager) identify(ctx context.Context) (*ent.ClusterIdentity, error) {
	err := m.client.ClusterIdentity.Create().SetName(identityName).SetCaFingerprint(m.ca.Fingerprint()).
		SetCanarySealed(m.keys.Seal(seal.Canary, []byte(canary))).OnConflictColumns(clusteridentity.FieldName).Ignore().Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("store the cluster's identity: %w", err)
	}
	row, err := m.client.ClusterIdentity.Query().Where(clusteridentity.Name(identityName)).Only(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's identity: %w", err)
	}
	return row, nil
}

// missingSecrets returns the first missing file that every manager of an existing cluster has.
func missingSecrets(dir string) string {
	for _, name := range []string{"ca.pem", "seal.keys", "ticket.keys"} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, os.ErrNotExist) {
			return name
		}
	}
	return ""
}

// foreign explains which secrets belong to the cluster, and where they are.
func (m *Manager) foreign(ctx context.Context, what string, row *ent.ClusterIdentity) error {
	from := "a manager of this cluster"
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if res, err := m.etcd.Get(ctx, leader.ManagersKey, clientv3.WithPrefix()); err == nil && len(res.Kvs) > 0 {
		var at []string
		for _, kv := range res.Kvs {
			at = append(at, string(kv.Value))
		}
		from = "the manager at " + strings.Join(at, " or ")
	}
	return fmt.Errorf("--secrets %s does not contain the secrets of this cluster, whose authority has the fingerprint %s: %s. "+
		"Copy ca.pem, seal.keys and ticket.keys from the --secrets directory of %s into it: %w",
		m.cfg.Secrets, row.CaFingerprint, what, from, errdefs.ErrFailedPrecondition)
}
