package notice

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/berthhq/berth/ent"
	entnotice "github.com/berthhq/berth/ent/notice"
	"github.com/berthhq/berth/ent/noticechannel"
	"github.com/berthhq/berth/ent/noticedelivery"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/noticekind"
)

// Deliver sends the deliveries that are due, to all channels at once and to each channel in the order of their time. A channel that
// fails is paused, with all of its deliveries behind the one that failed, so that a receiver that is back gets everything in order.
func (s *Service) Deliver(ctx context.Context) error {
	now := s.Now()
	rows, err := s.Client.QueryContext(ctx, `SELECT DISTINCT d.channel_id FROM notice_deliveries d JOIN notice_channels c ON c.id = d.channel_id
WHERE d.status = 'waiting' AND d.due_at <= $1 AND (c.paused_until IS NULL OR c.paused_until <= $1)`, now)
	if err != nil {
		return fmt.Errorf("read channels: %w", err)
	}
	defer rows.Close()
	var ids []uuid.UUID
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			return fmt.Errorf("read channels: %w", err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read channels: %w", err)
	}
	rows.Close()
	s.measureQueue(ctx, now)
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, id := range ids {
		g.Go(func() error { return s.empty(ctx, id) })
	}
	return g.Wait()
}

// empty sends what is due to one channel, until one delivery fails or half of the lease is over.
func (s *Service) empty(ctx context.Context, id uuid.UUID) error {
	c, err := s.lease(ctx, id)
	if err != nil || c == nil {
		return err
	}
	if ok, err := s.receives(ctx, c); err != nil || !ok {
		return err
	}
	for begun := time.Now(); time.Since(begun) < lease/2; {
		d, err := s.Client.NoticeDelivery.Query().Where(noticedelivery.ChannelID(id), noticedelivery.StatusEQ(noticedelivery.StatusWaiting)).
			Order(noticedelivery.ByDueAt(), noticedelivery.ByID()).First(ctx)
		if ent.IsNotFound(err) || err == nil && d.DueAt.After(s.Now()) {
			break
		}
		if err != nil {
			return fmt.Errorf("read delivery: %w", err)
		}
		ok, err := s.attempt(ctx, c, d)
		if err != nil || !ok {
			return err
		}
	}
	return s.resume(ctx, c)
}

// lease takes the channel, so that no other manager sends to it; nil if another one has it. A lease that ends early, because its
// manager was killed, makes the same deliveries be sent again with the same ids.
func (s *Service) lease(ctx context.Context, id uuid.UUID) (*ent.NoticeChannel, error) {
	now := s.Now()
	n, err := s.Client.NoticeChannel.Update().Where(noticechannel.ID(id), noticechannel.Or(noticechannel.PausedUntilIsNil(), noticechannel.PausedUntilLTE(now))).
		SetPausedUntil(now.Add(lease)).Save(ctx)
	if err != nil || n == 0 {
		return nil, err
	}
	c, err := s.Client.NoticeChannel.Get(ctx, id)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return c, err
}

func (s *Service) resume(ctx context.Context, c *ent.NoticeChannel) error {
	return s.Client.NoticeChannel.Update().Where(noticechannel.ID(c.ID)).ClearPausedUntil().Exec(ctx)
}

// receives reports whether the channel is enabled and its owner is active. Otherwise its deliveries are dropped.
func (s *Service) receives(ctx context.Context, c *ent.NoticeChannel) (bool, error) {
	why := ""
	if !c.Enabled {
		why = "the channel is disabled"
	} else if c.UserID != nil {
		active, err := s.Client.User.Query().Where(user.ID(*c.UserID), user.StatusEQ(user.StatusActive)).Exist(ctx)
		if err != nil {
			return false, fmt.Errorf("read the owner of a channel: %w", err)
		}
		if !active {
			why = "the person is not active"
		}
	}
	if why == "" {
		return true, nil
	}
	if err := s.drop(ctx, s.Client.NoticeDelivery, c.ID, why); err != nil {
		return false, err
	}
	return false, s.resume(ctx, c)
}

// drop drops everything that waits for a channel.
func (s *Service) drop(ctx context.Context, in *ent.NoticeDeliveryClient, channel uuid.UUID, why string) error {
	err := in.Update().Where(noticedelivery.ChannelID(channel), noticedelivery.StatusEQ(noticedelivery.StatusWaiting)).
		SetStatus(noticedelivery.StatusDropped).SetMessage(why).Exec(ctx)
	if err != nil {
		return fmt.Errorf("drop deliveries: %w", err)
	}
	return nil
}

