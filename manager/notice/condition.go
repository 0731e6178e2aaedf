package notice

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/agent"
	"github.com/berthhq/berth/ent/membership"
	"github.com/berthhq/berth/ent/noticedelivery"
	"github.com/berthhq/berth/ent/noticemark"
	"github.com/berthhq/berth/ent/quotascope"
	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/internal/noticekind"
	"github.com/berthhq/berth/manager/store"
)

const (
	quotaAlmost = 85          // percent
	quotaAgain  = 80          // percent: the condition ends below it
	proxySilent = time.Minute // since the last heartbeat: two of them were missed
	expiresSoon = 30 * 24 * time.Hour
	// prefix of the marks of conditions, whose keys have the form "condition KIND SUBJECT".
	prefix = "condition "
)

// condition is a state of the cluster that people are notified of once, until it has ended and begins again.
type condition struct {
	Event
	begins bool // false: it lasts if it has begun, but does not begin
}

// Watch compares the conditions with their marks, and notifies of those that begin, and of machines that are back.
func (s *Service) Watch(ctx context.Context) error {
	lasting := map[string]condition{}
	for _, read := range []func(context.Context) ([]condition, error){s.agentConditions, s.proxyConditions, s.quotaConditions, s.certificateConditions, s.deadLetters} {
		list, err := read(ctx)
		if err != nil {
			return err
		}
		for _, c := range list {
			lasting[prefix+c.Key] = c
		}
	}
	var done *posting
	err := store.InTx(ctx, s.Client, func(tx *ent.Tx) error {
		if err := store.Lock(ctx, tx, "notice conditions"); err != nil {
			return err
		}
		marks, err := tx.NoticeMark.Query().Where(noticemark.KeyHasPrefix(prefix)).All(ctx)
		if err != nil {
			return fmt.Errorf("read marks of conditions: %w", err)
		}
		var events []Event
		known, over := map[string]bool{}, []uuid.UUID{}
		for _, m := range marks {
			known[m.Key] = true
			if _, lasts := lasting[m.Key]; !lasts {
				over = append(over, m.ID)
				back, err := s.ended(ctx, tx, m.Key)
				if err != nil {
					return err
				}
				events = append(events, back...)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(lasting)) {
			if c := lasting[key]; c.begins && !known[key] {
				c.Event.Key = ""
				events = append(events, c.Event)
				if err := tx.NoticeMark.Create().SetKey(key).SetLasting(true).SetAt(s.Now()).Exec(ctx); err != nil {
					return fmt.Errorf("mark a condition: %w", err)
				}
			}
		}
		if _, err := tx.NoticeMark.Delete().Where(noticemark.IDIn(over...)).Exec(ctx); err != nil {
			return fmt.Errorf("delete marks of conditions: %w", err)
		}
		done, err = s.post(ctx, tx, events)
		return err
	})
	if err == nil {
		s.posted(ctx, done)
	}
	return err
}

// ended returns the notice of the end of a condition: only that of a lost machine has one, unless the machine was removed.
func (s *Service) ended(ctx context.Context, tx *ent.Tx, key string) ([]Event, error) {
	text, is := strings.CutPrefix(key, prefix+string(noticekind.AgentLost)+" ")
	id, err := uuid.Parse(text)
	if !is || err != nil {
		return nil, nil
	}
	a, err := tx.Agent.Query().Where(agent.ID(id), agent.StatusEQ(agent.StatusAlive)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read machine: %w", err)
	}
	return []Event{{Kind: noticekind.AgentBack, Subject: a.ID, Parameters: map[string]string{"name": a.Name}}}, nil
}

func of(k noticekind.Kind, key string, subject uuid.UUID, parameters map[string]string, users ...uuid.UUID) condition {
	return condition{Event{Key: string(k) + " " + key, Kind: k, Subject: subject, Parameters: parameters, Users: users}, true}
}

// agentConditions are lost machines, and plugins that do not run on others.
func (s *Service) agentConditions(ctx context.Context) (list []condition, err error) {
	agents, err := s.Client.Agent.Query().Where(agent.StatusNEQ(agent.StatusTerminated)).
		Select(agent.FieldID, agent.FieldName, agent.FieldStatus, agent.FieldPlugins).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read machines: %w", err)
	}
	for _, a := range agents {
		if a.Status == agent.StatusLost {
			list = append(list, of(noticekind.AgentLost, a.ID.String(), a.ID, map[string]string{"name": a.Name}))
		}
		for _, p := range a.Plugins {
			if down := p.State == "backoff"; down || p.State == "starting" || a.Status == agent.StatusLost {
				c := of(noticekind.PluginDown, a.ID.String()+" "+p.Name, a.ID, map[string]string{"name": a.Name, "plugin": p.Name, "reason": p.Message})
				c.begins = down && a.Status == agent.StatusAlive
				list = append(list, c)
			}
		}
	}
	return list, nil
}

