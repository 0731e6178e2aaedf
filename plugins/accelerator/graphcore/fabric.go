package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// ipuof is the host's IPUoF file: the IPUs of IPU-Machines that it can use. Unknown fields are
// copied unchanged.
type ipuof map[string]json.RawMessage

// entry is an IPU in the file.
type entry struct {
	raw json.RawMessage
	ip  string
	id  int
}

// readIPUoF reads the host's file.
func (m *machine) readIPUoF() (ipuof, []entry, error) {
	path := m.Root(m.config.IPUoF)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		for _, name := range driver.Names(path) {
			if strings.HasSuffix(name, ".conf") {
				path = filepath.Join(path, name)
				break
			}
		}
	}
	text, err := driver.Read(path)
	if err != nil {
		return nil, nil, fmt.Errorf("IPUoF file: %w", err)
	}
	var all ipuof
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, nil, errors.New("IPUoF file: it is not a JSON object")
	}
	if err := json.Unmarshal(all["devices"], &raw); err != nil {
		return nil, nil, errors.New("IPUoF file: it lists no devices")
	}
	var out []entry
	for i, r := range raw {
		var answer struct {
			IP driver.Scalar `json:"ip"`
			ID driver.Scalar `json:"device_id"`
		}
		id := 0
		err := json.Unmarshal(r, &answer)
		if err == nil {
			id, err = strconv.Atoi(string(answer.ID))
		}
		if err != nil || answer.IP == "" {
			return nil, nil, fmt.Errorf("IPUoF file: devices[%d] lacks ip or device_id", i)
		}
		out = append(out, entry{r, string(answer.IP), id})
	}
	return all, out, nil
}

// fabric has the information about IPUs that are reached over the network.
type fabric struct {
	hosts   map[int]string
	entries []entry
	doubt   error
}

func (m *machine) fabric(ctx context.Context) fabric {
	var f fabric
	var noHosts, noFile error
	f.hosts, noHosts = m.hosts(ctx)
	_, f.entries, noFile = m.readIPUoF()
	f.doubt = errors.Join(noHosts, noFile)
	return f
}

// place finds the entry of an IPU by its IPU-Machine and its number there.
func (f fabric) place(d *pb.Device, one ipu) {
	if f.doubt != nil {
		driver.Reject(d, "%v", f.doubt)
		return
	}
	host := f.hosts[one.whole("id")]
	if host == "" {
		driver.Reject(d, "gc-monitor does not report its IPU-Machine")
		return
	}
	index := one.whole("board ipu index")
	d.Attributes["ipu_machine"] = driver.Clean(host, 100)
	d.Groups = []string{"ipu-machine-" + driver.Clean(host, 100)}
	for _, e := range f.entries {
		if e.ip == host && e.id == index {
			return
		}
	}
	driver.Reject(d, "the IPUoF file has no entry of IPU %d of %s", index, host)
}

// filtered returns an IPUoF file with only the devices of a workload, in their order.
func (m *machine) filtered(devices []*pb.Device) ([]byte, error) {
	all, entries, err := m.readIPUoF()
	if err != nil {
		return nil, err
	}
	var chosen []json.RawMessage
	for _, d := range devices {
		a := d.GetAttributes()
		found := false
		for _, e := range entries {
			if e.ip == a["ipu_machine"] && strconv.Itoa(e.id) == a["board_index"] {
				chosen, found = append(chosen, e.raw), true
				break
			}
		}
		if !found {
			return nil, fmt.Errorf("device %s is no longer in the IPUoF file", d.GetId())
		}
	}
	if all["devices"], err = json.Marshal(chosen); err != nil {
		return nil, err
	}
	return json.MarshalIndent(all, "", "  ")
}
