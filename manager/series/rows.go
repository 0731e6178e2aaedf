package series

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/series"
)

// rows are chunks of one grain that are written with one statement.
type rows struct {
	grain   grain
	sources []uuid.UUID
	starts  []time.Time
	data    [][]byte
}

func newRows(g grain) *rows { return &rows{grain: g} }

func (r *rows) add(codec *series.Codec, source uuid.UUID, start time.Time, lines series.Lines) error {
	data, err := codec.Encode(start, lines)
	if err != nil {
		return err
	}
	r.sources, r.starts, r.data = append(r.sources, source), append(r.starts, start), append(r.data, data)
	return nil
}

// write inserts the chunks and returns their bytes. conflict is what happens with those that exist.
func (r *rows) write(ctx context.Context, client *ent.Client, conflict string) (bytes int, err error) {
	if len(r.sources) == 0 {
		return 0, nil
	}
	_, err = client.ExecContext(ctx, `INSERT INTO series_chunks (source, "grain", start, data)
		SELECT source, $1, start, data FROM unnest($2::uuid[], $3::timestamptz[], $4::bytea[]) AS n (source, start, data)
		ON CONFLICT (source, "grain", start) `+conflict, int16(r.grain), r.sources, r.starts, r.data)
	if err != nil {
		return 0, fmt.Errorf("write measurements: %w", err)
	}
	for _, d := range r.data {
		bytes += len(d)
	}
	return bytes, nil
}
