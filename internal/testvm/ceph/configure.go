package ceph

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/uuid"
)

// configuration has placeholders for the directory, the cluster's id, the monitor and the size.
// Without replicas, usage equals the stored bytes. The variables $name are Ceph's.
const configuration = `[global]
fsid = %[2]s
mon_host = [v2:%[3]s]
public_network = 127.0.0.0/8
ms_bind_ipv6 = false
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
keyring = %[1]s/keyring
run_dir = %[1]s/run
admin_socket = %[1]s/run/$name.asok
log_file = %[1]s/log/$name
pid_file =
mon_data = %[1]s/mon
mgr_data = %[1]s/mgr
mds_data = %[1]s/mds
osd_data = %[1]s/osd
osd_objectstore = memstore
memstore_device_bytes = %[4]d
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_data_avail_warn = 1
mon_data_avail_crit = 0
mgr_initial_modules =
mgr_stats_period = 1
`

// configure writes the configuration and the map with the one monitor.
func configure(dir, monitor string) error {
	for _, name := range []string{"mon", "mgr", "mds", "osd", "run", logs} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	id := uuid.NewString()
	if err := os.WriteFile(filepath.Join(dir, "keyring"), nil, 0o600); err != nil {
		return err
	}
	text := fmt.Sprintf(configuration, dir, id, monitor, Size)
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
		return err
	}
	out, err := exec.Command("monmaptool", "--create", "--fsid", id, "--addv", "a", "[v2:"+monitor+"]", filepath.Join(dir, "monmap")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("monmaptool: %w: %s", err, out)
	}
	return nil
}

const file = "ceph.conf"
