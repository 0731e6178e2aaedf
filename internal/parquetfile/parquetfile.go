// Package parquetfile writes tables of texts and numbers as Parquet, row by row, in bounded memory.
package parquetfile

import (
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// groupRows is the number of rows of a row group: they are in memory until the group is complete.
const groupRows = 2_000

// Writer writes one file. New creates one, and Close completes it.
type Writer struct {
	to      *parquet.GenericWriter[any]
	columns []int // of each text, then of each number, in the file
	texts   int
	row     parquet.Row
	rows    int
}

// New returns a writer of a table with the columns. Names must differ. A reader finds columns by name; in the file they are in the order
// of their names.
func New(to io.Writer, texts, numbers []string) (*Writer, error) {
	names := slices.Concat(texts, numbers)
	group := parquet.Group{}
	for i, name := range names {
		if _, twice := group[name]; twice || name == "" {
			return nil, fmt.Errorf("the columns of a Parquet file %q have no name, or the same", names)
		}
		if i < len(texts) {
			group[name] = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		} else {
			group[name] = parquet.Leaf(parquet.DoubleType)
		}
	}
	schema := parquet.NewSchema("table", group)
	w := &Writer{to: parquet.NewGenericWriter[any](to, schema, parquet.Compression(&parquet.Zstd)), texts: len(texts), row: make(parquet.Row, len(names))}
	for _, name := range names {
		leaf, ok := schema.Lookup(name)
		if !ok {
			return nil, fmt.Errorf("the column %q cannot be written", name)
		}
		w.columns = append(w.columns, leaf.ColumnIndex)
	}
	return w, nil
}

// Write adds one row, with a value for each column.
func (w *Writer) Write(texts []string, numbers []float64) error {
	if len(texts) != w.texts || len(texts)+len(numbers) != len(w.columns) {
		return fmt.Errorf("a row has %d texts and %d numbers, which is not the number of columns", len(texts), len(numbers))
	}
	for i, text := range texts {
		w.put(i, parquet.ByteArrayValue([]byte(text)))
	}
	for i, number := range numbers {
		w.put(w.texts+i, parquet.DoubleValue(number))
	}
	if _, err := w.to.WriteRows([]parquet.Row{w.row}); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	if w.rows++; w.rows%groupRows == 0 {
		if err := w.to.Flush(); err != nil {
			return fmt.Errorf("write Parquet: %w", err)
		}
	}
	return nil
}

func (w *Writer) put(i int, v parquet.Value) {
	w.row[w.columns[i]] = v.Level(0, 0, w.columns[i])
}

// Close writes the rest and the end of the file. A file without it cannot be read.
func (w *Writer) Close() error {
	if err := w.to.Close(); err != nil {
		return fmt.Errorf("complete Parquet: %w", err)
	}
	return nil
}
