package manager

import (
	"fmt"
	"strings"
	"time"

	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/manager/notice"
	"github.com/berthhq/berth/manager/notice/mail"
)

// wireNotices creates the service that notifies people.
func (m *Manager) wireNotices() error {
	reach, err := egress.Parse(m.cfg.NoticeNetworks)
	if err != nil {
		return fmt.Errorf("networks of notices: %w", err)
	}
	site := strings.TrimRight(m.cfg.PublicURL, "/")
	server := m.cfg.Mail
	server.Site = site
	sender, err := mail.New(server)
	if err != nil {
		return err
	}
	m.notices = notice.New(notice.Config{
		Client: m.client, Bus: m.bus, Keys: m.keys, Egress: reach, Mail: sender, PublicURL: site,
		Certificates: func() map[string]time.Time { return map[string]time.Time{"the cluster's CA": m.ca.Expires()} },
		Registry:     m.meter(), Logger: m.log,
	})
	return nil
}
