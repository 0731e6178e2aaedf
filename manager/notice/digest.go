package notice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entnotice "github.com/berthhq/berth/ent/notice"
	"github.com/berthhq/berth/ent/noticedelivery"
	"github.com/berthhq/berth/ent/noticesetting"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/noticekind"
	"github.com/berthhq/berth/manager/notice/mail"
	"github.com/berthhq/berth/manager/store"
)

// maxPeople limits the people of one pass.
const maxPeople = 200

// SendMail sends one mail to each person whose oldest notice waits for a minute, about everything that waits.
func (s *Service) SendMail(ctx context.Context) error {
	if s.Mail == nil {
		return nil
	}
	rows, err := s.Client.QueryContext(ctx, `SELECT DISTINCT user_id FROM notice_deliveries
WHERE status = 'waiting' AND channel_id IS NULL AND due_at <= $1 LIMIT $2`, s.Now(), maxPeople)
	if err != nil {
		return fmt.Errorf("read people with mail: %w", err)
	}
	defer rows.Close()
	var people []uuid.UUID
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			return fmt.Errorf("read people with mail: %w", err)
		}
		people = append(people, id)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read people with mail: %w", err)
	}
	rows.Close()
	for _, p := range people {
		if err := s.mailTo(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// mailTo sends the mail of one person.
func (s *Service) mailTo(ctx context.Context, person uuid.UUID) error {
	batch, list, err := s.claim(ctx, person)
	if err != nil || len(list) == 0 {
		return err
	}
	u, err := s.Client.User.Query().Where(user.ID(person), user.StatusEQ(user.StatusActive)).Only(ctx)
	if ent.IsNotFound(err) {
		return s.settle(ctx, list, func(up *ent.NoticeDeliveryUpdate) {
			up.SetStatus(noticedelivery.StatusDropped).SetMessage("the person is not active")
		})
	}
	if err != nil {
		return fmt.Errorf("read person: %w", err)
	}
	m, err := s.compose(ctx, u, batch, list)
	if err != nil {
		return err
	}
	if len(m.Items) == 0 {
		return s.settle(ctx, list, func(up *ent.NoticeDeliveryUpdate) {
			up.SetStatus(noticedelivery.StatusDropped).SetMessage("the notice was removed after its retention time")
		})
	}
	failed := s.Mail.Send(ctx, m)
	if failed == nil {
		s.count(noticekind.Mail, "sent")
		return s.settle(ctx, list, func(up *ent.NoticeDeliveryUpdate) {
			up.SetStatus(noticedelivery.StatusSent).SetSentAt(s.Now()).AddAttempts(1).SetMessage("")
		})
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.mailFailed(ctx, list, failed)
}

// claim returns what one mail has: the notices of a mail that was not confirmed, because its manager was killed or the server did
// not accept it, otherwise all that wait. No other manager sends them before the lease ends. A person who got too many mails within the
// hour gets the next one later.
func (s *Service) claim(ctx context.Context, person uuid.UUID) (batch uuid.UUID, list []*ent.NoticeDelivery, err error) {
	err = store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		waiting, err := tx.NoticeDelivery.Query().Where(noticedelivery.UserID(person), noticedelivery.ChannelIDIsNil(), noticedelivery.StatusEQ(noticedelivery.StatusWaiting)).
			Order(noticedelivery.ByID()).Limit(chunk * 20).ForUpdate().All(ctx)
		if err != nil {
			return fmt.Errorf("read waiting mail: %w", err)
		}
		now := s.Now()
		list = due(waiting, now)
		if len(list) == 0 {
			return nil
		}
		until := now.Add(lease)
		if list[0].Batch == nil {
			if n, err := sentWithin(ctx, tx, person, now.Add(-time.Hour)); err != nil {
				return err
			} else if n >= mailsHourly {
				err := s.change(ctx, tx.NoticeDelivery, list, func(up *ent.NoticeDeliveryUpdate) { up.SetDueAt(now.Add(time.Hour / mailsHourly)) })
				list = nil
				return err
			}
			batch = uuid.New()
		} else {
			batch = *list[0].Batch
		}
		return s.change(ctx, tx.NoticeDelivery, list, func(up *ent.NoticeDeliveryUpdate) { up.SetBatch(batch).SetDueAt(until) })
	})
	return batch, list, err
}

// due returns the deliveries of an unconfirmed mail that is due, or all without a mail if one of them is due. While a mail is not
// confirmed, further deliveries wait.
func due(waiting []*ent.NoticeDelivery, now time.Time) (list []*ent.NoticeDelivery) {
	var batch *uuid.UUID
	for _, d := range waiting {
		if d.Batch != nil {
			batch = d.Batch
			break
		}
	}
	ready := false
	for _, d := range waiting {
		if batch == nil && d.Batch == nil || batch != nil && d.Batch != nil && *d.Batch == *batch {
			list, ready = append(list, d), ready || !d.DueAt.After(now)
		}
	}
	if !ready {
		return nil
	}
	return list
}

// sentWithin returns how many mails a person got since a time.
func sentWithin(ctx context.Context, tx *ent.Tx, person uuid.UUID, since time.Time) (int, error) {
	rows, err := tx.QueryContext(ctx, `SELECT count(DISTINCT batch) FROM notice_deliveries
WHERE user_id = $1 AND channel_id IS NULL AND created_at > $2::timestamptz - interval '1 day' AND sent_at > $2`, person, since)
	if err != nil {
		return 0, fmt.Errorf("count mails: %w", err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		if err := rows.Scan(&n); err != nil {
			return 0, fmt.Errorf("count mails: %w", err)
		}
	}
	return n, rows.Err()
}

// compose returns the mail about the deliveries, in the language of the person.
func (s *Service) compose(ctx context.Context, u *ent.User, batch uuid.UUID, list []*ent.NoticeDelivery) (mail.Mail, error) {
	m := mail.Mail{ID: batch.String(), To: u.Email, Language: noticekind.English}
	set, err := s.Client.NoticeSetting.Query().Where(noticesetting.UserID(u.ID)).Only(ctx)
	if err != nil && !ent.IsNotFound(err) {
		return m, fmt.Errorf("read settings of notices: %w", err)
	}
	if set != nil {
		m.Language = noticekind.Language(set.Language)
	}
	ids := make([]uuid.UUID, 0, len(list))
	for _, d := range list {
		ids = append(ids, d.NoticeID)
	}
	m.More = max(0, len(ids)-maxDigest)
	notices, err := s.Client.Notice.Query().Where(entnotice.IDIn(ids[:len(ids)-m.More]...)).Order(entnotice.ByID()).All(ctx)
	if err != nil {
		return m, fmt.Errorf("read notices: %w", err)
	}
	for _, n := range notices {
		m.Items = append(m.Items, mail.Item{Text: noticekind.Text(m.Language, n.Kind, n.Parameters, n.Count), Link: s.link(n.SubjectID, n.Kind),
			Severity: n.Severity, At: n.CreatedAt.UTC().Format("2006-01-02 15:04 UTC")})
	}
	return m, nil
}

// mailFailed stores a failed attempt: it is repeated with the same mail, until it is dead.
func (s *Service) mailFailed(ctx context.Context, list []*ent.NoticeDelivery, failed error) error {
	s.count(noticekind.Mail, "failed")
	s.Logger.WarnContext(ctx, "notices: send mail", "error", failed)
	now := s.Now()
	why := "the mail server did not accept it"
	if errors.Is(failed, mail.ErrRefused) || !list[0].ExpiresAt.After(now) {
		if errors.Is(failed, mail.ErrRefused) {
			why = "the mail server refused the recipient"
		}
		s.meter.deliveries.WithLabelValues(string(noticekind.Mail), "dead").Add(float64(len(list)))
		return s.settle(ctx, list, func(up *ent.NoticeDeliveryUpdate) {
			up.SetStatus(noticedelivery.StatusDead).AddAttempts(1).SetMessage(why)
		})
	}
	pause := min(minBackoff<<min(list[0].Attempts, 10), maxBackoff)
	return s.settle(ctx, list, func(up *ent.NoticeDeliveryUpdate) { up.AddAttempts(1).SetMessage(why).SetDueAt(now.Add(pause)) })
}

func (s *Service) settle(ctx context.Context, list []*ent.NoticeDelivery, set func(*ent.NoticeDeliveryUpdate)) error {
	return s.change(ctx, s.Client.NoticeDelivery, list, set)
}

func (s *Service) change(ctx context.Context, in *ent.NoticeDeliveryClient, list []*ent.NoticeDelivery, set func(*ent.NoticeDeliveryUpdate)) error {
	ids := make([]uuid.UUID, len(list))
	for i, d := range list {
		ids[i] = d.ID
	}
	up := in.Update().Where(noticedelivery.IDIn(ids...), noticedelivery.StatusEQ(noticedelivery.StatusWaiting))
	set(up)
	if err := up.Exec(ctx); err != nil {
		return fmt.Errorf("store deliveries: %w", err)
	}
	return nil
}
