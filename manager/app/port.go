package app

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/appport"
	"github.com/berthhq/berth/ent/session"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/store"
)

// ownerShare is the part of the ports, as a divisor, that the sessions of one owner can have.
const ownerShare = 4

// address returns the URL of an app that is opened, and assigns its port in port mode.
func (s *Service) address(ctx context.Context, p *Place) (string, error) {
	port := 0
	if r := s.ports(); r != nil {
		var err error
		if port, err = s.assign(ctx, r, p); err != nil {
			return "", err
		}
	}
	if a := s.Address(p.Target, port); a != "" {
		return a, nil
	}
	return "", problem.Unavailable("no gateway is running, so apps cannot be opened").RetryAfter(5 * time.Second)
}

// settle assigns a port to an app in port mode, because visitors without a login cannot request
// one.
func (s *Service) settle(ctx context.Context, p *Place) error {
	r := s.ports()
	if r == nil {
		return nil
	}
	_, err := s.assign(ctx, r, p)
	return err
}

// portOf returns the port of an app; 0 if it has none.
func (s *Service) portOf(ctx context.Context, t Target) (int, error) {
	if s.ports() == nil {
		return 0, nil
	}
	row, err := appPorts(s.Client, t).Only(viewer.SystemContext(ctx))
	if ent.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return row.Port, nil
}

func appPorts(c *ent.Client, t Target) *ent.AppPortQuery {
	return c.AppPort.Query().Where(appport.SessionID(t.Session), appport.App(t.App), appport.Kernel(t.Kernel))
}

// port returns the port of an app of a kernel; 0 if it has none.
func (k *kernelRow) port(app string) int {
	for _, p := range k.ports {
		if p.App == app && p.Kernel == k.index {
			return p.Port
		}
	}
	return 0
}

// At returns the app that has a port of the gateways. It reports false if there is none.
func (s *Service) At(ctx context.Context, port int) (t Target, ok bool, err error) {
	row, err := s.Client.AppPort.Query().Where(appport.Port(port)).Only(viewer.SystemContext(ctx))
	if ent.IsNotFound(err) {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	return Target{Session: row.SessionID, Kernel: row.Kernel, App: row.App}, true, nil
}

// assign returns the port of an app, and assigns one if it has none. An app keeps its port while
// its session lives.
func (s *Service) assign(ctx context.Context, r *Ports, p *Place) (port int, err error) {
	port, err = s.portOf(ctx, p.Target)
	if err != nil || r.Has(port) {
		return port, err
	}
	ctx = viewer.SystemContext(ctx)
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := store.Lock(ctx, tx, "app ports"); err != nil {
			return err
		}
		rows, err := tx.AppPort.Query().WithSession().All(ctx)
		if err != nil {
			return fmt.Errorf("read the ports of apps: %w", err)
		}
		c, err := choose(r, p, rows)
		if port = c.port; err != nil || c.has {
			return err
		}
		if _, err := tx.AppPort.Delete().Where(appport.IDIn(c.ends...)).Exec(ctx); err != nil {
			return fmt.Errorf("free the port of an app: %w", err)
		}
		err = tx.AppPort.Create().SetPort(port).SetSessionID(p.Target.Session).SetApp(p.App).SetKernel(p.Kernel).Exec(ctx)
		if err != nil {
			return fmt.Errorf("assign port %d to app %s: %w", port, p.App, err)
		}
		return nil
	})
	return port, err
}

// choice is the port for an app, either its current port or a free one, and the rows of ended
// sessions to delete for it.
type choice struct {
	port int
	has  bool
	ends []uuid.UUID
}

// choose returns the port for an app of a place. rows are the assigned ports of all apps. It
// prefers a free port that no app has had, then the one whose session ended first, because pages of
// the previous app have most likely been closed.
func choose(r *Ports, p *Place, rows []*ent.AppPort) (c choice, err error) {
	byPort := map[int]*ent.AppPort{}
	owned, most := 0, max(1, r.Size()/ownerShare)
	for _, row := range rows {
		byPort[row.Port] = row
		mine := row.SessionID == p.Target.Session && row.App == p.App && row.Kernel == p.Kernel
		switch of := row.Edges.Session; {
		case mine && r.Has(row.Port):
			return choice{port: row.Port, has: true}, nil
		case mine: // the port is outside of the configured range
			c.ends = append(c.ends, row.ID)
		case of.TerminatedAt == nil && of.OwnerID == p.Session.OwnerID:
			owned++
		}
	}
	if owned >= most {
		return c, problem.Exhausted("the sessions of their owner have %d apps open, of at most %d on ports: end a session", owned, most).
			WithField("app").WithLimit(strconv.Itoa(most))
	}
	var oldest *ent.AppPort
	for port := r.First; port <= r.Last; port++ {
		row := byPort[port]
		if row == nil {
			c.port = port
			return c, nil
		}
		ended := row.Edges.Session.TerminatedAt
		if ended != nil && (oldest == nil || ended.Before(*oldest.Edges.Session.TerminatedAt)) {
			oldest = row
		}
	}
	if oldest == nil {
		return c, problem.Exhausted("all %d ports for apps (%d-%d) belong to apps of sessions that have not ended", r.Size(), r.First, r.Last).
			WithField("app").WithLimit(strconv.Itoa(r.Size()))
	}
	c.port, c.ends = oldest.Port, append(c.ends, oldest.ID)
	return c, nil
}

// PortsInUse returns how many ports of a range belong to apps of live sessions.
func (s *Service) PortsInUse(ctx context.Context, r *Ports) (int, error) {
	return s.Client.AppPort.Query().
		Where(appport.PortGTE(r.First), appport.PortLTE(r.Last), appport.HasSessionWith(session.TerminatedAtIsNil())).
		Count(viewer.SystemContext(ctx))
}
