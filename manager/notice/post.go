package notice

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entnotice "github.com/berthhq/berth/ent/notice"
	"github.com/berthhq/berth/ent/noticechannel"
	"github.com/berthhq/berth/ent/noticesetting"
	"github.com/berthhq/berth/ent/user"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/noticekind"
	"github.com/berthhq/berth/manager/store"
)

const (
	// singles is the number of notices of a kind that a person gets within gathered; further ones are counted in one notice.
	singles  = 5
	gathered = time.Minute
	chunk    = 500 // rows of one statement
)

// Event is something that people are notified of.
type Event struct {
	Key        string // identifies it; an event with a key that was posted before is ignored. "": it is always posted
	Kind       noticekind.Kind
	Users      []uuid.UUID // the people who get it; ignored for kinds that are for superadmins
	Subject    uuid.UUID   // zero: none
	Group      string      // many events of one group within a minute are one notice
	Parameters map[string]string
}

// Post stores notices of events, and their deliveries. It notifies the page after the transaction has committed.
func (s *Service) Post(ctx context.Context, events ...Event) error {
	var done *posting
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) (err error) {
		done, err = s.post(ctx, tx, events)
		return err
	})
	if err == nil {
		s.posted(ctx, done)
	}
	return err
}

// posted publishes what a committed transaction has stored.
func (s *Service) posted(ctx context.Context, p *posting) {
	if p == nil {
		return
	}
	for u := range p.reached {
		s.Bus.Publish(ctx, event.Event{Topic: event.Notice, ID: u})
	}
	for k, n := range p.counts {
		s.meter.notices.WithLabelValues(string(k)).Add(float64(n))
	}
}

// posting is what one transaction stores.
type posting struct {
	s          *Service
	tx         *ent.Tx
	now        time.Time
	people     map[uuid.UUID]*person
	cluster    *person // the channels of the cluster
	recent     map[groupKey]*group
	notices    []*ent.NoticeCreate
	deliveries []*ent.NoticeDeliveryCreate
	more       map[uuid.UUID]int // events that stored notices stand for in addition
	reached    map[uuid.UUID]bool
	counts     map[noticekind.Kind]int
}

// person is someone who can get notices.
type person struct {
	id       *uuid.UUID // nil: the cluster
	admin    bool
	choice   noticekind.Choice
	channels []*ent.NoticeChannel
}

type groupKey struct {
	user uuid.UUID
	kind noticekind.Kind
	name string
}

// group is what a person got of a group within the last minute.
type group struct {
	single int
	gather uuid.UUID // the notice that counts further events; zero: none
}

// post stores the notices of those events that were not posted before.
func (s *Service) post(ctx context.Context, tx *ent.Tx, events []Event) (*posting, error) {
	events, err := s.unposted(ctx, tx, events)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	p := &posting{s: s, tx: tx, now: s.Now(), more: map[uuid.UUID]int{}, reached: map[uuid.UUID]bool{}, counts: map[noticekind.Kind]int{}}
	if err := p.read(ctx, tx, events); err != nil {
		return nil, err
	}
	for _, e := range events {
		p.add(e)
	}
	return p, p.store(ctx, tx)
}

// unposted marks the events, and returns those that had no mark.
func (s *Service) unposted(ctx context.Context, tx *ent.Tx, events []Event) ([]Event, error) {
	var ids, keys []string
	for _, e := range events {
		if e.Key != "" {
			ids, keys = append(ids, id.New(id.Other).String()), append(keys, e.Key)
		}
	}
	if len(keys) == 0 {
		return events, nil
	}
	rows, err := tx.QueryContext(ctx, `INSERT INTO notice_marks (id, key, lasting, at) SELECT id, key, key LIKE 'budget %', $3
FROM unnest($1::text[]::uuid[], $2::text[]) AS m(id, key) ON CONFLICT (key) DO NOTHING RETURNING key`, ids, keys, s.Now())
	if err != nil {
		return nil, fmt.Errorf("mark events: %w", err)
	}
	defer rows.Close()
	fresh := map[string]bool{"": true}
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, fmt.Errorf("mark events: %w", err)
		}
		fresh[key] = true
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("mark events: %w", err)
	}
	var out []Event
	for _, e := range events {
		if fresh[e.Key] {
			out = append(out, e)
			if e.Key != "" {
				delete(fresh, e.Key) // the same key twice in the list
			}
		}
	}
	return out, nil
}

// read reads the people that events are about, and what they got recently. People who are not active get nothing.
func (p *posting) read(ctx context.Context, tx *ent.Tx, events []Event) error {
	ids, admins := map[uuid.UUID]bool{}, false
	for _, e := range events {
		admins = admins || e.Kind.ForAdmins()
		for _, u := range e.Users {
			ids[u] = true
		}
	}
	who := user.IDIn(slices.Collect(maps.Keys(ids))...)
	if admins {
		who = user.Or(who, user.RoleEQ(user.RoleSuperadmin))
	}
	users, err := tx.User.Query().Where(user.StatusEQ(user.StatusActive), who).All(ctx)
	if err != nil {
		return fmt.Errorf("read people: %w", err)
	}
	p.people = map[uuid.UUID]*person{}
	for _, u := range users {
		p.people[u.ID] = &person{id: &u.ID, admin: u.Role == user.RoleSuperadmin}
	}
	if err := p.readChoices(ctx, tx, admins); err != nil {
		return err
	}
	return p.readRecent(ctx, tx)
}

