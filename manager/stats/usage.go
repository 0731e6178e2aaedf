package stats

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/allocation"
	"github.com/berthhq/berth/internal/resource"
)

// UsageEntry is the usage of one slot: amount times seconds of allocation.
type UsageEntry struct {
	Slot        string
	SlotSeconds string // decimal, in the slot's unit
}

// UsageWhereInput limits a sum of usage; nil means no limit.
type UsageWhereInput struct {
	From, To              *time.Time
	User, Project, Domain *uuid.UUID
}

// Usage sums the allocations that the viewer can see, per slot.
func Usage(ctx context.Context, client *ent.Client, where *UsageWhereInput) ([]UsageEntry, error) {
	q := client.Allocation.Query()
	from, to := time.Time{}, time.Now().AddDate(100, 0, 0)
	if where != nil {
		if where.From != nil {
			from = *where.From
		}
		if where.To != nil {
			to = *where.To
		}
		if where.User != nil {
			q.Where(allocation.OwnerID(*where.User))
		}
		if where.Project != nil {
			q.Where(allocation.ProjectID(*where.Project))
		}
		if where.Domain != nil {
			q.Where(allocation.DomainID(*where.Domain))
		}
	}
	q.Where(allocation.CreatedAtLT(to), allocation.Or(allocation.FreedAtIsNil(), allocation.FreedAtGT(from)))
	var rows []struct {
		Slot string
		Used string
	}
	err := q.Order(allocation.BySlot()).GroupBy(allocation.FieldSlot).Aggregate(slotSeconds(from, to)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("sum usage: %w", err)
	}
	entries := make([]UsageEntry, 0, len(rows))
	for _, r := range rows {
		entries = append(entries, UsageEntry{Slot: r.Slot, SlotSeconds: scaled(r.Slot, r.Used)})
	}
	return entries, nil
}

// BySession sums the usage of each of the sessions so far.
func BySession(ctx context.Context, client *ent.Client, sessions []uuid.UUID) (map[uuid.UUID][]UsageEntry, error) {
	var rows []struct {
		SessionID uuid.UUID `json:"session_id"`
		Slot      string
		Used      string
	}
	err := client.Allocation.Query().Where(allocation.SessionIDIn(sessions...)).Order(allocation.BySlot()).
		GroupBy(allocation.FieldSessionID, allocation.FieldSlot).
		Aggregate(slotSeconds(time.Time{}, time.Now().AddDate(100, 0, 0))).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("sum usage of sessions: %w", err)
	}
	usage := make(map[uuid.UUID][]UsageEntry, len(sessions))
	for _, r := range rows {
		usage[r.SessionID] = append(usage[r.SessionID], UsageEntry{Slot: r.Slot, SlotSeconds: scaled(r.Slot, r.Used)})
	}
	return usage, nil
}

func slotSeconds(from, to time.Time) ent.AggregateFunc {
	return func(s *sql.Selector) string {
		expr := fmt.Sprintf(`SUM(%s::numeric * GREATEST(0, EXTRACT(EPOCH FROM (LEAST(COALESCE(%s, now()), %s) - GREATEST(%s, %s)))::numeric))`,
			s.C("amount"), s.C("freed_at"), literal(to), s.C("created_at"), literal(from))
		return sql.As("("+expr+")::text", "used")
	}
}

// literal returns a time in SQL.
func literal(t time.Time) string {
	return t.UTC().Format("'2006-01-02 15:04:05.999999+00'::timestamptz")
}

// scaled converts a sum from the slot's smallest step to its unit, with at most three
// decimals.
func scaled(slot, sum string) string { return inUnit(slot, sum, 3) }

// exact converts a sum from the slot's smallest step to its unit, without rounding: seconds have six decimals.
func exact(slot string, sum *big.Rat) string { return unit(slot, sum, 6+resource.Scale(slot)) }

// inUnit converts a sum from the slot's smallest step to its unit, with at most a number of decimals.
func inUnit(slot, sum string, decimals int) string {
	r, ok := new(big.Rat).SetString(sum)
	if !ok {
		return "0"
	}
	return unit(slot, r, decimals)
}

func unit(slot string, sum *big.Rat, decimals int) string {
	div := int64(1)
	for range resource.Scale(slot) {
		div *= 10
	}
	return trimZeros(new(big.Rat).Quo(sum, new(big.Rat).SetInt64(div)).FloatString(decimals))
}

func trimZeros(s string) string {
	for len(s) > 0 && s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if len(s) > 0 && s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}
