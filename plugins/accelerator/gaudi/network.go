package main

import (
	"encoding/json"
	"errors"
	"net"

	"github.com/berthhq/berth/plugins/accelerator"
	"github.com/berthhq/berth/plugins/accelerator/driver"
)

// inner marks a port that is connected to another device in the same machine.
const inner = "ff:ff:ff:ff:ff:ff"

// ports is an entry of macAddrInfo.json.
type ports struct {
	Address string   `json:"PCI_ID"`
	MACs    []string `json:"MAC_ADDR_LIST"`
}

// addresses returns the table of the external ports, or nil if no device has one.
func (m *machine) addresses(grants []accelerator.Grant) []byte {
	var table struct {
		Info []ports `json:"MAC_ADDR_INFO"`
	}
	out := false
	for _, g := range grants {
		of := ports{Address: g.Device.GetPciAddress()}
		for range products[m.pciDevice(of.Address)].portCount() {
			of.MACs = append(of.MACs, inner)
		}
		dir := m.host.Sys("bus/pci/devices", of.Address, "net")
		for _, name := range driver.Names(dir) {
			port, err := driver.Uint(dir, name, "dev_port")
			mac, bad := net.ParseMAC(driver.Text(dir, name, "address"))
			if err == nil && bad == nil && len(mac) == 6 && port < uint64(len(of.MACs)) {
				of.MACs[port], out = mac.String(), true
			}
		}
		table.Info = append(table.Info, of)
	}
	if !out {
		return nil
	}
	text, err := json.MarshalIndent(table, "", "  ")
	if err != nil {
		panic(err) // impossible: it contains only strings
	}
	return text
}

func (m *machine) pciDevice(address string) string {
	p, _ := m.host.PCIAt(address)
	return p.Device
}

func (p *product) portCount() int {
	if p == nil {
		return 0
	}
	return p.ports
}

// gaudinet returns the operator's table of addresses for routed networks.
func (m *machine) gaudinet() ([]byte, error) {
	text, err := driver.Read(m.host.Root("etc/habanalabs/gaudinet.json"))
	switch {
	case err != nil:
		return nil, err
	case text == "":
		return nil, errors.New("gaudinet.json is empty")
	case !json.Valid([]byte(text)):
		return nil, errors.New("gaudinet.json is not JSON")
	}
	return []byte(text + "\n"), nil
}