func (s *Service) proxyConditions(ctx context.Context) (list []condition, err error) {
	proxies, err := s.Client.StorageProxy.Query().Where(storageproxy.LastSeenAtLT(s.Now().Add(-proxySilent))).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read storage proxies: %w", err)
	}
	for _, p := range proxies {
		list = append(list, of(noticekind.StorageDown, p.ID.String(), uuid.Nil, map[string]string{"name": p.Name}))
	}
	return list, nil
}

// quotaConditions are quotas that are almost used: the user gets them, or the administrators of the project.
func (s *Service) quotaConditions(ctx context.Context) (list []condition, err error) {
	scopes, err := s.Client.QuotaScope.Query().Where(quotascope.Or(quotascope.LimitBytesGT(0), quotascope.LimitInodesGT(0))).WithVolume().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read quotas: %w", err)
	}
	for _, q := range scopes {
		percent := max(share(q.UsedBytes, q.LimitBytes), share(q.UsedInodes, q.LimitInodes))
		if percent < quotaAgain {
			continue
		}
		users := []uuid.UUID{q.HolderID}
		if q.Kind == quotascope.KindProject {
			members, err := s.Client.Membership.Query().Where(membership.ProjectID(q.HolderID), membership.Admin(true)).All(ctx)
			if err != nil {
				return nil, fmt.Errorf("read members: %w", err)
			}
			users = nil
			for _, m := range members {
				users = append(users, m.UserID)
			}
		}
		for _, from := range []int{quotaAlmost, 100} {
			c := of(noticekind.Quota, q.ID.String()+" "+strconv.Itoa(from), uuid.Nil, map[string]string{"name": q.Edges.Volume.Name, "percent": strconv.Itoa(percent)}, users...)
			if c.begins = percent >= from; c.begins || from == quotaAlmost || percent >= 95 {
				list = append(list, c)
			}
		}
	}
	return list, nil
}

func share(used, limit *int64) int {
	if used == nil || limit == nil || *limit <= 0 {
		return 0
	}
	return int(float64(*used) / float64(*limit) * 100)
}

func (s *Service) certificateConditions(context.Context) (list []condition, err error) {
	if s.Certificates == nil {
		return nil, nil
	}
	for name, expires := range s.Certificates() {
		if !expires.IsZero() && expires.Sub(s.Now()) < expiresSoon {
			at := expires.UTC().Format(time.DateOnly)
			list = append(list, of(noticekind.Certificate, name+" "+at, uuid.Nil, map[string]string{"name": name, "expires": at}))
		}
	}
	return list, nil
}

// deadLetters is the condition that deliveries to the cluster's channels, or mails, could not be sent.
func (s *Service) deadLetters(ctx context.Context) ([]condition, error) {
	n, err := s.Client.NoticeDelivery.Query().Where(noticedelivery.StatusEQ(noticedelivery.StatusDead),
		noticedelivery.Or(noticedelivery.UserIDIsNil(), noticedelivery.ChannelIDIsNil())).Count(ctx)
	if err != nil || n == 0 {
		return nil, err
	}
	return []condition{of(noticekind.DeadLetter, "all", uuid.Nil, map[string]string{"total": strconv.Itoa(n)})}, nil
}

// BudgetUse is how much of a budget is used.
type BudgetUse struct {
	// Key identifies the budget, its period and the threshold, such as "ID 2026-11 80": there is one notice for each.
	Key          string
	Name         string
	Users        []uuid.UUID // the people who get the notice
	Percent      int
	Spent, Limit string    // with their unit
	Subject      uuid.UUID // zero: none
}

// BudgetReached notifies people that a threshold of a budget is reached, in the caller's transaction. The caller calls the returned
// function after the transaction has committed. A second call with the same key has no effect, for 13 months.
func (s *Service) BudgetReached(ctx context.Context, tx *ent.Tx, b BudgetUse) (committed func(), err error) {
	done, err := s.post(ctx, tx, []Event{{Key: "budget " + b.Key, Kind: noticekind.Budget, Users: b.Users, Subject: b.Subject,
		Parameters: map[string]string{"name": b.Name, "percent": strconv.Itoa(b.Percent), "spent": b.Spent, "limit": b.Limit}}})
	return func() { s.posted(context.WithoutCancel(ctx), done) }, err
}
