package store

import (
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// leastList is the shortest list of ids that joinIDs replaces.
const leastList = 4

// joinIDs replaces lists of ids, `IN ($2, $3, $4, $5)`, by one argument, `= ANY ($2)`. ent writes
// such a list for each edge that it loads. With one argument, the text is the same for every
// length, so PostgreSQL prepares it once per connection and not once per length, and it is cheaper
// to send.
func joinIDs(query string, args []any) (string, []any) {
	const in, notIn = " IN (", " NOT IN ("
	if len(args) < leastList || !strings.Contains(query, in+"$") || strings.Contains(query, "'") { // a quoted $ is not a placeholder
		return query, args
	}
	var text strings.Builder
	var out []any
	place := make([]int, len(args)+1) // the new number of each placeholder
	for {
		i := strings.IndexByte(query, '$')
		if i < 0 {
			break
		}
		before, rest := query[:i], query[i:]
		if strings.HasSuffix(before, in) && !strings.HasSuffix(before, notIn) {
			if ids, after := cutIDs(rest, args); ids != nil {
				out = append(out, ids)
				text.WriteString(before[:len(before)-len(in)] + " = ANY ($" + strconv.Itoa(len(out)) + ")")
				query = after
				continue
			}
		}
		n, after := placeholder(rest)
		if n < 1 || n > len(args) {
			text.WriteString(before + "$")
			query = rest[1:]
			continue
		}
		if place[n] == 0 {
			out = append(out, args[n-1])
			place[n] = len(out)
		}
		text.WriteString(before + "$" + strconv.Itoa(place[n]))
		query = after
	}
	text.WriteString(query)
	return text.String(), out
}

// cutIDs returns the ids of a list that begins with its first placeholder, and the text behind the
// list; nil for a short list, and for one that has other values than ids.
func cutIDs(list string, args []any) (ids []uuid.UUID, after string) {
	for {
		n, rest := placeholder(list)
		if n < 1 || n > len(args) {
			return nil, ""
		}
		id, ok := args[n-1].(uuid.UUID)
		if !ok {
			return nil, ""
		}
		ids = append(ids, id)
		if after, ok := strings.CutPrefix(rest, ")"); ok {
			if len(ids) < leastList {
				return nil, ""
			}
			return ids, after
		}
		if list, ok = strings.CutPrefix(rest, ", "); !ok {
			return nil, ""
		}
	}
}

// placeholder returns the number of the placeholder at the start of the text, 0 if
// there is none, and the text behind it.
func placeholder(text string) (n int, after string) {
	end := 1
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	if text == "" || text[0] != '$' {
		return 0, text
	}
	n, _ = strconv.Atoi(text[1:end])
	return n, text[end:]
}

// wrapUUID lets pgx send ids as they are. Without it, pgx writes each as text and
// parses that again, as uuid.UUID is a driver.Valuer.
func wrapUUID(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	id, ok := value.(uuid.UUID)
	return &uuidPlan{}, pgID(id), ok
}

// pgID is an id with an encoder for pgx.
type pgID uuid.UUID

// UUIDValue implements pgtype.UUIDValuer.
func (id pgID) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: id, Valid: true}, nil }

type uuidPlan struct{ next pgtype.EncodePlan }

// SetNext implements pgtype.WrappedEncodePlanNextSetter.
func (p *uuidPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

// Encode implements pgtype.EncodePlan.
func (p *uuidPlan) Encode(value any, buf []byte) ([]byte, error) {
	return p.next.Encode(pgID(value.(uuid.UUID)), buf)
}
