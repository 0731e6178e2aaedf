package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/berthhq/berth/gateway"
	"github.com/berthhq/berth/manager/app"
)

// portFlags are the flags of port mode. They are the same for all roles that have a gateway.
type portFlags struct {
	ports string // [HOST:]FIRST-LAST
	url   string
}

// listen sets port mode in the configuration of a gateway, and listens on all ports of the range.
// host is the default interface.
func (p portFlags) listen(cfg *gateway.Config, host string) error {
	if p.ports == "" {
		if p.url != "" {
			return errors.New("--app-ports-url is given without --app-ports")
		}
		return nil
	}
	if p.url == "" {
		return errors.New("--app-ports and --app-ports-url are needed together")
	}
	named, r, err := parsePorts(p.ports)
	if err != nil {
		return err
	}
	if named != "" {
		host = named
	}
	r.URL, r.Page = strings.TrimSuffix(p.url, "/"), strings.TrimSuffix(cfg.PageURL, "/")
	cfg.Ports = r
	for port := r.First; port <= r.Last; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			for _, l := range cfg.PortListeners {
				l.Close()
			}
			return fmt.Errorf("--app-ports: %w", err)
		}
		cfg.PortListeners = append(cfg.PortListeners, l)
	}
	return nil
}

// parsePorts reads [HOST:]FIRST-LAST.
func parsePorts(text string) (host string, r *app.Ports, err error) {
	ports := text
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		host, ports = strings.Trim(text[:i], "[]"), text[i+1:]
	}
	first, last, ok := strings.Cut(ports, "-")
	r = &app.Ports{}
	if r.First, err = strconv.Atoi(first); err == nil && ok {
		r.Last, err = strconv.Atoi(last)
	}
	if err != nil || !ok {
		return "", nil, fmt.Errorf("--app-ports %q does not have the form FIRST-LAST or HOST:FIRST-LAST, such as 20000-20999", text)
	}
	if err := r.Check(); err != nil {
		return "", nil, fmt.Errorf("--app-ports: %w", err)
	}
	return host, r, nil
}