// attempt sends one delivery, and reports whether the next one can follow.
func (s *Service) attempt(ctx context.Context, c *ent.NoticeChannel, d *ent.NoticeDelivery) (bool, error) {
	n, err := s.Client.Notice.Query().Where(entnotice.ID(d.NoticeID)).Only(ctx)
	if ent.IsNotFound(err) {
		return true, d.Update().SetStatus(noticedelivery.StatusDropped).SetMessage("the notice was removed after its retention time").Exec(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("read notice: %w", err)
	}
	if failed := s.send(ctx, c, d.ID, n); failed != nil {
		if ctx.Err() != nil {
			return false, ctx.Err() // the attempt was interrupted: the lease ends, and it is repeated
		}
		return s.failed(ctx, c, d, failed.Error())
	}
	s.count(d.Type, "sent")
	if err := d.Update().SetStatus(noticedelivery.StatusSent).SetSentAt(s.Now()).AddAttempts(1).SetMessage("").Exec(ctx); err != nil {
		return false, fmt.Errorf("store delivery: %w", err)
	}
	if c.FailingSince == nil {
		return true, nil
	}
	c.FailingSince = nil
	return true, s.Client.NoticeChannel.Update().Where(noticechannel.ID(c.ID)).ClearFailingSince().Exec(ctx)
}

// failed stores a failed attempt, pauses the channel, and turns what waited too long into dead letters. After days of failures it
// disables the channel. It reports whether the next delivery can follow: only if this one is dead, and then the next pauses.
func (s *Service) failed(ctx context.Context, c *ent.NoticeChannel, d *ent.NoticeDelivery, why string) (bool, error) {
	s.count(d.Type, "failed")
	now := s.Now()
	since := now
	if c.FailingSince != nil {
		since = *c.FailingSince
	}
	if err := d.Update().AddAttempts(1).SetMessage(why).Exec(ctx); err != nil {
		return false, fmt.Errorf("store delivery: %w", err)
	}
	dead, err := s.Client.NoticeDelivery.Update().Where(noticedelivery.ChannelID(c.ID), noticedelivery.StatusEQ(noticedelivery.StatusWaiting), noticedelivery.ExpiresAtLTE(now)).
		SetStatus(noticedelivery.StatusDead).SetMessage(why).Save(ctx)
	if err != nil {
		return false, fmt.Errorf("store dead letters: %w", err)
	}
	s.meter.deliveries.WithLabelValues(string(d.Type), "dead").Add(float64(dead))
	// The pause is as long as the failure has lasted, so it doubles with each attempt.
	pause := min(max(now.Sub(since), minBackoff), maxBackoff)
	up := s.Client.NoticeChannel.Update().Where(noticechannel.ID(c.ID)).SetFailingSince(since).SetPausedUntil(now.Add(pause))
	disable := now.Sub(since) >= failingDays*24*time.Hour
	if disable {
		up.SetEnabled(false).SetDisabledReason(fmt.Sprintf("its deliveries have failed since %s: %s", since.Format(time.RFC3339), why)).ClearPausedUntil()
	}
	if err := up.Exec(ctx); err != nil || !disable {
		return false, err
	}
	if err := s.drop(ctx, s.Client.NoticeDelivery, c.ID, "the channel is disabled"); err != nil {
		return false, err
	}
	return false, s.notifyDisabled(ctx, c, why)
}

// notifyDisabled notifies the owner of a channel, or all superadmins for one of the cluster, that it was disabled.
func (s *Service) notifyDisabled(ctx context.Context, c *ent.NoticeChannel, why string) error {
	users := []uuid.UUID{}
	if c.UserID != nil {
		users = append(users, *c.UserID)
	} else {
		admins, err := s.Client.User.Query().Where(user.RoleEQ(user.RoleSuperadmin)).Order(user.ByID(sql.OrderAsc())).IDs(ctx)
		if err != nil {
			return fmt.Errorf("read superadmins: %w", err)
		}
		users = admins
	}
	return s.Post(ctx, Event{Key: "channel " + c.ID.String() + " " + s.Now().Format(time.RFC3339), Kind: noticekind.ChannelDisabled, Users: users,
		Parameters: map[string]string{"name": c.Name, "days": strconv.Itoa(failingDays), "reason": why}})
}
