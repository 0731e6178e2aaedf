package agents

import (
	"context"
	"fmt"
	"strings"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/imagecopy"
	"github.com/berthhq/berth/internal/clock"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/viewer"
)

// progressEvery is the interval at which the progress of a pull is stored, that of heartbeats: so a pull costs the
// database as much as the agent itself.
const progressEvery = 3 * time.Second

// Pull makes an image present on an agent, and returns when it is. The agent may fetch its parts from other agents
// meanwhile. The progress is stored for people.
func (s *Service) Pull(ctx context.Context, name string, r *agentpb.PullImageRequest) error {
	c, err := s.conn(name)
	if err != nil {
		return err
	}
	ended := func() {}
	if s.Layers != nil && r.Digest != "" {
		ended = s.Layers.Pulling(name, r.Digest)
	}
	defer func() { ended() }()
	begun, saved, total := clock.Now(), time.Time{}, int64(0)
	stream, err := c.rpc.PullImage(ctx, r)
	for err == nil {
		var m *agentpb.PullProgress
		if m, err = stream.Recv(); err != nil {
			break
		}
		if m.Done {
			if r.Lazy { // the layers follow
				time.AfterFunc(lazyPermit, ended)
				ended = func() {}
			}
			s.addImage(c, r.Reference, m.Digest)
			s.pulled(c, total, clock.Now().Sub(begun))
			return nil
		}
		total = m.TotalBytes
		if now := clock.Now(); now.Sub(saved) >= progressEvery && now.Sub(begun) >= progressAfter {
			saved = now
			s.pulling(ctx, c, r, m)
		}
	}
	if !saved.IsZero() {
		s.notPulled(context.WithoutCancel(ctx), c, r)
	}
	return errgrpc.ToNative(err)
}

// lazyPermit is the time in which an agent can fetch the layers of an image from others after a session has
// started from it. Later ones come from the registry.
const lazyPermit = 30 * time.Minute

// pulled measures how fast an agent pulls images. Small images say nothing about that.
func (s *Service) pulled(c *conn, bytes int64, took time.Duration) {
	if bytes < measurable || took <= 0 {
		return
	}
	rate := float64(bytes) / took.Seconds()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.rate == 0 {
		c.rate = rate
	}
	c.rate += (rate - c.rate) / 4 // a moving average
}

const measurable = 16 << 20

// Lacks returns the bytes of an image that an agent must fetch to have it; known is false if no connected agent has the
// image.
func (s *Service) Lacks(agent, reference string) (bytes int64, known bool) {
	if s.Layers == nil {
		return 0, false
	}
	return s.Layers.Missing(agent, reference)
}

// Missing describes what an agent must fetch of an image, and how long that takes if the agent has pulled images
// before; "" if it is not known.
func (s *Service) Missing(agent, reference string) string {
	bytes, known := s.Lacks(agent, reference)
	c, err := s.conn(agent)
	if !known || err != nil {
		return ""
	}
	text := fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20)
	s.mu.Lock()
	rate := c.rate
	s.mu.Unlock()
	if rate > 0 {
		text += fmt.Sprintf(", about %d s", int(float64(bytes)/rate)+1)
	}
	return text
}

// progressAfter is the time after which the progress of a pull is stored: short ones are not worth it.
const progressAfter = time.Second

// pulling stores the progress of a pull. An error does not stop the pull.
func (s *Service) pulling(ctx context.Context, c *conn, r *agentpb.PullImageRequest, m *agentpb.PullProgress) {
	ctx = viewer.SystemContext(ctx)
	id := s.idOf(c)
	if id == uuid.Nil {
		return
	}
	err := s.Client.ImageCopy.Create().SetAgentID(id).SetReference(r.Reference).SetDigest(r.Digest).SetState(imagecopy.StatePulling).
		SetDoneBytes(m.DoneBytes).SetTotalBytes(m.TotalBytes).
		OnConflictColumns(imagecopy.FieldAgentID, imagecopy.FieldReference).
		Update(func(u *ent.ImageCopyUpsert) { u.UpdateDigest().UpdateState().UpdateDoneBytes().UpdateTotalBytes() }).Exec(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.Logger.Warn("progress of a pull not stored", "agent", c.peer.Name, "image", r.Reference, "error", err)
		}
		return
	}
	s.Bus.Publish(ctx, event.Event{Topic: event.Agent, ID: id, By: event.BySamples})
}

