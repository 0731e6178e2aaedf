package notice

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/noticechannel"
	"github.com/berthhq/berth/ent/noticedelivery"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/noticekind"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/notice/mail"
	"github.com/berthhq/berth/manager/permit"
	"github.com/berthhq/berth/manager/store"
)

// CreateNoticeChannel adds a channel of the viewer or of the cluster, without contacting it.
func (s *Service) CreateNoticeChannel(ctx context.Context, in CreateNoticeChannelInput) (*CreateChannelPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	owner := &v.User
	if in.Cluster != nil && *in.Cluster {
		if !v.Superadmin() {
			return nil, problem.Forbidden("only a superadmin can create channels of the cluster").WithField("cluster")
		}
		owner = nil
	}
	if in.Type != noticekind.Webhook && in.Type != noticekind.Slack {
		return nil, problem.Invalid("type", "must be WEBHOOK or SLACK")
	}
	if err := checkName(in.Name); err != nil {
		return nil, err
	}
	host, err := s.checkURL(in.URL)
	if err != nil {
		return nil, err
	}
	out := &CreateChannelPayload{}
	if in.Type == noticekind.Webhook {
		out.Secret = new("whsec_" + rand.Text() + rand.Text())
	}
	ctx = viewer.SystemContext(ctx)
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		whose, lock := noticechannel.UserIDIsNil(), "notice channels"
		if owner != nil {
			whose, lock = noticechannel.UserID(*owner), lock+" "+owner.String()
		}
		if err := store.Lock(ctx, tx, lock); err != nil {
			return err
		}
		n, err := tx.NoticeChannel.Query().Where(whose).Count(ctx)
		if err != nil {
			return fmt.Errorf("count channels: %w", err)
		}
		if n >= maxChannels {
			return problem.Exhausted("there are %d channels, delete one first", n).WithField("name").WithLimit(fmt.Sprint(maxChannels))
		}
		c := tx.NoticeChannel.Create().SetType(in.Type).SetName(in.Name).SetHost(host).
			SetAddressSealed(s.Keys.Seal(seal.ChannelAddress, []byte(in.URL))).SetNillableUserID(owner)
		if out.Secret != nil {
			c.SetSecretSealed(s.Keys.Seal(seal.ChannelSecret, []byte(*out.Secret)))
		}
		row, err := c.Save(ctx)
		if err != nil {
			return fmt.Errorf("store channel: %w", err)
		}
		out.Channel = row.Unwrap()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func checkName(name string) error {
	if n := utf8.RuneCountInString(name); n == 0 || n > maxName || !utf8.ValidString(name) || strings.TrimSpace(name) != name ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return problem.Invalid("name", "must have 1 to %d characters, in one line", maxName).WithLimit(fmt.Sprint(maxName))
	}
	return nil
}

// checkURL checks the form of an address and returns its host. Where it leads is checked with each connection.
func (s *Service) checkURL(address string) (string, error) {
	u, err := url.Parse(address)
	switch {
	case len(address) > maxURL:
		return "", problem.Invalid("url", "has more than %d bytes", maxURL).WithLimit(fmt.Sprint(maxURL))
	case err != nil || u.Hostname() == "" || u.User != nil || u.Opaque != "" || u.Fragment != "":
		return "", problem.Invalid("url", "does not have the form https://example.com/path, without a user and a fragment")
	case u.Scheme == "https", u.Scheme == "http" && s.Egress.Allows(u.Hostname()):
		return u.Host, nil
	}
	return "", problem.Invalid("url", "must begin with https://; http:// is possible for hosts that the operator allows with --notice-network")
}

// own returns a channel that the viewer can change: their own or, for superadmins, one of the cluster.
func (s *Service) own(ctx context.Context, channel uuid.UUID) (*viewer.Viewer, *ent.NoticeChannel, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.Client.NoticeChannel.Get(ctx, channel)
	if err != nil {
		return nil, nil, permit.Missing(err, "channel", "id")
	}
	if c.UserID == nil && !v.Superadmin() {
		return nil, nil, problem.Forbidden("only a superadmin can change channels of the cluster").WithField("id")
	}
	return v, c, nil
}

