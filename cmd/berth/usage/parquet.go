package usage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/internal/parquetfile"
)

// save writes the Parquet file: the columns of the CSV, and the sum also as a number, which programs can add. The file appears when it is
// complete.
func (g *grouped) save(rows []client.UsageRow) (err error) {
	file, err := os.CreateTemp(filepath.Dir(g.parquet), filepath.Base(g.parquet)+".*")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, file.Close())
		if err == nil {
			err = os.Rename(file.Name(), g.parquet)
		}
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	var texts []string
	for _, by := range g.by {
		if by != "slot" {
			texts = append(texts, by, by+"_name")
		}
	}
	w, err := parquetfile.New(file, append(texts, "slot", "slot_seconds_exact"), []string{"slot_seconds"})
	if err != nil {
		return err
	}
	for _, r := range rows {
		seconds, err := strconv.ParseFloat(r.SlotSeconds, 64)
		if err != nil {
			return fmt.Errorf("the server returned %q, which is not a sum: %w", r.SlotSeconds, err)
		}
		var cells []string
		for _, k := range r.Keys {
			if k.Dimension != "SLOT" {
				cells = append(cells, k.Value, k.Label)
			}
		}
		if err := w.Write(append(cells, r.Slot, r.SlotSeconds), []float64{seconds}); err != nil {
			return err
		}
	}
	return w.Close()
}