// notPulled removes the progress of a pull that has failed. The next report repairs what this cannot.
func (s *Service) notPulled(ctx context.Context, c *conn, r *agentpb.PullImageRequest) {
	ctx, cancel := context.WithTimeout(viewer.SystemContext(ctx), 5*time.Second)
	defer cancel()
	_, err := s.Client.ImageCopy.Delete().Where(imagecopy.AgentID(s.idOf(c)), imagecopy.Reference(r.Reference), imagecopy.StateEQ(imagecopy.StatePulling)).Exec(ctx)
	if err != nil {
		s.Logger.Warn("progress of a pull not removed", "agent", c.peer.Name, "image", r.Reference, "error", err)
	}
}

func (s *Service) idOf(c *conn) uuid.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.id
}

// recordImages stores the images of an agent. Those of a pull that has ended are replaced; a pull that runs stores its
// progress again within progressEvery.
func recordImages(ctx context.Context, tx *ent.Tx, agent uuid.UUID, contents []*agentpb.ImageContent) error {
	stored, err := tx.ImageCopy.Query().Where(imagecopy.AgentID(agent)).All(ctx)
	if err != nil {
		return fmt.Errorf("read images of agent: %w", err)
	}
	old := make(map[string]*ent.ImageCopy, len(stored))
	for _, c := range stored {
		old[c.Reference] = c
	}
	var rows []*ent.ImageCopyCreate
	for _, c := range contents {
		now := copyOf(c)
		before := old[c.Reference]
		delete(old, c.Reference)
		if before != nil && before.State == now.State && before.Digest == now.Digest && before.TotalBytes == now.TotalBytes && before.DoneBytes == now.DoneBytes && before.Message == now.Message && sameTime(before.UsedAt, now.UsedAt) {
			continue
		}
		rows = append(rows, tx.ImageCopy.Create().SetAgentID(agent).SetReference(c.Reference).SetDigest(now.Digest).SetState(now.State).
			SetDoneBytes(now.DoneBytes).SetTotalBytes(now.TotalBytes).SetMessage(now.Message).SetNillableUsedAt(now.UsedAt))
	}
	var gone []uuid.UUID
	for _, c := range old {
		gone = append(gone, c.ID)
	}
	if len(gone) > 0 {
		if _, err := tx.ImageCopy.Delete().Where(imagecopy.IDIn(gone...)).Exec(ctx); err != nil {
			return fmt.Errorf("remove images of agent: %w", err)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	err = tx.ImageCopy.CreateBulk(rows...).OnConflict(sql.ConflictColumns(imagecopy.FieldAgentID, imagecopy.FieldReference)).
		Update(func(u *ent.ImageCopyUpsert) {
			u.UpdateDigest().UpdateState().UpdateDoneBytes().UpdateTotalBytes().UpdateMessage().UpdateUsedAt()
		}).Exec(ctx)
	if err != nil {
		return fmt.Errorf("store images of agent: %w", err)
	}
	return nil
}

// copyOf returns the row of an image that is present.
func copyOf(c *agentpb.ImageContent) ent.ImageCopy {
	row := ent.ImageCopy{Digest: digestOf(c), State: imagecopy.StatePresent, Message: bounded(c.Message)}
	for _, l := range c.Layers {
		row.TotalBytes += l.Size
	}
	row.DoneBytes = row.TotalBytes
	if c.TotalBytes > 0 {
		row.State, row.DoneBytes, row.TotalBytes = imagecopy.StatePartial, c.LocalBytes, c.TotalBytes
	}
	if c.UsedUnixMs > 0 {
		at := time.UnixMilli(c.UsedUnixMs).UTC()
		row.UsedAt = &at
	}
	return row
}

// maxMessage limits a message of an agent, in bytes.
const maxMessage = 1000

func bounded(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

func digestOf(c *agentpb.ImageContent) string { return fmt.Sprintf("sha256:%x", c.Digest) }

func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}