// UpdateNoticeChannel changes a channel. The secret of a webhook stays the same.
func (s *Service) UpdateNoticeChannel(ctx context.Context, in UpdateNoticeChannelInput) (*ChannelPayload, error) {
	_, c, err := s.own(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	up := c.Update().SetNillableName(in.Name)
	if in.Name != nil {
		if err := checkName(*in.Name); err != nil {
			return nil, err
		}
	}
	if in.URL != nil {
		host, err := s.checkURL(*in.URL)
		if err != nil {
			return nil, err
		}
		up.SetHost(host).SetAddressSealed(s.Keys.Seal(seal.ChannelAddress, []byte(*in.URL))).ClearPausedUntil()
	}
	if in.Enabled != nil {
		up.SetEnabled(*in.Enabled).SetDisabledReason("").ClearFailingSince().ClearPausedUntil()
	}
	row, err := up.Save(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("store channel: %w", err)
	}
	return &ChannelPayload{row}, nil
}

// DeleteNoticeChannel deletes a channel, and drops what waits for it.
func (s *Service) DeleteNoticeChannel(ctx context.Context, in DeleteNoticeChannelInput) (*DeleteNoticeChannelPayload, error) {
	_, c, err := s.own(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	ctx = viewer.SystemContext(ctx)
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := s.drop(ctx, tx.NoticeDelivery, c.ID, "the channel was deleted"); err != nil {
			return err
		}
		return tx.NoticeChannel.DeleteOneID(c.ID).Exec(ctx)
	})
	if err != nil {
		return nil, permit.Missing(err, "channel", "id")
	}
	return &DeleteNoticeChannelPayload{c.ID}, nil
}

// TestNoticeChannel sends a notice at once, and reports the result.
func (s *Service) TestNoticeChannel(ctx context.Context, in TestNoticeChannelInput) (*TestNoticeChannelPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	n := &ent.Notice{ID: id.New(id.Notice), Kind: noticekind.Test, Severity: noticekind.Info, Count: 1, CreatedAt: s.Now()}
	if in.ID != nil {
		_, c, err := s.own(ctx, *in.ID)
		if err != nil {
			return nil, err
		}
		n.Parameters = map[string]string{"name": c.Name}
		err = s.send(ctx, c, id.New(id.NoticeDelivery), n)
		return s.tested(c.Type, err)
	}
	if s.Mail == nil {
		return nil, problem.Precondition("the platform cannot send mail: the operator has not named a mail server").WithField("id")
	}
	set, err := s.Settings(ctx)
	if err != nil {
		return nil, err
	}
	l := noticekind.Language(set.Language)
	err = s.Mail.Send(ctx, mail.Mail{ID: n.ID.String(), To: v.Email, Language: l, Items: []mail.Item{{
		Text: noticekind.Text(l, noticekind.Test, map[string]string{"name": v.Email}, 1), Link: s.link(nil, noticekind.Test),
		Severity: noticekind.Info, At: n.CreatedAt.Format("2006-01-02 15:04 UTC"),
	}}})
	if err != nil {
		s.Logger.WarnContext(ctx, "notices: send a test mail", "error", err)
		err = fmt.Errorf("the mail server did not accept the mail; its answer is in the manager's log")
	}
	return s.tested(noticekind.Mail, err)
}

func (s *Service) tested(r noticekind.Route, err error) (*TestNoticeChannelPayload, error) {
	if err != nil {
		s.count(r, "failed")
		return &TestNoticeChannelPayload{Message: err.Error()}, nil
	}
	s.count(r, "sent")
	return &TestNoticeChannelPayload{Delivered: true}, nil
}

// ResendNoticeDelivery makes a dead or dropped delivery wait again.
func (s *Service) ResendNoticeDelivery(ctx context.Context, in ResendNoticeDeliveryInput) (*DeliveryPayload, error) {
	v, err := permit.Writer(ctx)
	if err != nil {
		return nil, err
	}
	d, err := s.Client.NoticeDelivery.Get(ctx, in.ID)
	if err != nil {
		return nil, permit.Missing(err, "delivery", "id")
	}
	if d.UserID == nil && !v.Superadmin() {
		return nil, problem.Forbidden("only a superadmin can send deliveries of the cluster again").WithField("id")
	}
	if d.ChannelID != nil {
		c, err := s.Client.NoticeChannel.Get(ctx, *d.ChannelID)
		if err != nil {
			return nil, permit.Missing(err, "channel", "id")
		}
		if !c.Enabled {
			return nil, problem.Precondition("channel %s is disabled: enable it first", c.Name).WithField("id")
		}
	}
	now := s.Now()
	over := []predicate.NoticeDelivery{noticedelivery.ID(d.ID), noticedelivery.StatusIn(noticedelivery.StatusDead, noticedelivery.StatusDropped)}
	n, err := s.Client.NoticeDelivery.Update().Where(over...).
		SetStatus(noticedelivery.StatusWaiting).SetDueAt(now).SetExpiresAt(now.Add(expiry)).ClearBatch().Save(viewer.SystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("store delivery: %w", err)
	}
	if n == 0 {
		return nil, problem.Precondition("the delivery has the status %s: only those that are DEAD or DROPPED can be sent again", strings.ToUpper(string(d.Status))).WithField("id")
	}
	if d, err = s.Client.NoticeDelivery.Get(ctx, d.ID); err != nil {
		return nil, permit.Missing(err, "delivery", "id")
	}
	return &DeliveryPayload{d}, nil
}