func (p *posting) readChoices(ctx context.Context, tx *ent.Tx, admins bool) error {
	ids := slices.Collect(maps.Keys(p.people))
	settings, err := tx.NoticeSetting.Query().Where(noticesetting.UserIDIn(ids...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read settings of notices: %w", err)
	}
	for _, x := range settings {
		p.people[x.UserID].choice = x.Routes
	}
	whose := noticechannel.UserIDIn(ids...)
	if admins {
		p.cluster, whose = &person{admin: true}, noticechannel.Or(whose, noticechannel.UserIDIsNil())
	}
	channels, err := tx.NoticeChannel.Query().Where(noticechannel.Enabled(true), whose).All(ctx)
	if err != nil {
		return fmt.Errorf("read channels of notices: %w", err)
	}
	for _, c := range channels {
		of := p.cluster
		if c.UserID != nil {
			of = p.people[*c.UserID]
		}
		of.channels = append(of.channels, c)
	}
	return nil
}

func (p *posting) readRecent(ctx context.Context, tx *ent.Tx) error {
	p.recent = map[groupKey]*group{}
	rows, err := tx.Notice.Query().Where(entnotice.UserIDIn(slices.Collect(maps.Keys(p.people))...), entnotice.CreatedAtGT(p.now.Add(-gathered))).All(ctx)
	if err != nil {
		return fmt.Errorf("read recent notices: %w", err)
	}
	for _, n := range rows {
		g := p.group(groupKey{*n.UserID, n.Kind, n.GroupKey})
		if n.Gathering {
			g.gather = n.ID
		} else {
			g.single++
		}
	}
	return nil
}

func (p *posting) group(k groupKey) *group {
	g := p.recent[k]
	if g == nil {
		g = &group{}
		p.recent[k] = g
	}
	return g
}

// add adds an event for each person who gets it.
func (p *posting) add(e Event) {
	p.counts[e.Kind]++
	if !e.Kind.ForAdmins() {
		for _, u := range e.Users {
			if who := p.people[u]; who != nil {
				p.give(who, e)
			}
		}
		return
	}
	for _, who := range p.people {
		if who.admin {
			p.give(who, e)
		}
	}
	if p.cluster != nil && len(p.cluster.channels) > 0 {
		p.give(p.cluster, e)
	}
}

// give adds an event for one person.
func (p *posting) give(who *person, e Event) {
	routes := who.choice.Of(e.Kind)
	if len(routes) == 0 {
		return
	}
	var of uuid.UUID
	if who.id != nil {
		of = *who.id
		p.reached[of] = true
	}
	g, n := p.group(groupKey{of, e.Kind, e.Group}), id.New(id.Notice)
	switch {
	case g.gather != uuid.Nil:
		p.more[g.gather]++
		return
	case g.single >= singles:
		g.gather = n
	default:
		g.single++
	}
	c := p.tx.Notice.Create().SetID(n).SetCreatedAt(p.now).SetKind(e.Kind).SetSeverity(e.Kind.Severity()).SetParameters(cut(e.Parameters)).
		SetGroupKey(e.Group).SetGathering(g.gather == n).SetInPage(who.id != nil && slices.Contains(routes, noticekind.Page)).
		SetBrowser(slices.Contains(routes, noticekind.Browser)).SetNillableUserID(who.id)
	if e.Subject != uuid.Nil {
		c.SetSubjectID(e.Subject)
	}
	p.notices = append(p.notices, c)
	due := p.now
	if g.gather == n {
		due = due.Add(gathered)
	}
	if who.id != nil && p.s.Mail != nil && slices.Contains(routes, noticekind.Mail) {
		p.deliver(n, e.Kind, noticekind.Mail, nil, who.id, p.now.Add(digest))
	}
	for _, ch := range who.channels {
		if who.id == nil || slices.Contains(routes, ch.Type) {
			p.deliver(n, e.Kind, ch.Type, &ch.ID, who.id, due)
		}
	}
}

func (p *posting) deliver(n uuid.UUID, k noticekind.Kind, r noticekind.Route, channel, to *uuid.UUID, due time.Time) {
	p.deliveries = append(p.deliveries, p.tx.NoticeDelivery.Create().SetCreatedAt(p.now).SetType(r).SetKind(k).SetDueAt(due).
		SetExpiresAt(due.Add(expiry)).SetNoticeID(n).SetNillableChannelID(channel).SetNillableUserID(to))
}

// store inserts the rows.
func (p *posting) store(ctx context.Context, tx *ent.Tx) error {
	for n, by := range p.more {
		for i, c := range p.notices {
			if made, _ := c.Mutation().ID(); made == n {
				p.notices[i], by = c.SetCount(1+by), 0
			}
		}
		if by > 0 {
			if err := tx.Notice.UpdateOneID(n).AddCount(by).ClearReadAt().Exec(ctx); err != nil {
				return fmt.Errorf("count events of a notice: %w", err)
			}
		}
	}
	for part := range slices.Chunk(p.notices, chunk) {
		if err := tx.Notice.CreateBulk(part...).Exec(ctx); err != nil {
			return fmt.Errorf("store notices: %w", err)
		}
	}
	for part := range slices.Chunk(p.deliveries, chunk) {
		if err := tx.NoticeDelivery.CreateBulk(part...).Exec(ctx); err != nil {
			return fmt.Errorf("store deliveries of notices: %w", err)
		}
	}
	return nil
}

// maxParameter limits the bytes of a parameter.
const maxParameter = 500

// cut shortens parameters, and removes the full stop at the end of a reason, because texts end with one.
func cut(parameters map[string]string) map[string]string {
	out := make(map[string]string, len(parameters))
	for name, value := range parameters {
		if r := []rune(value); len(r) > maxParameter {
			value = string(r[:maxParameter]) + "…"
		}
		if n := len(value); name == "reason" && n > 0 && value[n-1] == '.' {
			value = value[:n-1]
		}
		out[name] = value
	}
	return out
}
